"""Plans for every data set and protocol of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic_core import to_jsonable_python

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.config import Configured, RunConfig
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.utils.parameters import nearest


def make_plans(configured: Configured) -> tuple[Plan, ...]:
    """Return a plan for each data set and protocol; every data set is read once.

    Raises
    ------
    UsageError, DataError
        If one of them cannot be planned (`make_plan`), before anything runs.
    """
    config = configured.config
    if not config.detectors:
        raise UsageError(
            "expected a detector, found none: name one with --detector, or with detectors = [...] in --config"
        )
    options = DataOptions(directory=config.data, allow_changed=config.allow_changed_data)
    protocols = _protocols(config)
    loaded = {name: load_dataset(name)(options) for name in dict.fromkeys(config.datasets)}
    _require_names_of_their_own(loaded)
    _require_splits(config.splits, loaded.values())
    plans = []
    for dataset, data in loaded.items():
        for protocol in protocols:
            try:
                plan = make_plan(
                    config.detectors,
                    dataset=data,
                    protocol=protocol,
                    splits=_own_splits(config.splits, dataset, data),
                    seeds=config.seeds,
                    threads=config.threads,
                    settings=[one for one in configured.settings if _name(one) not in {*protocols} - {protocol}],
                    floors=config.floors and config.against is None,
                    timeout=config.timeout,
                    memory_mib=config.memory,
                    contributions=config.contributions,
                )
            except UsageError as error:
                if len(loaded) == len(protocols) == 1:
                    raise
                raise UsageError(f"data set {dataset}, protocol {protocol}: {error}") from error
            plans.append(
                replace(
                    plan,
                    source=(dataset, options),
                    config_hash=configured.sha256,
                    tuning=to_jsonable_python(config.tuned),
                )
            )
    return tuple(plans)


def _protocols(config: RunConfig) -> tuple[str, ...]:
    protocols = tuple(dict.fromkeys(config.protocols))
    if config.against is None:
        return protocols
    if "protocols" in config.model_fields_set and protocols != (config.against,):
        raise UsageError(
            f"--against {config.against} shows rows made under the protocol {config.against!r}, found --protocol "
            f"{' and '.join(protocols)}; rows of two protocols cannot be compared: leave --protocol out"
        )
    return (config.against,)


def _require_names_of_their_own(loaded: Mapping[str, LabelledDataset]) -> None:
    seen: dict[str, str] = {}
    for given, data in loaded.items():
        name = data.dataset.name
        if name in seen:
            raise UsageError(
                f"data sets {seen[name]} and {given} have the same name, {name!r}: their tables would be mixed up; "
                f"change it in one of the cards"
            )
        seen[name] = given


def _require_splits(wanted: Sequence[str], loaded: Iterable[LabelledDataset]) -> None:
    known = tuple(dict.fromkeys(split for data in loaded for split in data.dataset.splits))
    for split in wanted:
        if split not in known:
            raise UsageError(f"there is no split {split!r}{nearest(split, known)}")


def _own_splits(wanted: Sequence[str], given: str, data: LabelledDataset) -> list[str]:
    own = [split for split in wanted if split in data.dataset.splits]
    if wanted and not own:
        known = ", ".join(data.dataset.splits)
        raise UsageError(f"data set {given} has none of the splits {', '.join(wanted)}; it has: {known}")
    return own


def _name(setting: str) -> str:
    """Return whose parameter ``NAME.key=value`` sets."""
    return setting.partition("=")[0].rpartition(".")[0].strip()
