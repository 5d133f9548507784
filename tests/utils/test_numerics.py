"""Limits on threads, as threadpoolctl reports them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

AFTER_AN_IMPORT = """
import json
import numpy
from threadpoolctl import threadpool_info
from tsadbench.utils.numerics import limit_threads

limit_threads(1)
before = len(threadpool_info())
import sklearn.ensemble  # brings OpenMP and a second OpenBLAS
limit_threads(1)
print(json.dumps([before, [pool["num_threads"] for pool in threadpool_info()]]))
"""


def test_libraries_loaded_later_are_limited_too():
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", AFTER_AN_IMPORT], capture_output=True, text=True, check=True, env=environment
    )
    n_before, after = json.loads(done.stdout)
    assert len(after) > n_before
    assert set(after) == {1}
