"""Draw who imports whom: ``python docs/architecture/draw.py`` writes imports.svg beside this file.

Fails if two packages import each other, directly or through others, or if an arrow points upwards: the picture and
`make lint` (import-linter) read the same layers from pyproject.toml.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.patches import FancyArrowPatch

ROOT = Path(__file__).parents[2]
FIGURE = Path(__file__).parent / "imports.svg"
PACKAGE = "tsadbench"


def read_layers() -> list[list[str]]:
    """Return the names of each layer, the top one first, from import-linter's contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract = next(contract for contract in settings["contracts"] if contract["type"] == "layers")
    return [[name.strip() for name in layer.replace(":", "|").split("|")] for layer in contract["layers"]]


def read_imports() -> Counter[tuple[str, str]]:
    """Return how often a module of one package imports one of another, imports inside functions included."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=False, cache_dir=None)
    arrows: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            ends = tuple(name.split(".")[1] for name in (module, imported) if "." in name)
            if len(ends) == 2 and ends[0] != ends[1]:
                arrows[ends[0], ends[1]] += 1
    return arrows


def faults(layers: list[list[str]], arrows: Counter[tuple[str, str]]) -> list[str]:
    """Return what is wrong with the imports: arrows upwards or sideways, and the first circle."""
    depth = {name: number for number, layer in enumerate(layers) for name in layer}
    found = [f"{a} imports {b}, which lies above it" for a, b in arrows if depth.get(a, -1) >= depth.get(b, 99)]
    below: dict[str, set[str]] = {}
    for a, b in arrows:
        below.setdefault(a, set()).add(b)
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        found.append(f"a circle: {' -> '.join(error.args[1])}")
    return found


def draw(layers: list[list[str]], arrows: Counter[tuple[str, str]], file: Path) -> None:
    """Write the picture: a row per layer, the top one first; the wider an arrow, the more imports it stands for."""
    matplotlib.rcParams["svg.hashsalt"] = PACKAGE
    places = {
        name: (
            (column + 1) / (len(layer) + 1) + (0.0 if len(layer) > 1 else 0.32 * (-1) ** number * (number % 5) / 4),
            -number,
        )
        for number, layer in enumerate(layers)
        for column, name in enumerate(layer)
    }
    figure, axes = pyplot.subplots(figsize=(9, 11))
    for (importer, imported), count in sorted(arrows.items()):
        start, end = places[importer], places[imported]
        axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="-|>",
                mutation_scale=9,
                connectionstyle=f"arc3,rad={0.12 if start[0] <= end[0] else -0.12}",
                linewidth=0.5 + min(count, 30) / 12,
                color="0.55",
                alpha=0.6,
                shrinkA=14,
                shrinkB=14,
            )
        )
    for name, (x, y) in places.items():
        axes.text(x, y, name, ha="center", va="center", bbox={"boxstyle": "round", "fc": "white", "ec": "0.2"})
    axes.set(xlim=(0, 1), ylim=(-len(layers) + 0.4, 0.6))
    axes.axis("off")
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def main() -> int:
    """Draw the picture; return 1 if an import points the wrong way."""
    layers, arrows = read_layers(), read_imports()
    known = {name for layer in layers for name in layer}
    wrong = faults(layers, Counter({pair: count for pair, count in arrows.items() if known.issuperset(pair)}))
    for fault in wrong:
        print(fault, file=sys.stderr)
    draw(layers, Counter({pair: count for pair, count in arrows.items() if known.issuperset(pair)}), FIGURE)
    print(f"{len(arrows)} arrows between {len(known)} packages: {FIGURE}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
