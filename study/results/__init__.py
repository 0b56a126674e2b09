"""The way back: from what is stored to tables, reports and lists."""
