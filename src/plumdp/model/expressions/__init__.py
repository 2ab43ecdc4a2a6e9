"""Exact polynomials in the parameters, arrays and tables of polynomials, and their ranges over boxes."""
