"""The protocols that ship with tsadbench; an ordinary plugin package."""
