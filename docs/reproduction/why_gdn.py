"""GDN: what it is normalised by decides its recall and F1; AUROC depends on more.

Run: TSADBENCH_DATA=... python docs/reproduction/why_gdn.py > docs/reproduction/why_gdn.txt
"""

from compare import compare

compare(["gdn", "gdn[quirks=on]", "gdn[quirks=on,smoothing=1]", "gdn[quirks=on,smoothing=30]"], seeds=2)
compare(["gdn[quirks=on,window=5]", "gdn[quirks=on,window=15]", "gdn[epochs=5,min_steps=1,quirks=on]"], seeds=2)
print(
    "paper, GDN                                     0.4750    0.0460    0.0753         -    0.5314    0.3820    0.5223"
)
