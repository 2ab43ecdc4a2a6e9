"""The language of properties, with tokens, predicates on states, formulas and properties."""
