"""Stage 6: the best policy against that nature."""
