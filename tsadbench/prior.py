"""A prior: directed physical couplings between sensors, read from a system's documentation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tsadbench.arrays import FloatArray
from tsadbench.errors import DataError, UsageError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

_SCHEMA = 1
_HOW_TO_GET_ONE = "see docs/priors.md for the format and for how to make one"


@dataclass(frozen=True, slots=True)
class Edge:
    """One directed coupling: a change at ``source`` physically changes ``target``."""

    source: str
    target: str
    source_quantity: str = ""
    target_quantity: str = ""
    mechanism: str = ""


@dataclass(frozen=True, slots=True)
class Prior:
    """Directed couplings between sensors.

    Parameters
    ----------
    edges
        The couplings; no self-loops, none twice.
    origin
        Where it was read from: what tables and messages call it.
    provenance
        How it was made, as far as its file says so.
    """

    edges: tuple[Edge, ...]
    origin: str = "given in Python"
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[tuple[str, str]] = set()
        for edge in self.edges:
            pair = (edge.source, edge.target)
            if edge.source == edge.target:
                raise DataError(f"prior {self.origin}: {edge.source!r} is coupled to itself; remove that edge")
            if pair in seen:
                raise DataError(
                    f"prior {self.origin}: the edge {edge.source!r} -> {edge.target!r} occurs twice; remove one"
                )
            seen.add(pair)
        if not self.edges:
            raise DataError(f"prior {self.origin}: expected at least one edge, found none; {_HOW_TO_GET_ONE}")

    def __str__(self) -> str:
        return self.origin

    @property
    def content_hash(self) -> str:
        """SHA-256 over the edges' ends, sorted: two priors with the same graph have the same hash."""
        pairs = sorted((edge.source, edge.target) for edge in self.edges)
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()

    def check(self, sensors: tuple[str, ...]) -> None:
        """Raise a UsageError where an edge names a sensor that the data do not have."""
        named = {end for edge in self.edges for end in (edge.source, edge.target)}
        unknown = sorted(named - set(sensors))
        if unknown:
            raise UsageError(
                f"prior {self.origin}: it names sensors that the data do not have: {unknown}; "
                f"the data have {list(sensors)}; {_HOW_TO_GET_ONE}"
            )

    def matrix(self, sensors: tuple[str, ...]) -> FloatArray:
        """Return D [n_sensors, n_sensors]: ``D[i, j] = 1`` where sensor i drives sensor j, else 0.

        Raises
        ------
        UsageError
            Where an edge names a sensor that is not among these.
        """
        self.check(sensors)
        place = {name: i for i, name in enumerate(sensors)}
        matrix = np.zeros((len(sensors), len(sensors)))
        for edge in self.edges:
            matrix[place[edge.source], place[edge.target]] = 1.0
        return matrix

    @classmethod
    def load(cls, path: str | Path, origin: str | None = None) -> Prior:
        """Read a prior's JSON file: an object with ``edges``, or a bare list of edges.

        Parameters
        ----------
        path
            The file.
        origin
            What messages and tables call it; by default the path.

        Raises
        ------
        DataError
            Where the file is missing, is not JSON or does not hold edges.
        """
        path = Path(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"prior {path}: cannot be read ({error.strerror}); {_HOW_TO_GET_ONE}") from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"prior {path}: not a JSON file ({error}); {_HOW_TO_GET_ONE}") from error
        return cls._from_json(content, origin or str(path))

    @classmethod
    def _from_json(cls, content: object, origin: str) -> Prior:
        provenance: Mapping[str, str] = {}
        edges = content
        if isinstance(content, dict):
            if content.get("schema") != _SCHEMA:
                raise DataError(
                    f"prior {origin}: expected schema {_SCHEMA}, found {content.get('schema')!r}; {_HOW_TO_GET_ONE}"
                )
            edges = content.get("edges")
            provenance = {str(key): str(value) for key, value in dict(content.get("provenance") or {}).items()}
        if not isinstance(edges, list):
            raise DataError(f"prior {origin}: expected a list of edges; {_HOW_TO_GET_ONE}")
        return cls(
            edges=tuple(_edge(edge, number, origin) for number, edge in enumerate(edges, start=1)),
            origin=origin,
            provenance=provenance,
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: type, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let command line and configuration give a prior as the path of its file."""
        from pydantic_core import core_schema

        def from_text(value: object) -> Prior:
            return value if isinstance(value, Prior) else cls.load(str(value))

        return core_schema.no_info_plain_validator_function(from_text)


def _edge(edge: Any, number: int, origin: str) -> Edge:
    if not isinstance(edge, dict) or not all(isinstance(edge.get(end), str) for end in ("source", "target")):
        raise DataError(
            f"prior {origin}, edge {number}: expected an object with the sensors' names as 'source' and 'target', "
            f"found {json.dumps(edge)[:80]}"
        )
    texts = {name: str(edge.get(name, "")) for name in ("source_quantity", "target_quantity", "mechanism")}
    return Edge(source=edge["source"], target=edge["target"], **texts)
