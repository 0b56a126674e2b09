"""Whether machines, stores and servers are fit for a study."""
