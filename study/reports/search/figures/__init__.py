"""Figures of a search."""
