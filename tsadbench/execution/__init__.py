"""From a request to stored results: configuration, plan, trial, runner, run store."""
