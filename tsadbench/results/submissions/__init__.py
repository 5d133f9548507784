"""Submissions: rows that somebody else has run, with what it takes to verify them."""
