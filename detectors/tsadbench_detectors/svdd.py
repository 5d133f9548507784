"""Support vector data description: the smallest ball around the training rows."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tsadbench.base import Traits
from tsadbench_detectors.ocsvm import OneClassSVM


class SVDD(OneClassSVM):
    """Scores how far a row is outside the smallest ball around normal rows; with an RBF kernel, equal to `ocsvm`.

    The ball lies in the kernel's feature space and may leave a few training rows outside. With an RBF kernel it is the
    one-class support vector machine under another name: same problem, same weights, same scores. A table needs only
    one of the two. The paper's C is ``1 / (nu n)`` with n training rows, its width s is ``gamma^-1/2``.

    Notes
    -----
    Equations
        Minimise ``R^2 + C sum_i xi_i`` subject to ``|phi(x_i) - a|^2 <= R^2 + xi_i``. The dual maximises
        ``sum_i alpha_i k(x_i, x_i) - sum_ij alpha_i alpha_j k(x_i, x_j)`` subject to ``0 <= alpha_i <= C`` and
        ``sum_i alpha_i = 1``. An RBF kernel has ``k(x, x) = 1``, so that the first sum is 1; what remains is the dual
        of the one-class support vector machine with ``C = 1 / (nu n)``. With f(x) = ``sum_i alpha_i k(x_i, x)`` and
        rho its value on the ball's surface, ``|phi(x) - a|^2 - R^2 = 2 (rho - f(x))``; the score is
        ``log rho - log f(x)``.
    Differences
        The paper scores ``|phi(x) - a|^2 - R^2``, which is ``2 rho (1 - exp(-score))``: the same order and sign. Other
        kernels, and the paper's outliers among the training rows, are left out.
    Defaults
        Those of `ocsvm`, so that their rows in a table are equal.

    References
    ----------
    D. M. J. Tax and R. P. W. Duin, Support vector data description, Machine Learning 54, 2004.
    """

    traits: ClassVar[Traits] = replace(OneClassSVM.traits, paper="Tax and Duin, Machine Learning 54, 2004")
