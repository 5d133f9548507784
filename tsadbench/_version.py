"""The version of tsadbench, which every layer may import without the facade."""

__version__ = "0.1.0"
