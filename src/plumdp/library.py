"""What the command line uses of the library, by name: loaded when it is first used, so that help needs none of it.

The names are listed in ``library.pyi``, where type checkers find them too.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("plumdp", __file__)
