"""Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee."""

__version__ = "0.1.0"

from plumdp.errors import DataError, MissingExtra, ModelError
from plumdp.model.polynomial import Polynomial, parameters
from plumdp.model.polynomial_array import PolynomialArray, tabulate
from plumdp.model.space import ParameterSpace
from plumdp.model.explore import explore, explore_batch
