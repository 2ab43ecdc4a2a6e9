"""Stage 1: parametric MDPs, whose structure is known and whose probabilities depend on unknown parameters."""
