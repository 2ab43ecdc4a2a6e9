"""Coupled evaluation: what a policy is worth if one parameter point governs all states of a run."""
