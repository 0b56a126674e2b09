"""Recurrent cells, image data and bounded errors, shared by several tasks."""
