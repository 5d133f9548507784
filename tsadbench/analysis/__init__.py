"""Analyses of stored results and data sets beyond a leaderboard: events, curves, tests, explanations, audits."""
