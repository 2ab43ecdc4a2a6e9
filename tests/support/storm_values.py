"""What Storm says of interval models."""

import numpy as np
import stormpy

NATURES = {"robust": "ROBUST", "optimistic": "COOPERATIVE"}


def storm_values(model, text, nature):
    """Return Storm's value of every state."""
    environment = stormpy.Environment()
    method = environment.solver().min_max()
    method.precision = stormpy.Rational("1e-10")
    method.relative_termination_criterion = False
    formula = stormpy.parse_property(text)  # Storm does not keep it alive
    mode = getattr(stormpy.UncertaintyResolutionMode, NATURES[nature])
    result = stormpy.model_checking(model, formula, uncertainty_resolution_mode=mode, environment=environment)
    return np.array(result.get_value_vector())
