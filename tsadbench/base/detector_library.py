"""Detectors of other libraries, each under the name ``LIBRARY:CLASS``.

A package offers a library by an entry point of the group ``tsadbench.families``: its name stands before the colon, its
value is a `DetectorLibrary`. The core knows no library: the package decides which classes there are and how they become
detectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tsadbench.base.detector import Detector


@dataclass(frozen=True, slots=True)
class LibraryDetector:
    """One class of a library, as ``tsadbench list --family`` shows it: its name stands after the colon.

    ``note`` is what readers of its scores need to know, ``refusal`` why it cannot be run; empty if it can.
    """

    name: str
    note: str = ""
    refusal: str = ""


class DetectorLibrary(ABC):
    """Turns a library's classes into detectors.

    What `load` returns must be an attribute of the module that the entry point names, under the member's name, so that
    other processes find it; a module-level ``__getattr__`` may create it on demand. ``description`` is the text of
    ``tsadbench info LIBRARY``. Both methods raise a MissingExtraError if what they need is not installed.
    """

    description: str = ""

    @abstractmethod
    def members(self) -> tuple[LibraryDetector, ...]:
        """Return every class, including those that cannot be run, without importing them."""

    @abstractmethod
    def load(self, name: str) -> type[Detector]:
        """Return the detector class of a member that can be run; this imports the library's class."""
