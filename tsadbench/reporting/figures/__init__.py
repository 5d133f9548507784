"""Figures of stored trials with matplotlib, for papers and notebooks; `tsadbench plot` writes them to files.

Functions that draw one panel take the data and matplotlib axes, and return the axes; functions that draw several panels
take a figure or subfigure, and return its axes. By default they create one with pyplot, which notebooks show.
``with style():`` applies the project's style to everything drawn in the block.

Examples
--------
>>> from tsadbench.analysis.stored import select
>>> from tsadbench.reporting.figures import roc, style
>>> chosen = select("runs", detectors=["dprgm", "max-z"], split="overall")  # doctest: +SKIP
>>> with style():  # doctest: +SKIP
...     ax = roc(chosen.results(), split=chosen.split)
"""

from __future__ import annotations

from tsadbench.utils.extras import extra

with extra("figures", "report"):  # all modules of this package import matplotlib at the top
    import matplotlib  # noqa: F401

from tsadbench.reporting.figures.curves import precision_recall, roc
from tsadbench.reporting.figures.graph import adjacency, graph, node_weights, prior
from tsadbench.reporting.figures.recording import alarms, contributions, explanation, recording, score, sensors
from tsadbench.reporting.figures.significance import critical_differences, differences, mean_ranks, sessions
from tsadbench.reporting.figures.style import save, style
from tsadbench.reporting.figures.threshold import density, return_levels, threshold
from tsadbench.reporting.figures.trials import draw_trials, metrics_of, seeds, speed, trial_frame

__all__ = [
    "adjacency", "alarms", "contributions", "critical_differences", "density", "differences", "draw_trials",
    "explanation", "graph", "mean_ranks", "metrics_of", "node_weights", "precision_recall", "prior", "recording",
    "return_levels", "roc", "save", "score", "seeds", "sensors", "sessions", "speed", "style", "threshold",
    "trial_frame",
]  # fmt: skip
