"""The score bank: scores of ranked rows in small, checked files, so that a new metric needs no fit."""
