"""Stage 2: what we saw."""
