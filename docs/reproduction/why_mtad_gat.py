"""MTAD-GAT: how much the weight of the reconstruction matters, from one fit.

Run: TSADBENCH_DATA=... python docs/reproduction/why_mtad_gat.py > docs/reproduction/why_mtad_gat.txt
"""

from compare import compare

compare(["mtad-gat[gamma=0.0]", "mtad-gat[gamma=0.8]", "mtad-gat", "mtad-gat[gamma=4.0]"], seeds=1, split="other")
print(
    "paper, MTAD-GAT, other                         0.4402    0.9174    0.5949         -    0.7506    0.6852    0.6051"
)
