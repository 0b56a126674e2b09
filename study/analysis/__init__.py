"""What a report says, computed: rows, comparisons, contrasts, headlines. Nothing is written here."""
