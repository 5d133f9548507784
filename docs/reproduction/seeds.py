"""Every seed of rows whose mean is off, from the committed records.

Run: python docs/reproduction/seeds.py > docs/reproduction/seeds.txt
"""

import json
from pathlib import Path

LABELS = (
    "dprgm",
    "dprgm[edge_weights=off]",
    "dprgm[edge_weights=off,node_weights=off]",
    "dprgm[graph=none]",
    "dprgm[graph=correlation]",
    "dprgm[graph=random]",
    "dprgm[backbone=gat]",
    "dprgm[backbone=gcn]",
    "dprgm[backbone=transformer]",
)

lines = (Path(__file__).parents[2] / "leaderboards" / "paper" / "records.jsonl").read_text().splitlines()
records = [json.loads(line) for line in lines]
for metric in ("auroc", "auprc", "prac_f1"):
    print(f"{metric}, overall, seeds 0 to 4")
    for label in LABELS:
        of_label = sorted((one for one in records if one["label"] == label), key=lambda one: one["seed"])
        values = [one["splits"]["overall"]["metrics"][metric] for one in of_label]
        print(f"  {label:42}" + " ".join(f"{value:.4f}" for value in values))
