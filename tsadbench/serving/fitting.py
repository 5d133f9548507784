"""Fit a detector for use: on a protocol's training recordings, in the box, with the protocol's threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from tsadbench.base.dataset import DataOptions
from tsadbench.base.protocol import Episode, Scored, Threshold
from tsadbench.base.recording import Recording
from tsadbench.base.serialization import safetensors_package
from tsadbench.errors import ModelFileError, UsageError
from tsadbench.execution.identity import manifest
from tsadbench.execution.plan import Plan, Trial, make_plan
from tsadbench.execution.request import SEEDS_BELOW, DatasetSpec, DetectorSpec, RunRequest
from tsadbench.registry import defaults
from tsadbench.sandbox import Box, Limits, describe
from tsadbench.serving.model import Model, ModelCard, from_bytes, is_model, model_bytes, require_finite
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.files import require_writable, write_file
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.progress import Listener
from tsadbench.utils.text import counted

# Training rows that the file's detector must score as the fitted one does.
_COMPARED_ROWS = 500


def fit_model(
    detector: DetectorSpec | None = None,
    dataset: DatasetSpec | None = None,
    out: Path | str | None = None,
    *,
    protocol: str = "strict",
    entity: str | None = None,
    settings: Sequence[str] = (),
    seed: int = 0,
    threads: int = 1,
    data: DataOptions | None = None,
    timeout: float | None = None,
    memory_mib: float | None = None,
    require_seal: bool = False,
    listener: Listener | None = None,
) -> Model:
    """Fit a detector in a box of its own, and write a model file.

    It is the fit that `tsadbench run` makes with the same seed, on the same rows, and the same threshold.

    Parameters
    ----------
    detector
        As in a `RunRequest`; None: the default that a package registers, ``multiview`` of those that ship.
    dataset, protocol, settings, threads, data, timeout, memory_mib, require_seal
        As in a `RunRequest`. The protocol must fit one detector for the whole data set, or one an entity. The data set
        needs neither labels nor test recordings, and must be given.
    out
        The file to write; must be given.
    entity
        Whose model it is, if the protocol fits one for each entity.
    seed
        Of a detector that is stochastic.
    listener
        Receives the detector's progress reports.

    Returns
    -------
    Model
        As read from the file.

    Raises
    ------
    UsageError, DataError
        If anything asked for does not exist or is out of range.
    ModelFileError
        If the detector cannot be kept in a file.
    BoxFailure
        If the detector fails.
    """
    if dataset is None or out is None:
        missing = "a data set" if dataset is None else "a file to write"
        raise UsageError(
            f"fit_model: expected {missing}, found none; write fit_model(dataset=..., out=...) for the default "
            "detector, or fit_model(detector, dataset, out)"
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEEDS_BELOW:
        raise UsageError(f"seed: expected an integer of at least 0 and below {SEEDS_BELOW}, found {seed!r}")
    safetensors_package()
    require_writable(Path(out))
    _require_new_or_model(Path(out))
    options = data or DataOptions()
    request = RunRequest(
        detectors=[defaults("fit")[0] if detector is None else detector],
        datasets=[dataset],
        protocols=[protocol],
        seeds=1,
        threads=threads,
        settings=settings,  # type: ignore[arg-type]  # texts, which the request reads
        floors=False,
        data=options.directory,
        allow_changed_data=options.allow_changed,
        timeout=timeout,
        memory=memory_mib,
        require_seal=require_seal,
        contributions=False,
    )
    plan = make_plan(request, judged=False)
    trial = Trial(plan.trials[0].contender, seed, threads)
    describe(trial.contender.seeded(seed), sensors=plan.data.dataset.sensors)
    episode = _episode(plan, entity)
    compared = episode.train[0].rows(0, min(_COMPARED_ROWS, episode.train[0].n_rows))
    started = datetime.now(UTC)
    threshold, parts, expected = _fit_in_box(trial, plan, episode, compared, listener)
    require_finite(threshold)
    card = ModelCard(
        detector=trial.contender.name,
        label=trial.contender.label,
        class_name=trial.contender.description.class_name,
        code_hash=trial.contender.description.sources.digest,
        sensors=plan.data.dataset.sensors,
        threshold=threshold,
        protocol=plan.protocol_label,
        dataset=plan.data.dataset.name,
        n_rows=sum(recording.n_rows for recording in episode.train),
        layout=plan.data.dataset.layout,
        manifest=_without_labels(manifest(trial, plan, started)) | ({} if entity is None else {"entity": entity}),
    )
    content = model_bytes(card, parts)
    # The card names a detector's file without its folder; here it is read where it lies.
    model = from_bytes(content, detector=trial.contender.construction.source.target)
    if not np.allclose(model.detector.score(compared), expected, rtol=1e-6, atol=0.0, equal_nan=True):
        raise ModelFileError(
            f"{trial.contender.label} cannot be kept in a file: read back from it, it scores otherwise; what it learns "
            f"must lie in attributes, or _learned and _restore must see to it (docs/using-a-model.md)"
        )
    write_file(Path(out), content)
    return model


def _require_new_or_model(out: Path) -> None:
    """Raise a UsageError rather than overwrite what is no model: a card, its data, a detector's file."""
    if out.is_file() and out.stat().st_size and not is_model(out):
        raise UsageError(f"{out}: exists and is no model; remove it, or choose another file to write")


def _episode(plan: Plan, entity: str | None) -> Episode:
    """Return the only episode, or that of an entity; a UsageError if there is no such one."""
    data, episodes = plan.data.dataset, {episode.id: episode for episode in plan.episodes}
    models = tuple(episodes) if len(data.by_entity) > 1 and episodes.keys() <= data.by_entity.keys() else ()
    if entity is None and len(episodes) == 1:
        return plan.episodes[0]
    if entity in models:
        return episodes[entity]
    advice = f"choose an entity by --entity: {', '.join(models)}" if models else "choose strict or published"
    fits = f"protocol {plan.protocol_label} fits {counted(len(episodes), 'model')} on {data.name}"
    raise UsageError(f"{fits}, {'not one' if entity is None else f'none for {entity!r} alone'}: {advice}")


def _fit_in_box(
    trial: Trial, plan: Plan, episode: Episode, compared: Recording, listener: Listener | None
) -> tuple[Threshold, dict[str, bytes], FloatArray]:
    """Return the threshold, the fitted detector's parts, and its scores of the compared rows."""
    folder = plan.data.dataset.folder
    box = Box(
        trial.contender.seeded(trial.seed),
        threads=trial.threads,
        limits=Limits(plan.timeout, plan.memory_mib, sealed_only=plan.require_seal),
        listener=listener,
        forbidden=() if folder is None else (folder,),
    )
    with box:
        box.fit(episode.train)
        train = box.training_scores()
        calibration = tuple(box.score(recording) for recording in episode.calibration)
        scored = Scored(episode, train, (), trial.contender.traits.fixed_threshold, calibration)
        return plan.protocol.threshold(scored), box.learned(), box.score(compared)


def _without_labels(made: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a trial's manifest without what does not concern a model."""
    return {name: value for name, value in made.items() if name not in ("labels_hash", "fit_shared_with")}
