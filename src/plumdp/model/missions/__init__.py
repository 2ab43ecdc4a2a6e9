"""Objectives that need memory, each as a product: missions (temporal logic, automata from files) and budgets."""
