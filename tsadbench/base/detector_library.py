"""Families: another library's detectors, each under the name ``FAMILY:CLASS``.

A package offers one by an entry point of the group ``tsadbench.families``: its name is what stands before the colon,
its value a `DetectorLibrary`. The core knows no library: which classes there are, and how they become detectors, is the
package's business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from tsadbench.base.detector import Detector


@dataclass(frozen=True, slots=True)
class LibraryDetector:
    """One class of the library, as ``tsadbench list --family`` shows it.

    Parameters
    ----------
    name
        The class's name, which stands after the colon.
    note
        What whoever reads its scores has to know.
    refusal
        Why it cannot be run; empty where it can.
    """

    name: str
    note: str = ""
    refusal: str = ""


class AdaptedDetector(Detector):
    """A detector whose work another library does.

    Attributes
    ----------
    libraries
        Names of the distributions whose versions determine its scores: they are part of a trial's identity.
    note
        What every table says below, where it has a row of this detector.
    """

    libraries: ClassVar[tuple[str, ...]] = ()
    note: ClassVar[str] = ""


class DetectorLibrary(ABC):
    """Makes detectors of a library's classes.

    What `load` returns must be an attribute of the module that the entry point names, under the member's name, or no
    other process finds it: a function ``__getattr__`` of that module may make it when it is asked for.

    Attributes
    ----------
    description
        What ``tsadbench info FAMILY`` tells.
    """

    description: str = ""

    @abstractmethod
    def members(self) -> tuple[LibraryDetector, ...]:
        """Return every class there is, those that cannot be run included, without importing them.

        Raises
        ------
        MissingExtraError
            If the library is not installed.
        """

    @abstractmethod
    def load(self, name: str) -> type[AdaptedDetector]:
        """Return the detector class of a member that can be run; imports the library's class.

        Raises
        ------
        MissingExtraError
            If a package that this member needs is not installed.
        """
