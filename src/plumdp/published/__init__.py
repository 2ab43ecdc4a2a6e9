"""Sets to compare with: L1 balls, least-squares ellipsoids, and the sets as the paper publishes them."""
