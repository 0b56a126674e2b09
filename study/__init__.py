"""The study service."""
