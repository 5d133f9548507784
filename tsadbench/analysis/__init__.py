"""What stored results and data sets say beyond a leaderboard: events, curves, tests, explanations, audits."""
