"""Stage 5, which builds the interval MDPs that say which probabilities nature may pick at each choice."""
