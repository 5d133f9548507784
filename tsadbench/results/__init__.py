"""A store's trials read again: beside their data, verified, or shipped with the package."""
