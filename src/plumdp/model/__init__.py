"""Stage 1, which builds parametric MDPs, whose structure is known and whose probabilities have unknown parameters."""
