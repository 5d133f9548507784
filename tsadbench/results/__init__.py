"""Reads stored trials: with their data, judged again, verified, or from the tables that ship."""
