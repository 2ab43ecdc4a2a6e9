"""How data and model differ: tests of rows and of drifts, residuals, and what may explain them."""
