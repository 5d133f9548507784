"""Networks that are trained on all rows for longer: their training errors, and so their thresholds, are smaller.

Run: TSADBENCH_DATA=... python docs/reproduction/why_networks.py > docs/reproduction/why_networks.txt
"""

from compare import compare

compare(["vanilla-lstm", "vanilla-lstm[epochs=40,held_out=0.0]"], seeds=1)
print(
    "paper, Vanilla LSTM                            0.3627    0.9821    0.5298    0.1149    0.6359    0.5623    0.5558"
)
compare(["lstm-ae", "lstm-ae[epochs=40,held_out=0.0]"], seeds=1)
print(
    "paper, LSTM-AE                                 0.3557    0.9986    0.5246    0.0919    0.6337    0.5608    0.5525"
)
compare(["conv-ae", "conv-ae[epochs=60,held_out=0.0]"], seeds=1)
print(
    "paper, Conv-AE                                 0.3567    0.9942    0.5250    0.0911    0.6296    0.5428    0.5491"
)
compare(["lstm-vae", "lstm-vae[held_out=0.0]"], seeds=1)
print(
    "paper, LSTM-VAE                                0.3550    0.9993    0.5238    0.0873    0.6694    0.6194    0.5507"
)
