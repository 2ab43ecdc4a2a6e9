"""Stage 5: what nature may do at each choice."""
