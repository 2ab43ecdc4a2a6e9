"""Stage 3, which makes confidence sets of probabilities and parameters from counts."""
