"""What the replay audit of a trial found: whether a row's score depends on anything but the rows around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# How the second copy of the fitted detector came about, from the strongest to the weakest: its learned state restored
# in a fresh box, a fork of the fitted process, the same process once more.
Copy: TypeAlias = Literal["restored", "forked", "same process"]

# A rank correlation below this, and a ratio beyond this, mark a row of a table.
MIN_CORRELATION = 0.9
MAX_RATIO = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The replay audit of one trial that is ok; a trial whose scores did not repeat is "invalid" instead."""

    copy: Copy
    rows: int  # test rows that were scored again and compared
    # The smallest rank correlation of scores behind other beginnings, after 500 rows; None if memory is bounded or no
    # recording was long enough.
    correlation: float | None = None
    # The medians and the 99 % quantiles of the training scores, divided by those of fresh scores of the same rows; None
    # unless the detector scores its training rows by a rule of its own.
    median_ratio: float | None = None
    tail_ratio: float | None = None
    # Memory is unbounded, adaptive, or reaches so far that only the correlation shows that places do not count.
    unbounded: bool = False

    @property
    def forgets(self) -> bool:
        """Whether the audit showed that scores do not depend on how a recording began."""
        return not self.unbounded if self.correlation is None else self.correlation >= MIN_CORRELATION

    @property
    def calibrated(self) -> bool:
        """Whether training scores are of the size of fresh ones, as far as that was compared."""
        ratios = [ratio for ratio in (self.median_ratio, self.tail_ratio) if ratio is not None]
        return all(1.0 / MAX_RATIO <= ratio <= MAX_RATIO for ratio in ratios)

    @property
    def marks(self) -> tuple[str, ...]:
        """What marks a row of a table: "unforgetting", "uncalibrated"."""
        return ("unforgetting",) * (not self.forgets) + ("uncalibrated",) * (not self.calibrated)
