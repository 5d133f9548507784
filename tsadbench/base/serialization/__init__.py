"""Learned state as plain parts, without pickling: they cross from the box into a model file."""
