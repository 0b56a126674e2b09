"""What a study asks for: cells, trials, and the packs that they are trained in."""
