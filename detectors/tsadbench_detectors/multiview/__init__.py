"""A row seen in several ways, each on the scale of how rarely unseen normal rows look like that."""
