"""MSET: what the size of its memory and the unit of its residual do.

Run: TSADBENCH_DATA=... python docs/reproduction/why_mset.py > docs/reproduction/why_mset.txt
"""

from compare import compare

compare([f"mset[memory_rows={rows}]" for rows in (25, 50, 100, 300, 600, 1200)] + ["mset"], seeds=1)
compare(["mset[residual=raw]", "mset[memory_rows=600,residual=raw]", "mset[residual=raw,smoothing=60]"], seeds=1)
compare(["mset[ridge=0.01]", "mset[ridge=0.1]", "mset[smoothing=60]"], seeds=1)
print(
    "paper, MSET                                    0.3695    0.8422    0.5136    0.0823    0.6388    0.5908    0.5336"
)
