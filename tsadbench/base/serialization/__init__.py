"""Learned state as plain parts, without pickling: what crosses from the box into a model file."""
