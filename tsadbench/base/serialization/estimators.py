"""scikit-learn's estimators as bytes and back by skops, which constructs no type that it does not trust."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import IsolationForest
from sklearn.tree import BaseDecisionTree

from tsadbench.base.serialization.bounds import check_unpacked_size
from tsadbench.errors import ModelFileError
from tsadbench.utils.extras import extra

# skops does not trust trees because their nodes point to each other unchecked: `_check_tree` checks them.
_TREE = "sklearn.tree._tree.Tree"
_LEAF = -1


def dump_estimator(estimator: BaseEstimator, what: str) -> bytes:
    """Return an estimator as bytes.

    Parameters
    ----------
    estimator
        A fitted estimator.
    what
        Its name in messages.

    Raises
    ------
    ModelFileError
        If `load_estimator` would refuse it.
    MissingExtraError
        If skops is not installed.
    """
    data: bytes = _skops().dumps(estimator)
    untrusted = _untrusted(data, estimator)
    if untrusted:
        raise ModelFileError(
            f"{what} cannot be kept in a file: it holds types that skops does not trust: {untrusted}; choose "
            f"parameters or a detector without them"
        )
    return data


def load_estimator(data: bytes) -> BaseEstimator:
    """Return the estimator that `dump_estimator` gave.

    Raises
    ------
    ModelFileError
        If the bytes hold no estimator, types that are not trusted, or trees with invalid nodes.
    MissingExtraError
        If skops is not installed.
    """
    skops = _skops()
    try:
        check_unpacked_size(data)
        # Untrusted types are refused before anything is constructed; only trees are checked afterwards.
        estimator: object = skops.loads(data, trusted=[_TREE])
        untrusted = _untrusted(data, estimator)
        if untrusted:
            raise ValueError(f"it holds types that are not trusted: {untrusted}")
        if not isinstance(estimator, BaseEstimator):
            raise ValueError(f"found a {type(estimator).__name__}")
        if isinstance(estimator, IsolationForest):
            _check_forest(estimator)
    except Exception as error:  # skops passes on whatever error a constructed class raises
        reason = " ".join(str(error).split())[:200]
        raise ModelFileError(f"an estimator of scikit-learn in it cannot be read: {reason}") from error
    return estimator


def _untrusted(data: bytes, estimator: object) -> list[str]:
    """Return the types that may not be constructed; an isolation forest's trees may."""
    trusted = [_TREE] if type(estimator) is IsolationForest else []
    return [name for name in _skops().get_untrusted_types(data=data) if name not in trusted]


def _check_forest(forest: IsolationForest) -> None:
    """Raise a ValueError unless every tree's nodes lead to later ones and use features that exist."""
    for member, features in zip(forest.estimators_, forest.estimators_features_, strict=True):
        if not isinstance(member, BaseDecisionTree) or not _within(np.asarray(features), forest.n_features_in_):
            raise ValueError("a member of the forest is no tree over its features")
        _check_tree(member.tree_, len(features))


def _check_tree(tree: Any, n_features: int) -> None:  # scikit-learn's compiled class has no types
    if tree.node_count > tree.capacity:
        raise ValueError("a tree has fewer nodes than it counts")
    numbers = np.arange(tree.node_count)
    inner = tree.children_left != _LEAF
    for children in (tree.children_left, tree.children_right):
        if (children[inner] <= numbers[inner]).any() or not _within(children[inner], tree.node_count):
            raise ValueError("a tree's nodes do not lead to later ones")
    if not _within(tree.feature[inner], min(n_features, tree.n_features)):
        raise ValueError("a tree uses features that do not exist")


def _within(numbers: Any, end: int) -> bool:
    return bool(((numbers >= 0) & (numbers < end)).all())


def _skops() -> Any:
    with extra("keeping scikit-learn's estimators in a file", "models"):
        import skops.io
    return skops.io
