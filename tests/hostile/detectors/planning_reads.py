"""Planning: a module that looks round while it is imported."""

from __future__ import annotations

import gc
import os
import re
import sys
from pathlib import Path

from tests.hostile.preamble import WHERE, Hostile, as_text, attempts


def _look():
    yield "\n".join(os.environ.values())
    for path in (*WHERE["labels"], WHERE["home_secret"]):
        yield from attempts(lambda path=path: Path(path).read_bytes())
    frame = sys._getframe()
    while frame is not None:
        yield from attempts(lambda frame=frame: repr(frame.f_locals)[: 10**6])
        frame = frame.f_back
    for one in gc.get_objects():
        if type(one).__name__ in ("Labels", "Dataset", "LabelledDataset"):
            yield from attempts(lambda one=one: repr(one))


# It also sees its own source, so only secrets count.
SEEN = [found for text in _look() for found in re.findall("canary-[0-9a-f]{16}-[a-z]+", as_text(text))]


class LooksRoundAtImport(Hostile):
    """reads files, environment and the callers' variables while it is imported, for later"""

    def steal(self):
        return SEEN
