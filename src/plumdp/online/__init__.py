"""Learning while acting: episodes are sampled, and certificates renewed as they come in."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
