"""Writes the evidence of a claim into its result, and checks it without trusting any of the other rooms."""
