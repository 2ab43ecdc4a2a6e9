"""From a ``Certificate`` to findings: what it rests on, where to sample next, whether the model is right."""
