"""Expressions: exact polynomials in the parameters, arrays and tables of them, and their ranges over boxes."""
