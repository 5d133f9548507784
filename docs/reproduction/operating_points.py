"""How far the normal test rows lie from the training rows, sensor by sensor and split by split.

Run: TSADBENCH_DATA=... python docs/reproduction/operating_points.py > docs/reproduction/operating_points.txt
"""

import numpy as np

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.skab import load

data = load(DataOptions())
train = np.concatenate([recording.values for recording in data.dataset.train])
mean, deviation = train.mean(axis=0), train.std(axis=0)
low, high = train.min(axis=0), train.max(axis=0)
test = {recording.id: recording for recording in data.dataset.test}
sensors = data.dataset.sensors

print("median z-score of the normal test rows against the training rows; share of them outside the training range")
print(f"{'sensor':22}" + "".join(f"{split:>16}" for split in ("valve1", "valve2", "other")))
outside_any = {}
columns = {}
for split in ("valve1", "valve2", "other"):
    ids = data.labels.splits[split]
    rows = np.concatenate([test[name].values[~data.labels.rows[name]] for name in ids])
    outside = (rows < low) | (rows > high)
    columns[split] = (np.median((rows - mean) / deviation, axis=0), outside.mean(axis=0))
    outside_any[split] = outside.any(axis=1).mean()
for number, sensor in enumerate(sensors):
    cells = (f"{z[number]:+8.1f} {share[number]:6.1%}" for z, share in columns.values())
    print(f"{sensor:22}" + " ".join(cells))
print(f"{'any sensor outside':22}" + " ".join(f"{'':8} {share:6.1%}" for share in outside_any.values()))
