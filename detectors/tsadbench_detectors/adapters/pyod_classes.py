"""The table of PyOD's classes (3.6.7): which pass the checks, which fail one and why, which cannot be run and why."""

from __future__ import annotations

from collections.abc import Mapping

from tsadbench_detectors.adapters import tails
from tsadbench_detectors.adapters.foreign import Known

_ONE_SERIES = "it cuts windows from one series, so that with several training recordings they would cross borders"
_TURNED = "PyOD gives how real a row looks to the discriminator, the sign is turned here"
_UPSIDE_DOWN = "it turns its scores upside down where those of the training rows are skewed to the left or flat"

_REFUSED = {
    "it is for the nodes of a graph, and scores those only that it was fitted on": (
        *("ANOMALOUS", "AnomalyDAE", "CoLA", "CONAD", "DOMINANT", "GUIDE", "Radar", "SCAN"),
    ),
    "it compares the scored rows with each other and with no training row": ("COF", "LMDD", "LOCI", "SOD", "SOS"),
    "it learns from labelled anomalies": ("DevNet", "XGBOD"),
    "it is made of other detectors, which are given as objects": ("LSCP", "MultiModalOD"),
    f"{_ONE_SERIES}; it scales each sensor's scores by those of the whole scored series": ("KShape", "SAND"),
    f"{_ONE_SERIES}; nor is it the published method: its second phase maximises the discrepancy over the prior, where "
    f"the paper minimises it": ("AnomalyTransformer",),
    f"{_ONE_SERIES}; vanilla-lstm is a forecaster that keeps to them": ("LSTMAD",),
    f"{_ONE_SERIES}; a row's score comes from later windows as well. pyod:CLASS[window=N] has trailing ones": (
        *("TimeSeriesOD",),
    ),
    "it breaks down where the last of its batches holds a single row": ("AE1SVM",),
    "it leaves dropout switched on while it scores, so that a row's score depends on where it stands": ("ALAD",),
    "it is for audio clips": ("AudioAE",),
    "Cook's distance here takes leverage, error and range from the scored rows themselves": ("CD",),
    "it standardises what its networks make of the scored rows by these rows' own statistics": ("DIF",),
    "it is for texts, images and audio": ("EmbeddingOD",),
    "it is for a single sensor": ("MAD",),
    "it scores only the series that it was fitted on": ("MatrixProfile",),
    "it scores rows by blocks of ten, each row of a block against the others": ("RGraph",),
    "it divides by a statistic of the scored rows, the median of their deviations": ("ROD",),
    "it takes the Fourier transform of the whole scored series, later rows included, and scales each sensor's scores "
    "by those of the series": ("SpectralResidual",),
    "it draws its latent variables anew at scoring: a row's score depends on where it stands": ("VAE",),
}
_PASSES = (
    *("ABOD", "CBLOF", "HBOS", "HDBSCAN", "IForest", "INNE", "KDE", "KNN", "LODA", "LOF", "LUNAR", "MCD", "OCSVM"),
    "Sampling",
)

CLASSES: Mapping[str, Known] = {
    **{name: Known(refusal=reason) for reason, names in _REFUSED.items() for name in names},
    **dict.fromkeys(_PASSES, Known()),
    "AnoGAN": Known(
        note="not the published method (Schlegl et al. 2017): at scoring it searches no latent point for a row, but "
        "compares every row with one and the same generated row",
        global_chance=True,
    ),
    "AutoEncoder": Known(module="auto_encoder"),
    "COPOD": Known(alone=tails.copod),
    "DeepSVDD": Known(module="deep_svdd"),
    "ECOD": Known(alone=tails.ecod),
    "FeatureBagging": Known(
        module="feature_bagging", note="needs the package combo, with which it has not been checked"
    ),
    "GMM": Known(chance_with=("n_components",)),
    "KPCA": Known(
        fails=(
            (
                "training-scores",
                "with all components, its default, it reproduces every training row, so that any threshold on training "
                "scores flags everything (n_components=20 does not)",
            ),
        ),
        chance_with=("sampling", "eigen_solver"),
    ),
    "MO_GAAL": Known(
        note=_TURNED,
        fails=(("copies", "a class inside one of its functions cannot be pickled"),),
        turned=True,
        global_chance=True,
    ),
    "PCA": Known(
        note="not the published method (Shyu et al. 2003): it sums distances from the row to the tips of the unit "
        "eigenvectors, where the paper takes the row's projections on them; an eigenvector's sign changes the score",
        fails=(("constant-sensor", "it divides by the variance of every component, that of a constant sensor is 0"),),
        chance_with=("svd_solver",),
    ),
    "QMCD": Known(fails=(("fault", _UPSIDE_DOWN), ("spike", _UPSIDE_DOWN))),
    "SO_GAAL": Known(note=_TURNED, turned=True, global_chance=True),
    "SUOD": Known(note="needs the packages combo and suod, with which it has not been checked"),
}
