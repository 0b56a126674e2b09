"""Plans of studies: cells, trials, seeds and packs."""
