"""A data set whose names are as hostile as names can be."""

from __future__ import annotations

import numpy as np

from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset

SCRIPT = "<script>alert(1)</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>&amp;"
LONG = "a very long name " * 20
# It cannot be parsed as a label.
BRACKETS = "odd[b=2, a=1 <i>]]"
SENSORS = (SCRIPT, QUOTES, LONG)
DETECTORS = ("t2", "max-z", "isolation-forest", "sensor-range", "all-positive")


def hostile_data() -> LabelledDataset:
    """Return a data set with hostile names; one recording is too short to evaluate, one split has one class."""
    rng = np.random.default_rng(0)

    def recording(name: str, n_rows: int, shift: float = 0.0) -> Recording:
        values = rng.normal(size=(n_rows, len(SENSORS)))
        values[100:140, 0] += shift
        return Recording(name, values, SENSORS, time=np.arange(n_rows, dtype=float))

    fault = np.zeros(200, dtype=bool)
    fault[100:140] = True
    splits = {
        "overall": (SCRIPT, QUOTES, LONG, "short"),
        "one class": (QUOTES,),
        "no rows": ("short",),
        SCRIPT: (SCRIPT, LONG),
    }
    labels = {SCRIPT: fault, QUOTES: np.zeros(200, dtype=bool), LONG: fault.copy(), "short": np.zeros(20, dtype=bool)}
    dataset = Dataset(
        name="hostile",
        train=(recording("normal", 600),),
        test=(
            recording(SCRIPT, 200, shift=9.0),
            recording(QUOTES, 200),
            recording(LONG, 200, shift=9.0),
            recording("short", 20),
        ),
        splits=splits,
        notes=(SCRIPT,),
    )
    return LabelledDataset(dataset, Labels(labels, splits))


# Texts that a detector's exception, a stranger's record or a prior may hold.
TEXTS = (
    SCRIPT,
    QUOTES,
    "\x1b]0;owned\x07\x1b[2J\x9b31m",
    "\u202etxt.exe\u2066\u200b\u2028next",
    "lone \ud800 and \ufffe, \x00, \x0b",
    '=HYPERLINK("http://example.org","x")',
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "[click](javascript:alert(1)) ![i](http://example.org/x.png) <http://example.org>",
    "[a]: http://example.org",
    "`code` **bold** __bold__ *i* _i_ ~~gone~~ $x$ &lt;b&gt; \\` \\<b> a|b \\| c",
    "```\nfence",
    r"\input{/etc/passwd} % \end{table*} #1 ^ ~ & $",
    "]]> <!-- --> <?php ?> &#0;",
)
