"""The detectors that a command takes if none is named (entry points `tsadbench.defaults`)."""

RUN = ("dprgm", "t2-q", "isolation-forest")
# docs/studies/multiview.md says why it is this one.
FIT = ("multiview",)
