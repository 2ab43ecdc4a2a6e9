"""Stage 4: what the data allow, jointly."""
