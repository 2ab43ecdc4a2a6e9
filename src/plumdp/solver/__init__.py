"""Stage 6: the best policy of an interval MDP against nature, and certified values."""
