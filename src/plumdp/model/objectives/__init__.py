"""What a policy is made for: one file for each objective, and what they have in common."""
