"""The contracts: what the author of a detector, a protocol or a data set imports."""
