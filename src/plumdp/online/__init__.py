"""Learning while acting: episodes are sampled, and certificates renewed as they come in."""
