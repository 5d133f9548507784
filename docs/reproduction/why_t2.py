"""T-squared between its two extremes, the covariance as it is and none; T-squared and Q with other components.

Run: TSADBENCH_DATA=... python docs/reproduction/why_t2.py > docs/reproduction/why_t2.txt
"""

import numpy as np
from compare import compare
from material import judged, test_z, train_z

covariance = np.cov(train_z, rowvar=False)
variances = np.linalg.eigvalsh(covariance)
print(f"variances of the principal components of the training z-scores: {np.round(variances[::-1], 3).tolist()}")
for share in (0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0):
    regularised = (1 - share) * covariance + share * np.eye(len(covariance))
    distance = np.einsum("ij,ij->i", test_z @ np.linalg.inv(regularised), test_z)
    judged(f"T-squared, covariance shrunk to the identity by {share:.2f}", distance)
print("paper, T-squared                                           AUROC 0.6737  AUPRC 0.6246  BF-F1 0.5580")
compare(["t2-q", *(f"t2-q[variance={share}]" for share in (0.7, 0.9, 0.95)), "t2-q[smoothing=5]"], seeds=1)
print(
    "paper, T2+Q                                    0.3737    0.9693    0.5394    0.1571    0.6656    0.6133    0.5490"
)
