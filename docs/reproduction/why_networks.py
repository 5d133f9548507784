"""Two networks, trained on all rows and for longer: their thresholds do not come to lie where the paper's must.

Run: TSADBENCH_DATA=... python docs/reproduction/why_networks.py > docs/reproduction/why_networks.txt
"""

from compare import compare

compare(["vanilla-lstm", "vanilla-lstm[epochs=40,held_out=0.0]"], seeds=1)
print(
    "paper, Vanilla LSTM                            0.3627    0.9821    0.5298    0.1149    0.6359    0.5623    0.5558"
)
compare(["conv-ae", "conv-ae[epochs=60,held_out=0.0]"], seeds=1)
print(
    "paper, Conv-AE                                 0.3567    0.9942    0.5250    0.0911    0.6296    0.5428    0.5491"
)
