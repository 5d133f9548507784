"""What is here, what is missing, and what is broken: ``tsadbench doctor``."""

from tsadbench.cli.doctor.examine import examine, to_json
from tsadbench.cli.doctor.finding import Finding

__all__ = ["Finding", "examine", "to_json"]
