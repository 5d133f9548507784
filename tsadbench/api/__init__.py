"""The Python face of tsadbench: what its commands do, for scripts and notebooks."""
