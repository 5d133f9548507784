"""From a request to kept results: configuration, plan, trial, runner, run store."""
