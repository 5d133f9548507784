"""The command line: the only package that prints. Commands import what is heavy when they run."""
