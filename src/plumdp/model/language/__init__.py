"""The language of properties: tokens, predicates on states, formulas and properties."""
