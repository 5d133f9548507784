"""A page for each detector: paper, parameters, every row, where it wins and loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tsadbench.analysis.significance.ranking import Ranking
from tsadbench.leaderboard.presentation import KINDS, kind_place
from tsadbench.leaderboard.ranking import Row
from tsadbench.reporting.site.content import metrics, rounded, script, split_content, target_of
from tsadbench.reporting.site.facts import DetectorFacts, detector_facts
from tsadbench.reporting.site.render import Pages
from tsadbench.reporting.site.source import Table
from tsadbench.reporting.site.standing import Standing, duels, standings
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import JsonValue

_INDEX = "detectors/index.html"


def files(
    pages: Pages,
    tables: Sequence[Table],
    suites: Sequence[Ranking],
    addresses: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each detector's page and its data, and of the list of detectors."""
    rows = grouped((row for table in tables for row in table.main), lambda row: target_of(row.label))
    stands = grouped(standings(tables), lambda one: target_of(one.label))
    widest = max(suites, key=lambda one: len(one.datasets), default=None)
    data = _data(tables)
    told = {facts.name: facts for facts in detector_facts(list(addresses))}
    for name, address in addresses.items():
        file = address.removeprefix("detectors/").removesuffix(".html")
        own: dict[str, JsonValue] = {**data[name], "summary": f"every row of {name}"}
        yield f"data/detectors/{file}.js", script(f"detectors/{file}", own)
        yield address, _page(pages, address, file, told[name], rows[name], stands[name], widest)
    yield _INDEX, _list_page(pages, addresses, rows, told, stands)


def _page(
    pages: Pages,
    address: str,
    file: str,
    facts: DetectorFacts,
    rows: Sequence[Row],
    stands: Sequence[Standing],
    suite: Ranking | None,
) -> str:
    labels = list(dict.fromkeys(row.label for row in rows))
    found = [] if suite is None else [(label, *duels(suite, label)) for label in labels]
    return pages.page(
        "detector",
        address,
        facts.name,
        kind="detector",
        name=facts.name,
        file=file,
        lead=", ".join(labels) if labels != [facts.name] else "",
        facts=facts,
        kind_words=KINDS.get(rows[0].first.family, rows[0].first.family),
        checks=_checks(rows),
        standings=stands,
        suite="" if suite is None else suite.suite,
        duels=[one for one in found if one[1] or one[2]],
    )


def _checks(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return in words what reports of checks say of each label."""
    words = {"pass": "passes all checks", "fail": "fails", "no": "no report vouches for it"}
    found = []
    for label, of_label in grouped(rows, lambda row: row.label).items():
        verdicts = [row.verdict for row in of_label if row.ok]
        worst = min((one.checked for one in verdicts), key=("fail", "no", "pass").index, default="no")
        failed = dict.fromkeys(check for one in verdicts for check in one.failed)
        found.append((label, f"{words[worst]}{': ' if failed else ''}{', '.join(failed)}"))
    return found


def _data(tables: Sequence[Table]) -> dict[str, dict[str, JsonValue]]:
    """Return the rows of all tables by the detector's name, each with its table and its place there."""
    found: dict[str, list[JsonValue]] = {}
    places = {(one.table, one.label): one for one in standings(tables)}
    named: dict[str, JsonValue] = {}
    for table in tables:
        named |= {str(_dict(one)["name"]): one for one in metrics(table)}
        for place, (*_, split) in enumerate(table.board.tables()):
            for row in _list(split_content(table, split, {})["rows"]):
                stand = places.get((table.name, str(_dict(row)["label"]))) if place == 0 else None
                found.setdefault(target_of(str(_dict(row)["label"])), []).append(
                    {
                        **_dict(row),
                        "dataset": table.first.dataset,
                        "protocol": table.first.rules,
                        "split": split,
                        "main": place == 0,
                        "place": None if stand is None else stand.place,
                        "n_placed": None if stand is None else stand.n_placed,
                    }
                )
    return {name: {"metrics": list(named.values()), "rows": rounded(rows)} for name, rows in found.items()}


def _list_page(
    pages: Pages,
    addresses: Mapping[str, str],
    rows: Mapping[str, Sequence[Row]],
    told: Mapping[str, DetectorFacts],
    stands: Mapping[str, Sequence[Standing]],
) -> str:
    kinds = grouped(addresses, lambda name: rows[name][0].first.family)
    groups = [
        (
            KINDS.get(kind, kind),
            [
                (addresses[name], name, (told[name].paper or "-", _beaten(stands[name])))
                for name in sorted(kinds[kind], key=str.casefold)
            ],
        )
        for kind in sorted(kinds, key=kind_place)
    ]
    return pages.page(
        "list", _INDEX, "Detectors", groups=groups, heads=("Detector", "Paper", "Tables in which it beats every floor")
    )


def _beaten(stands: Sequence[Standing]) -> str:
    tried = [one for one in stands if one.place is not None]
    return f"{sum(one.won for one in tried)} of {len(tried)}" if tried else "-"


def _dict(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _list(value: JsonValue | None) -> list[JsonValue]:
    return value if isinstance(value, list) else []
