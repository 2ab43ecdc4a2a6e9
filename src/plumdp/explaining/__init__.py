"""Explains certificates by what limits them, where more data help, and whether the model is right."""
