"""Figures, the HTML report, and pages of the documentation site."""
