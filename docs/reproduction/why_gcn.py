"""DPR-GM with graph convolution, with and without weights on its edges.

Run: TSADBENCH_DATA=... python docs/reproduction/why_gcn.py > docs/reproduction/why_gcn.txt
"""

from compare import compare

compare(["dprgm[backbone=gcn]", "dprgm[backbone=gcn,edge_weights=off]"], seeds=1)
print(
    "paper, GCN                                          -         -    0.5471         -    0.7145    0.6981         -"
)
