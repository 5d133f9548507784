"""Audits a data set, labels included: flaws that make every table over it worth less than it seems."""

from tsadbench.analysis.audit.audit import Audit, audit

__all__ = ["Audit", "audit"]
