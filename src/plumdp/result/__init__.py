"""Stage 7: what we may claim."""
