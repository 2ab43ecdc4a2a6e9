"""Pictures, one for each question; ``draw`` makes all of them."""
