"""Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee.

The public names are listed in ``__init__.pyi``, where type checkers find them too.
"""

import lazy_loader

from plumdp.base.kinds import fill_by

__version__ = "0.3.0"

__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)  # names are sorted, by lazy_loader


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _add_features() -> None:
    """Fill the tables of the core, see ``plumdp/base/kinds.py``."""
    import plumdp.kinds  # noqa: F401


fill_by(_add_features)
