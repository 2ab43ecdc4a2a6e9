"""Coupled evaluation, which bounds the value of a policy if one parameter point governs all states of a run."""
