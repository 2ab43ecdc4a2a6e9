"""Stage 6, which finds the best policy of an interval MDP against nature, with certified values."""
