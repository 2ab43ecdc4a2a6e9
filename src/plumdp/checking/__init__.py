"""Whether a model is right: one p-value for all of it, the diagnosis in words, and how far rows must be off to fit."""
