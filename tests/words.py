"""Words that neither documents nor names use."""

RETIRED = r"desks?|lanes?|abreast|mend(?:s|ed|ing)?"
"""Words that once stood for the pack queue, a worker, side by side, and to fix."""

PARTICIPLES = "found|told|kept|asked|shown|sought|said|heard|tried"
"""Words that say what was done to a value, and not what the value is."""
