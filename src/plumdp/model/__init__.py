"""Stage 1: what we know, a structure with unknown numbers."""
