"""Fits a detector for use: in the box, on a protocol's training recordings, with the protocol's threshold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tsadbench.base.detector import Traits
from tsadbench.base.protocol import Episode, Scored
from tsadbench.base.scores import difference
from tsadbench.base.serialization import safetensors_package
from tsadbench.errors import ModelFileError, UsageError
from tsadbench.execution.identity import manifest
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.execution.request import DatasetSpec, DetectorSpec, RunRequest
from tsadbench.registry import Source, defaults
from tsadbench.sandbox import Box, Limits
from tsadbench.serving.model import MAGIC, Model, ModelCard, boxed, card_and_parts, load_model, model_bytes, refused
from tsadbench.utils.files import require_writable, write_file
from tsadbench.utils.progress import progress
from tsadbench.utils.text import counted

# Number of training rows on which the restored detector must score like the fitted one.
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
    timeout: float | None = None,
    memory_mib: float | None = None,
) -> Model:
    """Fit a detector in a box, write a model file, and restore it in this process (the file stays if that fails).

    The fit and the threshold are those of `tsadbench run` with the same seed.

    Parameters
    ----------
    detector, dataset, protocol, settings, threads, timeout, memory_mib
        As in a `RunRequest`, but no scikit-learn objects. The default detector is the one registered for `fit`. The
        data set is required; it needs neither labels nor test recordings.
    out
        The file to write; required.
    entity, seed
        The entity to model, if the protocol fits one model per entity; the seed of a stochastic detector.

    Raises
    ------
    UsageError, DataError, ModelFileError, BoxFailure
        If an argument is unknown or out of range, or the detector fails or cannot be stored in a file.
    """
    if dataset is None or out is None:
        raise UsageError("fit_model needs a data set and a file to write: fit_model(dataset=..., out=...)")
    request = RunRequest(
        detectors=[defaults("fit")[0] if detector is None else detector],
        datasets=[dataset],
        protocols=[protocol],
        seeds=[seed],
        threads=threads,
        settings=settings,  # type: ignore[arg-type]  # the request parses texts
        timeout=timeout,
        memory=memory_mib,
    )
    _, _, source = write_model(request, Path(out), entity)
    return load_model(out, detector=source.target)  # the card names a detector's file without its folder


def write_model(request: RunRequest, out: Path, entity: str | None = None) -> tuple[ModelCard, Traits, Source]:
    """Fit the only detector of a request and write a model file, as `fit_model`; all of its code runs in boxes."""
    safetensors_package()
    require_writable(out)
    if out.is_file() and out.stat().st_size and not out.read_bytes().startswith(MAGIC):
        raise UsageError(f"{out}: exists and is not a model; remove it, or choose another file to write")
    plan = make_plan(request.model_copy(update={"floors": False}), judged=False)
    data, (trial,) = plan.data.dataset, plan.trials
    construction, label = trial.contender.seeded(trial.seed), trial.contender.label
    episode = _episode(plan, entity)
    compared = episode.train[0].rows(0, min(_COMPARED_ROWS, episode.train[0].n_rows))
    started = datetime.now(UTC)
    limits, forbidden = Limits(plan.timeout, plan.memory_mib), () if data.folder is None else (data.folder,)
    with Box(construction, threads=trial.threads, limits=limits, listener=progress, forbidden=forbidden) as box:
        box.fit(episode.train)
        train = box.training_scores()
        calibration = tuple(box.score(recording) for recording in episode.calibration)
        scored = Scored(episode, train, (), trial.contender.traits.fixed_threshold, calibration)
        threshold, parts, expected = plan.protocol.find_threshold(scored), box.learned(), box.score(compared)
    if threshold.method == "dspot":
        raise UsageError("a model has one constant threshold, and dspot moves it; use threshold=pot", field="settings")
    made = manifest(trial, plan, started) | ({} if entity is None else {"entity": entity})
    card = ModelCard(
        detector=trial.contender.name,
        label=label,
        class_name=trial.contender.description.class_name,
        code_hash=trial.contender.description.sources.digest,
        sensors=data.sensors,
        threshold=threshold,
        protocol=plan.protocol_label,
        dataset=data.name,
        n_rows=sum(recording.n_rows for recording in episode.train),
        layout=data.layout,
        threads=trial.threads,
        manifest={name: value for name, value in made.items() if name not in ("labels_hash", "fit_shared_with")},
    )
    content = model_bytes(card, parts)
    rule = "keep what it learns in attributes, or write _learned and _restore (docs/using-a-model.md)"
    try:
        restored = boxed(*card_and_parts(content), construction.source, limits=limits, forbidden=forbidden)
        with restored as model, refused("", ModelFileError):
            traits, again = model.detector.declared_traits(), model.detector.score(compared)
    except ModelFileError as error:
        raise ModelFileError(f"{label} fails when restored from its file ({error}): {rule}") from error
    if difference(again, expected)[0] is not None:
        raise ModelFileError(f"{label} scores differently when restored from its file: {rule}")
    write_file(out, content)
    return card, traits, construction.source


def _episode(plan: Plan, entity: str | None) -> Episode:
    """Return the only episode, or the episode of an entity."""
    data, episodes = plan.data.dataset, {episode.id: episode for episode in plan.episodes}
    if entity is None and len(episodes) == 1:
        return plan.episodes[0]
    by_entity = len(data.by_entity) > 1 and episodes.keys() <= data.by_entity.keys()
    if by_entity and entity in episodes:
        return episodes[entity]
    advice = f"choose one of {', '.join(episodes)}" if by_entity else "leave it out, or choose strict or published"
    n_models = counted(len(episodes), "model")
    fits = f"{plan.protocol_label} fits {n_models} on {data.name}, none for {entity or 'the whole data set'}"
    raise UsageError(f"{fits}: {advice}", field="entity" if by_entity or entity else "protocol")
