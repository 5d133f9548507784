"""Verdicts on the facts of an audit, in sentences with their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from math import sqrt
from statistics import stdev

from tsadbench.analysis.audit.events import EventFacts
from tsadbench.analysis.audit.facts import RecordingFacts
from tsadbench.analysis.audit.findings import Finding, Grade
from tsadbench.analysis.audit.overlap import STATES, Copy, Overlap, SharedRows
from tsadbench.analysis.audit.parts import Part
from tsadbench.analysis.audit.predictors import Predictor
from tsadbench.analysis.audit.sensors import SensorFacts, Shift
from tsadbench.analysis.label_noise import LabelNoise
from tsadbench.utils.arrays import mean_defined
from tsadbench.utils.text import first_of

# An uninformative predictor has an AUROC of .5; beyond these it is a weak or a strong one.
_WEAK, _STRONG = 0.55, 0.75
# Shares of anomalous test rows.
_FEW_ANOMALIES, _MANY_ANOMALIES = 0.01, 0.4
# Distances from the training mean, in standard deviations.
_SHIFTED, _FAR = 3.0, 10.0
# Shares of normal test rows outside the training range of some sensor.
_OFTEN_OUTSIDE, _ALWAYS_OUTSIDE = 0.5, 0.9
# One-liners find so many more events than by chance; trivial are labels of which they find half.
_ABOVE_CHANCE, _TRIVIAL = 0.25, 0.5
# Shares of test rows that recur in training; how much more often than rows recur within training.
_SOME_RECUR, _MANY_RECUR, _MORE_OFTEN = 0.01, 0.5, 1.5
# Share of the test rows in copied stretches.
_COPIED = 0.005
# Share of the normal test rows in which a sensor that is constant in training is elsewhere.
_OFF_CONSTANT = 0.1
# Share of the sensors that run exactly between two bounds.
_SCALED = 0.8
# Fewer events than this: each of them decides.
_FEW_EVENTS = 5


class Compared(Enum):
    """By what rows are the same."""

    CLOCK = "same time and values"
    ELAPSED = "same time since their beginning, and values"
    VALUES = "by values alone, without time"


def on_anomalies(events: Sequence[EventFacts]) -> Finding:
    """Say how many test rows are anomalous."""
    n_rows = sum(facts.n_rows for facts in events)
    shares = [facts.n_anomalous / facts.n_rows for facts in events]
    share = sum(facts.n_anomalous for facts in events) / n_rows
    f1 = sum(2 * one / (1 + one) for one in shares) / len(shares)
    of_each = f" ({min(shares):.1%} to {max(shares):.1%} of an entity's)" if len(events) > 1 else ""
    sentence = f"{share:.1%} of the {n_rows:,} test rows are anomalous{of_each}: flagging every row has F1 {f1:.3f}."
    if share == 0:
        return Finding("anomalies", "note", "No test row is anomalous: no ranking metric is defined.", "no anomaly")
    brief = f"{share:.1%} of the test rows are anomalous"
    if share > _MANY_ANOMALIES:
        return Finding("anomalies", "fault", f"{sentence} Faults are no exception here.", brief)
    if share < _FEW_ANOMALIES:
        return Finding("anomalies", "note", f"{sentence} A few rows decide every figure.", brief)
    return Finding("anomalies", "good", sentence)


def on_missing(missing: str) -> Finding:
    """Say what the audit cannot look at, for lack of labels or of test recordings."""
    rest = "events, and what predicts them, cannot be looked at"
    if missing == "labels":
        sentence = f"No labels: every test row counts as normal in what follows; {rest}."
    else:
        sentence = f"No test recordings: nothing is compared with the training recordings; {rest}."
    return Finding(missing.replace(" ", "-"), "note", sentence, f"no {missing}")


def on_entities(parts: Sequence[Part]) -> Iterator[Finding]:
    """Say how many models there are, and which of them cannot be trained or judged; nothing if there is one."""
    untrained = [part.entity or "the data set" for part in parts if not part.train]
    if untrained:
        names = first_of(untrained)
        yield Finding("entities", "fault", f"Without training recordings: {names}.", f"{names} cannot be trained")
    elif len(parts) > 1:
        sentence = f"{len(parts)} entities, one model each: figures are means over them, scores are never pooled."
        one_class = [part.entity for part in parts if part.anomalous.all() or not part.anomalous.any()]
        if not one_class:
            yield Finding("entities", "good", sentence)
        else:
            brief = f"{len(one_class)} of {len(parts)} entities have test rows of one class"
            sentence += f" Test rows of one class, which take no part in these means: {first_of(one_class)}."
            yield Finding("entities", "note", sentence, brief)


def on_events(events: Sequence[EventFacts]) -> Finding:
    """Say how many events there are, how long they are, and where one decides."""
    with_events = [facts for facts in events if facts.n_events]
    if not with_events:
        return Finding("events", "note", "There is no event.", "no event")
    count = sum(facts.n_events for facts in events)
    shortest = min(facts.shortest for facts in with_events if facts.shortest is not None)
    longest = max(facts.longest for facts in with_events if facts.longest is not None)
    counts = [facts.n_events for facts in events]
    of_each = f", {min(counts)} to {max(counts)} an entity" if len(events) > 1 else ""
    sentence = f"{count} events of {shortest:,} to {longest:,} rows{of_each}."
    one = [facts for facts in with_events if facts.longest is not None and facts.longest > facts.n_anomalous / 2]
    few = [facts for facts in with_events if facts.n_events < _FEW_EVENTS]
    if one:
        sentence += f" One event has more than half of the anomalous rows{_in(one)}: row-wise metrics tell of it alone."
    if few:
        sentence += f" Fewer than {_FEW_EVENTS} events{_in(few)}: each of them decides."
    brief = "one event has most anomalous rows" if one else "few events" if few else ""
    return Finding("events", "note" if one or few else "good", sentence, brief and f"{brief}{_in(one or few)}")


def on_predictors(predictors: Sequence[Predictor]) -> Iterator[Finding]:
    """Say how well position, time and one-liners predict the labels."""
    meaning = {
        "position": "A row's place in its recording, without its values,",
        "time": "The time since a row's recording began, without its values,",
    }
    # Of the one-liners, summaries name the strongest alone.
    strongest = max((one.auroc or 0.0 for one in predictors if one.name not in meaning), default=0.0)
    for predictor in predictors:
        name, auroc = predictor.name, predictor.auroc
        if auroc is None:
            yield Finding(name, "note", f"{name}: no AUROC, because the test rows are of one class.")
            continue
        # Position and time see no data: they should not predict at all, in either direction. A one-liner may.
        blind = name in meaning
        subject = meaning.get(name, f"The one-liner {name}")
        of_each = [one.auroc for one in predictor.entities.values() if one.auroc is not None]
        strength = _strength(auroc, of_each) if blind else auroc
        limit = _WEAK if blind else _STRONG
        verdict = "tells anomalous rows from normal ones" if strength > limit else "does not give the labels away"
        grade: Grade = "good" if strength <= limit else "fault" if strength > _STRONG else "note"
        brief = f"{name} alone has AUROC {auroc:.3f}" if strength > limit and (blind or auroc == strongest) else ""
        spread = f", {_spread(of_each)}" if of_each else ""
        yield Finding(name, grade, f"{subject} {verdict}: AUROC {auroc:.3f}{spread}.", brief)


def _spread(of_each: Sequence[float]) -> str:
    deviation = f", deviation {stdev(of_each):.3f}" if len(of_each) > 1 else ""
    return f"mean over {len(of_each)} entities{deviation}, {min(of_each):.3f} to {max(of_each):.3f}"


def _strength(auroc: float, of_each: Sequence[float]) -> float:
    """Return how well a predictor ranks whose direction is unknown; over entities, chance points in some direction."""
    if len(of_each) > 1 and abs(auroc - 0.5) < 2 * stdev(of_each) / sqrt(len(of_each)):
        return 0.5
    return 0.5 + abs(auroc - 0.5)


def on_trivial(events: Sequence[EventFacts]) -> Finding:
    """Say whether a threshold on one sensor finds the events."""
    known = [facts for facts in events if facts.trivial is not None]
    if not known:
        return Finding("trivial", "note", "No event has normal rows to be told from.", "")
    any_, any_chance, best, best_chance = (
        mean_defined(getattr(facts, name) for facts in known) or 0.0
        for name in ("trivial", "by_chance", "best_share", "best_by_chance")
    )
    mean = f", mean over {len(known)} entities" if len(events) > 1 else ""
    which = f" ({known[0].best})" if len(events) == 1 and known[0].best else ""
    sentence = (
        f"Thresholds on single sensors, or on their jumps, find {any_:.0%} of the events without a false alarm, by "
        f"chance {any_chance:.0%}; the best alone{which} {best:.0%}, by chance {best_chance:.0%}{mean}."
    )
    above = [share for share, chance in ((any_, any_chance), (best, best_chance)) if share >= chance + _ABOVE_CHANCE]
    certain = sum(facts.n_events for facts in known) >= _FEW_EVENTS
    grade: Grade = "good" if not above else "fault" if max(above) >= _TRIVIAL and certain else "note"
    brief = f"thresholds on single sensors find {any_:.0%} of the events (by chance {any_chance:.0%})"
    if grade == "fault" and any_ < any_chance + _ABOVE_CHANCE:
        brief = f"a threshold on one sensor finds {best:.0%} of the events (by chance {best_chance:.0%})"
    return Finding("trivial", grade, sentence, "" if grade == "good" else brief)


def on_overlap(overlap: Sequence[Overlap]) -> Finding:
    """Say which share of the rows recurs, by value."""
    test, anomalous, train, within = (
        mean_defined(getattr(one, name) for one in overlap)
        for name in ("test_in_train", "anomalous_in_train", "train_in_test", "train_in_train")
    )
    if test is None:
        return Finding("overlap", "note", "Too few training rows to compare.", "")
    mean = f" Means over {len(overlap)} entities." if len(overlap) > 1 else ""
    of_anomalous = "" if anomalous is None else f" ({anomalous:.1%} of the anomalous ones)"
    sentence = (
        f"By values alone, {test:.1%} of the test rows{of_anomalous} equal a training row, {train or 0.0:.1%} of the "
        f"training rows a test row, and {within or 0.0:.1%} of the second half of training a row of the first.{mean}"
    )
    if test < _SOME_RECUR:
        return Finding("overlap", "good", sentence)
    copied = test >= _MANY_RECUR and test >= _MORE_OFTEN * (within or 0.0)
    brief = f"{test:.0%} of the test rows equal a training row"
    return Finding("overlap", "fault" if copied else "note", sentence, brief)


def on_shared(
    shared: Sequence[SharedRows], copies: Sequence[Copy], compared: Compared, *, labelled: bool
) -> Iterator[Finding]:
    """Say which rows stand in several recordings, and if there are labels which of these have two."""
    certain = {}
    for roles, what, brief in (
        (
            "train and test",
            "training rows stand in test recordings too: a detector is tested on what it has learned",
            "training rows stand in the test too",
        ),
        ("test and test", "rows stand in two test recordings: they count twice", "test rows count twice"),
    ):
        pairs = [pair for pair in shared if pair.roles == roles]
        n_rows = sum(pair.n_rows for pair in pairs)
        about = "shared-" + roles.replace(" and ", "-")
        # Unless clocks tell, rows are mostly alike by chance, if they are no part of copied stretches.
        copied = sum(copy.stop - copy.start for copy in copies if copy.roles == roles)
        certain[roles] = compared is Compared.CLOCK or copied >= n_rows / 2
        if n_rows:
            sentence = f"{n_rows:,} {what} (pairs of recordings: {len(pairs)}; {compared.value})."
            if not certain[roles]:
                sentence += " Most are in no copied stretch: a system that repeats its states has such rows."
            yield Finding(about, "fault" if certain[roles] else "note", sentence, f"{n_rows:,} {brief}")
        else:
            yield Finding(about, "good", f"No row stands in both, {roles} ({compared.value}).")
    contradicting = sum(pair.n_contradicting or 0 for pair in shared)
    if contradicting:
        sentence = (
            f"{contradicting:,} of the rows that test recordings share are anomalous in one and normal in the other."
        )
        grade: Grade = "fault" if certain["test and test"] else "note"
        yield Finding("contradicting-labels", grade, sentence, f"{contradicting:,} test rows have two labels")
    elif labelled:
        yield Finding("contradicting-labels", "good", "No shared row has two labels.")


def on_copies(copies: Sequence[Copy], shared: Sequence[SharedRows], recordings: Sequence[RecordingFacts]) -> Finding:
    """Say which stretches occur twice."""
    if not copies:
        return Finding("copies", "good", f"No stretch of {STATES} different states occurs twice.")
    n_test = sum(facts.n_rows for facts in recordings if facts.role == "test")
    counts = {
        roles: sum(copy.stop - copy.start for copy in copies if copy.roles == roles)
        for roles in ("train and test", "test and test", "train and train")
    }
    longest = max(copies, key=lambda copy: copy.stop - copy.start)
    sentence = (
        f"{_count(len(copies), 'stretch occurs', 'stretches occur')} twice, whatever the time: "
        f"{counts['train and test']:,} test rows copy training rows, {counts['test and test']:,} other test rows, "
        f"{counts['train and train']:,} training rows others; the longest is {longest.recording} from row "
        f"{longest.start:,} on, {longest.stop - longest.start:,} rows as in {longest.source} from row "
        f"{longest.source_start:,} on."
    )
    contradicting = sum(copy.n_contradicting or 0 for copy in copies)
    if contradicting:
        sentence += f" {_count(contradicting, 'row has', 'rows have')} another label there."
    copied = counts["train and test"] + counts["test and test"]
    share = copied / n_test if n_test else 0.0
    # Rows that are shared at the same time too are told of already.
    told = sum(pair.n_rows for pair in shared if pair.roles != "train and train") == copied
    if share < _COPIED:
        return Finding("copies", "note", sentence, f"{_count(len(copies), 'stretch', 'stretches')} twice")
    return Finding("copies", "fault", sentence, "" if told else f"{share:.1%} of the test rows are copies of others")


def on_sessions(copies: Sequence[Copy], sessions: Mapping[str, str]) -> Iterator[Finding]:
    """Say which test recordings are copies across declared sessions; nothing if none is."""
    pairs = dict.fromkeys(
        f"{copy.source} and {copy.recording}"
        for copy in copies
        if copy.roles == "test and test" and sessions.get(copy.source) != sessions.get(copy.recording)
    )
    if pairs:
        sentence = (
            f"Declared as different sessions, though one holds a copy of the other: {first_of(list(pairs))}. "
            "Statistics take them for independent, which flatters."
        )
        yield Finding("sessions", "note", sentence, "sessions that are copies of others count as independent")


def on_shift(shifts: Sequence[Shift]) -> Finding:
    """Say whether normal test rows lie where the training rows lie."""
    far = [(abs(one.z), one) for one in shifts if (one.entity or one.split != "overall") and one.z is not None]
    if not far:  # the data set's only split is overall
        far = [(abs(one.z), one) for one in shifts if one.z is not None]
    far = [(distance, one) for distance, one in far if distance > _SHIFTED]
    if not far:
        return Finding("shift", "good", "Normal test rows lie where the training rows lie, in every sensor and split.")
    distance, worst = max(far, key=lambda item: item[0])
    places = first_of(list(dict.fromkeys(one.entity or one.split for _, one in far)), 12)
    sentence = (
        f"Normal test rows do not lie where the training rows lie ({places}); furthest is {worst.sensor} in "
        f"{worst.entity or worst.split}: median {worst.test_median:.4g} against {worst.train_median:.4g} in training, "
        f"{distance:.0f} standard deviations off."
    )
    brief = f"normal test rows lie up to {distance:.0f} standard deviations off the training rows"
    return Finding("shift", "fault" if distance > _FAR else "note", sentence, brief)


def on_range(sensors: Sequence[SensorFacts]) -> Finding:
    """Say how often normal test rows leave the training range."""
    shares = [facts.outside for facts in sensors if facts.outside is not None]
    if not shares:
        return Finding("range", "note", "No normal test row to compare with training rows.")
    share = sum(shares) / len(shares)
    spread = f" (mean over {len(shares)} entities, {min(shares):.1%} to {max(shares):.1%})" if len(shares) > 1 else ""
    sentence = f"{share:.1%} of the normal test rows lie outside the training range of at least one sensor{spread}."
    grade: Grade = "good" if share < _OFTEN_OUTSIDE else "note" if share < _ALWAYS_OUTSIDE else "fault"
    brief = "" if grade == "good" else f"{share:.0%} of the normal test rows lie outside the training range"
    return Finding("range", grade, sentence, brief)


def on_gaps(recordings: Sequence[RecordingFacts]) -> Finding:
    """Say where time jumps."""
    gaps = sorted(((gap.seconds, facts.id, gap.row) for facts in recordings for gap in facts.gaps), reverse=True)
    if not gaps:
        return Finding("gaps", "good", "Time runs without gaps, or there is none.")
    longest = "; ".join(f"{seconds:g} s before row {row} of {recording}" for seconds, recording, row in gaps[:6])
    return Finding("gaps", "note", f"{len(gaps)} gaps in time; the longest: {longest}.", f"{len(gaps)} gaps in time")


def on_duplicates(recordings: Sequence[RecordingFacts]) -> Finding:
    """Say how many rows repeat the one before."""
    count = sum(facts.duplicates for facts in recordings)
    if not count:
        return Finding("duplicates", "good", "No row repeats the one before it.")
    share = count / sum(facts.n_rows for facts in recordings)
    sentence = f"{count:,} rows repeat the row before them in every sensor ({share:.1%})."
    return Finding("duplicates", "note", sentence, f"{share:.1%} of the rows repeat the one before")


def on_constant(recordings: Sequence[RecordingFacts], n_sensors: int) -> Finding:
    """Say which sensors never move in a recording."""
    still = [f"{sensor} in {facts.id}" for facts in recordings for sensor in facts.constant]
    if not still:
        return Finding("constant", "good", f"Each of the {n_sensors} sensors moves in every recording.")
    sentence = f"{len(still)} times a sensor never moves in a recording: {first_of(still)}."
    return Finding("constant", "note", sentence, "sensors that never move in a recording")


def on_still_in_training(sensors: Sequence[SensorFacts]) -> Finding:
    """Say which sensors are constant in training and move in the test."""
    about, count = "constant-in-training", sum(len(facts.test_only) for facts in sensors)
    if not count:
        return Finding(about, "good", "No sensor is constant in training and moves in the test.")
    names = [f"{name}{_in([facts])}" for facts in sensors for name in facts.test_only]
    alone = sum(len(facts.anomalies_only) for facts in sensors)
    off = mean_defined(facts.off_constant for facts in sensors) or 0.0
    sentence = (
        f"{count} sensors are constant in training and move in the test: {first_of(names)}; {alone} of them in "
        f"anomalous rows alone. {off:.1%} of the normal test rows are off a training constant."
    )
    brief = f"{count} sensors are constant in training and move in the test"
    return Finding(about, "fault" if off >= _OFF_CONSTANT else "note", sentence, brief)


def on_scaling(sensors: Sequence[SensorFacts]) -> Finding:
    """Say whether sensors were scaled by the test's statistics."""
    about = "scaling"
    moving, both, each = (
        sum(getattr(facts, name) for facts in sensors) for name in ("moving", "scaled_by_both", "scaled_by_each")
    )
    bounds = "run exactly from 0 to 1 or -1 to 1, or have mean 0 and deviation 1,"
    of_test = [
        facts
        for facts in sensors
        if facts.scaled_by_both > facts.scaled_by_train
        and facts.scaled_by_both + facts.scaled_by_either >= _SCALED * facts.moving
    ]
    of_itself = [facts for facts in sensors if facts.moving and facts.scaled_by_each >= _SCALED * facts.moving]
    if of_test:
        sentence = (
            f"{both} of {moving} sensors {bounds} over training and test rows together and not over the training rows: "
            f"they were scaled by the test's statistics{_in(of_test)}."
        )
        return Finding(about, "fault", sentence, "sensors were scaled by the test's statistics")
    if of_itself:
        sentence = (
            f"{each} of {moving} sensors {bounds} over the training rows and over the test rows: each was scaled by "
            f"its own statistics, or the test was cut off at the training's bounds{_in(of_itself)}."
        )
        return Finding(about, "fault", sentence, "training and test were scaled by their own statistics")
    if both:
        sentence = (
            f"{both} of {moving} sensors {bounds} over training and test rows together and not over the training rows: "
            "too few to say that they were scaled by the test's statistics."
        )
        return Finding(about, "note", sentence, f"{both} of {moving} sensors may be scaled by the test's statistics")
    return Finding(about, "good", f"None of {moving} sensors seems to be scaled by the test's statistics.")


def on_label_noise(noise: LabelNoise) -> Finding:
    """Say what other labels move."""
    if noise.largest is None:
        return Finding("label-noise", "note", f"No AUPRC is defined for {noise.about}.")
    move, label, change = noise.largest
    sentence = f"Other labels move the AUPRC of {noise.about} by up to {move:+.4f} ({label}, {change})"
    moved = [one for one in noise.moved if one.change_places]
    if not moved:
        return Finding("label-noise", "good", f"{sentence}; no two rows change places.")
    most = max(moved, key=lambda one: len(one.change_places))
    how_often = f"{len(moved)} of {len(noise.moved) - 1} changes let rows change places"
    sentence = f"{sentence}; {how_often}, {most.change} the most: {most.in_words()}."
    return Finding("label-noise", "note", sentence, "labels shifted by a few rows let rows change places")


def _in(facts: Iterable[EventFacts | SensorFacts]) -> str:
    """Return where, if there are several entities."""
    entities = [one.entity for one in facts if one.entity]
    return f" in {first_of(entities)}" if entities else ""


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
