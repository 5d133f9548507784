"""The table of PyOD's classes: which pass the checks, which fail one and why, which cannot be run and why.

As of PyOD 3.6.7; `tests/detectors/adapters` compares it with the installed library.
"""

from __future__ import annotations

from collections.abc import Mapping

from tsadbench_detectors.adapters import tails
from tsadbench_detectors.adapters.known import Known

_AMONG_THEMSELVES = "it compares the scored rows with each other and with no training row"
_SCORED_STATISTICS = "it divides by a statistic of the scored rows"
_LABELS = "it learns from labelled anomalies"
_GRAPH = "it is for the nodes of a graph, and scores those only that it was fitted on"
_ONE_SERIES = "it cuts windows from one series, so that with several training recordings they would cross borders"
_SCALED_SERIES = f"{_ONE_SERIES}; it scales each sensor's scores by those of the whole scored series"
_OTHER_DETECTORS = "it is made of other detectors, which are given as objects"
_TURNED = "PyOD gives how real a row looks to the discriminator, the sign is turned here"
_UPSIDE_DOWN = "it turns its scores upside down where those of the training rows are skewed to the left or flat"

CLASSES: Mapping[str, Known] = {
    "ABOD": Known(),
    "AE1SVM": Known(refusal="it breaks down where the last of its batches holds a single row"),
    "ALAD": Known(
        refusal="it leaves dropout switched on while it scores, so that a row's score depends on where it stands"
    ),
    "ANOMALOUS": Known(refusal=_GRAPH),
    "AnoGAN": Known(
        note="not the published method (Schlegl et al. 2017): at scoring it searches no latent point for a row, but "
        "compares every row with one and the same generated row",
        global_chance=True,
    ),
    "AnomalyDAE": Known(refusal=_GRAPH),
    "AnomalyTransformer": Known(
        refusal=f"{_ONE_SERIES}; nor is it the published method: its second phase maximises the discrepancy over the "
        f"prior, where the paper minimises it"
    ),
    "AudioAE": Known(refusal="it is for audio clips"),
    "AutoEncoder": Known(),
    "CBLOF": Known(),
    "CD": Known(refusal="Cook's distance here takes leverage, error and range from the scored rows themselves"),
    "COF": Known(refusal=_AMONG_THEMSELVES),
    "CoLA": Known(refusal=_GRAPH),
    "CONAD": Known(refusal=_GRAPH),
    "COPOD": Known(alone=tails.copod),
    "DeepSVDD": Known(),
    "DevNet": Known(refusal=_LABELS),
    "DIF": Known(refusal="it standardises what its networks make of the scored rows by these rows' own statistics"),
    "DOMINANT": Known(refusal=_GRAPH),
    "ECOD": Known(alone=tails.ecod),
    "EmbeddingOD": Known(refusal="it is for texts, images and audio"),
    "FeatureBagging": Known(note="needs the package combo, with which it has not been checked"),
    "GMM": Known(chance_with=("n_components",)),
    "GUIDE": Known(refusal=_GRAPH),
    "HBOS": Known(),
    "HDBSCAN": Known(),
    "IForest": Known(),
    "INNE": Known(),
    "KDE": Known(),
    "KNN": Known(),
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
    "KShape": Known(refusal=_SCALED_SERIES),
    "LMDD": Known(refusal=_AMONG_THEMSELVES),
    "LOCI": Known(refusal=_AMONG_THEMSELVES),
    "LODA": Known(),
    "LOF": Known(),
    "LSCP": Known(refusal=_OTHER_DETECTORS),
    "LSTMAD": Known(refusal=f"{_ONE_SERIES}; vanilla-lstm is a forecaster that keeps to them"),
    "LUNAR": Known(),
    "MAD": Known(refusal="it is for a single sensor"),
    "MatrixProfile": Known(refusal="it scores only the series that it was fitted on"),
    "MCD": Known(),
    "MO_GAAL": Known(
        note=_TURNED,
        fails=(("copies", "a class inside one of its functions cannot be pickled"),),
        turned=True,
        global_chance=True,
    ),
    "MultiModalOD": Known(refusal=_OTHER_DETECTORS),
    "OCSVM": Known(),
    "PCA": Known(
        note="not the published method (Shyu et al. 2003): it sums distances from the row to the tips of the unit "
        "eigenvectors, where the paper takes the row's projections on them; an eigenvector's sign changes the score",
        fails=(("constant-sensor", "it divides by the variance of every component, that of a constant sensor is 0"),),
        chance_with=("svd_solver",),
    ),
    "QMCD": Known(fails=(("fault", _UPSIDE_DOWN), ("spike", _UPSIDE_DOWN))),
    "Radar": Known(refusal=_GRAPH),
    "RGraph": Known(refusal="it scores rows by blocks of ten, each row of a block against the others"),
    "ROD": Known(refusal=f"{_SCORED_STATISTICS}, the median of their deviations"),
    "Sampling": Known(),
    "SAND": Known(refusal=_SCALED_SERIES),
    "SCAN": Known(refusal=_GRAPH),
    "SO_GAAL": Known(note=_TURNED, turned=True, global_chance=True),
    "SOD": Known(refusal=_AMONG_THEMSELVES),
    "SOS": Known(refusal=_AMONG_THEMSELVES),
    "SpectralResidual": Known(
        refusal="it takes the Fourier transform of the whole scored series, later rows included, and scales each "
        "sensor's scores by those of the series"
    ),
    "SUOD": Known(note="needs the packages combo and suod, with which it has not been checked"),
    "TimeSeriesOD": Known(
        refusal=f"{_ONE_SERIES}; a row's score comes from later windows as well. pyod:CLASS[window=N] has trailing ones"
    ),
    "VAE": Known(refusal="it draws its latent variables anew at scoring: a row's score depends on where it stands"),
    "XGBOD": Known(refusal=_LABELS),
}
