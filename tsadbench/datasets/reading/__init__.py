"""Rows of sensor values in CSV and Parquet files: what a cell, a number, a time, a gap and a header are, everywhere."""
