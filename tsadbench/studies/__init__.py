"""Studies with pages of their own; only the command line imports them."""
