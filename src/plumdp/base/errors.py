"""What plumdp raises on misuse: errors that say what is wrong, where, and how to fix it."""


class ModelError(ValueError):
    """A model, an expression or a property that cannot be used as given."""


class DataError(ValueError):
    """Data that do not fit the model they are meant for."""


class MissingExtra(ImportError):
    """An optional part of plumdp is needed but not installed."""
