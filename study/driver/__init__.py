"""The driver: the process that runs a study."""
