"""Where the next data narrow a certificate most, and how to sample them."""
