"""``tsadbench verify``: whether the tables are what the stored scores and the labels give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.options import (
    CardsOption,
    DataOption,
    MemoryOption,
    RunsArgument,
    TimeoutOption,
    TrustCodeOption,
)
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.execution.run_store import Store


def verify(
    runs: RunsArgument,
    redo: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Instead, run N trials again, drawn at random, or all of them (all), and compare their scores.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0, help="How far the scores of --redo may differ, as a share of the range of the test scores."
        ),
    ] = 1e-6,
    dataset: CardsOption = None,
    data: DataOption = None,
    trust_code: TrustCodeOption = False,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
) -> None:
    """Check every record against itself, and its thresholds and metrics against the stored scores and the labels.

    No detector runs, so this cannot know whether a detector made the scores. --redo N does: it runs N trials again,
    from the code that is installed here, and compares their scores with the stored ones, to the bit or within a
    tolerance.

    Exit code 1 if something differs or was edited, if data or labels are not those that the trial was run on, or if a
    trial cannot be checked. A detector's code that has changed since is reported, but does not count. A trial that
    other rules than today's have judged is judged again, and its record written anew.
    """
    from tsadbench.cli.actions.loading import loader
    from tsadbench.execution.run_store import Store

    number = _number(redo)
    load = loader(dataset or [], data)
    store = Store.open(runs)
    if redo is None:
        whole = _checked(store, load, trust_code)
    else:
        whole = _redone(store, load, number, trust_code, tolerance, timeout, memory)
    if not whole:
        raise typer.Exit(1)


def _number(redo: str | None) -> int | None:
    """Return how many trials to run again; None for all."""
    if redo is None or redo == "all":
        return None
    if not redo.isdecimal() or int(redo) < 1:
        raise UsageError(f"--redo {redo}: expected a number of trials, at least 1, or all")
    return int(redo)


def _checked(store: Store, load: Callable[[str], LabelledDataset], trust_code: bool) -> bool:
    from tsadbench.cli.live import progress_bar
    from tsadbench.cli.output import in_words
    from tsadbench.results.verification import verify as verified
    from tsadbench.utils.text import one_line

    counts: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    with progress_bar("Verifying", time_left=True):
        for checked in verified(store, load, trust_code=trust_code):
            counts[checked.verdict] += 1
            remarks.update(checked.remarks)
            for fault in checked.faults:
                typer.echo(f"{checked.verdict}: {checked.trial}{in_words(checked.record)}: {one_line(fault)}")
    for remark, count in remarks.items():
        typer.echo(f"note: {one_line(remark)} ({count} trials)")
    total = sum(counts.values())
    typer.echo(
        f"{total} trials: {counts['same']} as recorded, {counts['differs']} differ, "
        f"{counts['cannot be checked']} cannot be checked"
    )
    typer.echo(
        "verified: records against their checksums and identities, thresholds and metrics against scores and labels; "
        f"not verifiable without running: that the detectors made these scores (tsadbench verify {store.path} --redo N)"
    )
    return counts["same"] == total


def _redone(
    store: Store,
    load: Callable[[str], LabelledDataset],
    number: int | None,
    trust_code: bool,
    tolerance: float,
    timeout: float | None,
    memory: float | None,
) -> bool:
    from tsadbench.cli.live import progress_bar
    from tsadbench.cli.output import in_words
    from tsadbench.results.repetition import drawn, repeat
    from tsadbench.utils.text import one_line

    chosen = drawn(store, number)
    typer.echo(f"run again: {', '.join(record.trial for record in chosen)}")
    counts: Counter[str] = Counter()
    seals: Counter[str] = Counter()
    limits = {"timeout": timeout, "memory": memory}
    with progress_bar("Running again", time_left=True):
        for one in repeat(chosen, store, load, trust_code=trust_code, tolerance=tolerance, **limits):
            counts[one.verdict] += 1
            seals.update([one.seal] if one.seal else [])
            about = f"{one.record.trial}{in_words(one.record)}"
            size = "" if not one.difference else f", largest difference {one.difference:.2g} of their range"
            if one.verdict in ("to the bit", "within tolerance"):
                typer.echo(f"repeats {one.verdict}{size}: {about}")
            for fault in one.faults:
                typer.echo(f"{one.verdict}: {about}: {one_line(fault)}")
            for remark in one.remarks if one.verdict != "to the bit" else ():
                typer.echo(f"  possible cause: {one_line(remark)}")
    boxes = ", ".join(f"{count} {seal}" for seal, count in seals.items()) or "none"
    typer.echo(
        f"{len(chosen)} trials run again (boxes: {boxes}): {counts['to the bit']} equal to the bit, "
        f"{counts['within tolerance']} within the tolerance of {tolerance:g}, {counts['differs']} differ, "
        f"{counts['cannot be repeated']} cannot be repeated"
    )
    return counts["to the bit"] + counts["within tolerance"] == len(chosen)
