"""A prior: directed physical couplings between sensors, read from a system's documentation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Literal

import numpy as np

from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.files import read_text

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

_SCHEMA = 1
_MOST_BYTES = 2**24
_SHOWN = 1000  # how many characters of a list of names a message shows
_HOW_TO_GET_ONE = "see docs/priors.md for the format and for how to make one"


@dataclass(frozen=True, slots=True)
class Edge:
    """One directed coupling: a change at the sensor ``source`` physically changes the sensor ``target``.

    Quantities are what the sensors measure; ``mechanism`` explains the effect. ``votes`` is the share of a language
    model's answers that name the edge, in (0, 1]; None without a vote.
    """

    source: str
    target: str
    source_quantity: str = ""
    target_quantity: str = ""
    mechanism: str = ""
    votes: float | None = None


@dataclass(frozen=True, slots=True)
class Sensor:
    """What a sensor measures, and its part of the plant."""

    name: str
    quantity: str = ""
    subsystem: str = ""


@dataclass(frozen=True, slots=True)
class Prior:
    """Directed couplings between sensors: at least one, without self-loops and duplicates.

    ``origin`` is its source as named in tables and messages; ``provenance`` says how it was made, if its file states
    that; ``sensors`` describe sensors for readers.
    """

    edges: tuple[Edge, ...]
    origin: str = "given in Python"
    provenance: Mapping[str, str] = field(default_factory=dict)
    sensors: tuple[Sensor, ...] = ()

    def __post_init__(self) -> None:
        seen: set[tuple[str, str]] = set()
        for edge in self.edges:
            which = f"prior {self.origin}: the edge {edge.source!r} -> {edge.target!r}"
            if edge.source == edge.target:
                raise DataError(f"{which} couples a sensor to itself; remove it")
            if (edge.source, edge.target) in seen:
                raise DataError(f"{which} occurs twice; remove one")
            if edge.votes is not None and not 0 < edge.votes <= 1:
                raise DataError(f"{which} has votes {edge.votes!r}; expected a share above 0 and up to 1")
            seen.add((edge.source, edge.target))
        if not self.edges:
            raise DataError(f"prior {self.origin}: expected at least one edge, found none; {_HOW_TO_GET_ONE}")

    def __str__(self) -> str:
        return self.origin

    @property
    def content_hash(self) -> str:
        """SHA-256 over the edges' ends, with their votes if there are any, sorted."""
        voted = any(edge.votes is not None for edge in self.edges)
        pairs = sorted((edge.source, edge.target, *((edge.votes or 0.0,) if voted else ())) for edge in self.edges)
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()

    def check(self, sensors: tuple[str, ...]) -> None:
        """Raise a UsageError if an edge names a sensor that the data lack."""
        named = {end for edge in self.edges for end in (edge.source, edge.target)}
        unknown = sorted(named - set(sensors))
        if unknown:
            raise UsageError(
                f"prior {self.origin}: it names sensors that the data do not have: "
                f"{shorten(str(unknown), _SHOWN)}; the data have {shorten(str(list(sensors)), _SHOWN)}; "
                f"{_HOW_TO_GET_ONE}"
            )

    def matrix(self, sensors: tuple[str, ...]) -> FloatArray:
        """Return D [n_sensors, n_sensors]: ``D[i, j] = 1`` if sensor i drives sensor j, else 0; errors as `check`."""
        return np.ceil(self.votes(sensors))

    def votes(self, sensors: tuple[str, ...]) -> FloatArray:
        """Return each edge's share of votes, as `matrix`; 1 for an edge without votes."""
        self.check(sensors)
        index = {name: i for i, name in enumerate(sensors)}
        matrix = np.zeros((len(sensors), len(sensors)))
        for edge in self.edges:
            matrix[index[edge.source], index[edge.target]] = 1.0 if edge.votes is None else edge.votes
        return matrix

    def to_json(self) -> str:
        """Return the prior as the text of its file."""
        edges = [{key: value for key, value in asdict(edge).items() if value is not None} for edge in self.edges]
        sensors = [asdict(sensor) for sensor in self.sensors]
        content = {"schema": _SCHEMA, "sensors": sensors, "edges": edges, "provenance": dict(self.provenance)}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def load(cls, path: str | Path, origin: str | None = None) -> Prior:
        """Read a prior's JSON file: an object with ``edges``, or a bare list of edges.

        ``origin`` is its name in messages and tables, by default the path. Raises a DataError if the file is missing,
        is not JSON or has no edges.
        """
        # Imported late, because `tsadbench list` imports this module but reads no prior.
        from pydantic import TypeAdapter, ValidationError

        origin = origin or str(path)
        try:
            text = read_text(Path(path), _MOST_BYTES, "utf-8-sig")
            if text.lstrip().startswith("["):
                text = f'{{"schema": {_SCHEMA}, "edges": {text}}}'
            file = TypeAdapter(_PriorFile).validate_json(text, strict=True)
        except ValidationError as error:
            fault = error.errors()[0]
            where = " ".join(repr(key) if isinstance(key, str) else str(key + 1) for key in fault["loc"])
            found = json.dumps(fault["input"], default=str)[:80]
            raise DataError(f"prior {origin}: {where}: {fault['msg']}, found {found}; {_HOW_TO_GET_ONE}") from error
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"prior {path}: cannot be read ({reason}); {_HOW_TO_GET_ONE}") from error
        provenance = {key: str(value) for key, value in (file.provenance or {}).items()}
        return cls(file.edges, origin, provenance, file.sensors or ())

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: type, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept a file's path as well."""
        from pydantic_core import core_schema

        def from_text(value: object) -> Prior:
            return value if isinstance(value, Prior) else cls.load(str(value))

        return core_schema.no_info_plain_validator_function(from_text)


@dataclass(frozen=True, slots=True)
class _PriorFile:
    """The content of a prior's file, validated by pydantic."""

    schema: Literal[1]
    edges: tuple[Edge, ...]
    provenance: dict[str, object] | None = None
    sensors: tuple[Sensor, ...] | None = None
