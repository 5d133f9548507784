"""A prior: directed physical couplings between sensors, read from a system's documentation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tsadbench.errors import DataError, UsageError
from tsadbench.utils.arrays import FloatArray

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

_SCHEMA = 1
_HOW_TO_GET_ONE = "see docs/priors.md for the format and for how to make one"


@dataclass(frozen=True, slots=True)
class Edge:
    """One directed coupling: a change at ``source`` physically changes ``target``.

    Parameters
    ----------
    source, target
        Names of sensors.
    source_quantity, target_quantity, mechanism
        What is measured, and why the one changes the other.
    votes
        The share of a language model's answers that name the edge, in (0, 1]; None where nobody voted.
    """

    source: str
    target: str
    source_quantity: str = ""
    target_quantity: str = ""
    mechanism: str = ""
    votes: float | None = None


@dataclass(frozen=True, slots=True)
class Sensor:
    """What a sensor measures, and to which part of the plant it belongs."""

    name: str
    quantity: str = ""
    subsystem: str = ""


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
    sensors
        What its file tells of sensors; for people.
    """

    edges: tuple[Edge, ...]
    origin: str = "given in Python"
    provenance: Mapping[str, str] = field(default_factory=dict)
    sensors: tuple[Sensor, ...] = ()

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
            if edge.votes is not None and not 0 < edge.votes <= 1:
                raise DataError(
                    f"prior {self.origin}: the edge {edge.source!r} -> {edge.target!r} has votes {edge.votes!r}; "
                    "expected a share above 0 and up to 1"
                )
            seen.add(pair)
        if not self.edges:
            raise DataError(f"prior {self.origin}: expected at least one edge, found none; {_HOW_TO_GET_ONE}")

    def __str__(self) -> str:
        return self.origin

    @property
    def content_hash(self) -> str:
        """SHA-256 over the edges' ends, and their votes where there are any, sorted."""
        voted = any(edge.votes is not None for edge in self.edges)
        pairs = sorted((edge.source, edge.target, *((edge.votes or 0.0,) if voted else ())) for edge in self.edges)
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
            If an edge names a sensor that is not among these.
        """
        self.check(sensors)
        place = {name: i for i, name in enumerate(sensors)}
        matrix = np.zeros((len(sensors), len(sensors)))
        for edge in self.edges:
            matrix[place[edge.source], place[edge.target]] = 1.0
        return matrix

    def votes(self, sensors: tuple[str, ...]) -> FloatArray:
        """Return each edge's share of votes, [n_sensors, n_sensors]; 1 for an edge that nobody voted on, 0 for none.

        Raises
        ------
        UsageError
            If an edge names a sensor that is not among these.
        """
        matrix = self.matrix(sensors)
        place = {name: i for i, name in enumerate(sensors)}
        for edge in self.edges:
            if edge.votes is not None:
                matrix[place[edge.source], place[edge.target]] = edge.votes
        return matrix

    def to_json(self) -> str:
        """Return the prior as the text of its file."""
        edges = [
            {
                "source": edge.source,
                "source_quantity": edge.source_quantity,
                "target": edge.target,
                "target_quantity": edge.target_quantity,
                "mechanism": edge.mechanism,
                **({} if edge.votes is None else {"votes": edge.votes}),
            }
            for edge in self.edges
        ]
        sensors = [{"name": one.name, "quantity": one.quantity, "subsystem": one.subsystem} for one in self.sensors]
        content = {"schema": _SCHEMA, "sensors": sensors, "edges": edges, "provenance": dict(self.provenance)}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

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
            If the file is missing, is not JSON or does not hold edges.
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
        sensors: tuple[Sensor, ...] = ()
        edges = content
        if isinstance(content, dict):
            if content.get("schema") != _SCHEMA:
                raise DataError(
                    f"prior {origin}: expected schema {_SCHEMA}, found {content.get('schema')!r}; {_HOW_TO_GET_ONE}"
                )
            edges = content.get("edges")
            provenance = {str(key): str(value) for key, value in dict(content.get("provenance") or {}).items()}
            sensors = tuple(
                Sensor(*(str(one.get(key, "")) for key in ("name", "quantity", "subsystem")))
                for one in content.get("sensors") or []
                if isinstance(one, dict)
            )
        if not isinstance(edges, list):
            raise DataError(f"prior {origin}: expected a list of edges; {_HOW_TO_GET_ONE}")
        return cls(
            edges=tuple(_edge(edge, number, origin) for number, edge in enumerate(edges, start=1)),
            origin=origin,
            provenance=provenance,
            sensors=sensors,
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
    votes = edge.get("votes")
    if votes is not None and (isinstance(votes, bool) or not isinstance(votes, int | float)):
        raise DataError(f"prior {origin}, edge {number}: expected a number as 'votes', found {json.dumps(votes)[:80]}")
    return Edge(source=edge["source"], target=edge["target"], votes=votes, **texts)
