"""Figures of stored trials with matplotlib, for papers and notebooks; `tsadbench plot` writes them to files.

A function that draws one panel takes and returns matplotlib axes; one that draws several takes a figure, or a part of
one, and returns its axes. If none is given, it creates one with pyplot, which a notebook shows. ``with style():``
applies the project's style to everything drawn in the block.

Examples
--------
>>> from tsadbench.reporting.figures import roc, style
>>> from tsadbench.leaderboard.selection import select
>>> chosen = select("runs", detectors=["dprgm", "max-z"], split="overall")  # doctest: +SKIP
>>> with style():  # doctest: +SKIP
...     axes = roc(chosen.results(), chosen.split)
"""

from __future__ import annotations

from tsadbench.utils.extras import extra

with extra("figures", "report"):  # for all modules of this package, which import matplotlib at their top
    import matplotlib  # noqa: F401

from tsadbench.reporting.figures.curves import precision_recall, roc
from tsadbench.reporting.figures.densities import densities, density
from tsadbench.reporting.figures.graph import adjacency, graph, node_weights, prior
from tsadbench.reporting.figures.recording import contributions, explanation, recording, score, sensors
from tsadbench.reporting.figures.seeds import seeds, seeds_of_metric
from tsadbench.reporting.figures.speed import speed
from tsadbench.reporting.figures.style import save, style
from tsadbench.reporting.figures.threshold import threshold

__all__ = [
    "adjacency",
    "contributions",
    "densities",
    "density",
    "explanation",
    "graph",
    "node_weights",
    "precision_recall",
    "prior",
    "recording",
    "roc",
    "save",
    "score",
    "seeds",
    "seeds_of_metric",
    "sensors",
    "speed",
    "style",
    "threshold",
]
