"""The command line: the only package that prints. Commands import slow packages only when they run."""
