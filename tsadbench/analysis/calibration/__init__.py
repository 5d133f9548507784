"""Nominal against observed false alarms of stored trials' thresholds, on normal rows."""

from tsadbench.analysis.calibration.report import CalibrationReport, calibration_report

__all__ = ["CalibrationReport", "calibration_report"]
