"""Recurrent cells and images, which several tasks use."""
