"""Loaders of the data sets that ship with tsadbench, and of users' cards."""
