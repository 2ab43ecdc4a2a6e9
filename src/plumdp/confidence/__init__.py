"""Stage 3: what the data allow, per expression."""
