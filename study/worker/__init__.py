"""The process that trains packs."""
