"""The detectors that ship with tsadbench, one a file; an ordinary plugin package."""
