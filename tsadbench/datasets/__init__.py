"""The data sets that ship with tsadbench: one loader per file."""
