"""Reads trials again: with their data, judged, verified, or from the tables that ship."""
