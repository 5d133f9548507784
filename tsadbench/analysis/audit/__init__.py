"""Looks at a data set, labels included: what makes every table over it worth less than it seems."""

from tsadbench.analysis.audit.audit import Audit, audit

__all__ = ["Audit", "audit"]
