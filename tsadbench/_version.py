"""The version of this package, which every layer may read without importing the facade."""

__version__ = "0.1.0"
