"""What a terminal shows while a command works, on standard error: a bar, and the end by Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from tsadbench.api.live import bars
from tsadbench.utils.progress import listening

# Seconds between two lines about one piece of work, where there is no terminal.
_SILENCE = 30.0


@contextmanager
def interruptible(kept: str | Callable[[], str]) -> Iterator[None]:
    """Turn Ctrl-C inside the block into exit code 130 and one line that says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {kept if isinstance(kept, str) else kept()}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def progress_bar(title: str) -> Iterator[None]:
    """Show what the block reports by `tsadbench.progress`: live on a terminal, by a line in half a minute elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with listening(_NowAndThen(console, title)):
            yield
        return
    with bars(console) as bar:
        task = bar.add_task(title, note="")
        with listening(lambda done, total, note: bar.update(task, completed=done, total=total, note=note)):
            yield


class _NowAndThen:
    """Prints a line at most every half a minute, so that a log stays short."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._told = time.monotonic()

    def __call__(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if done and now - self._told >= _SILENCE:
            self._told = now
            line = f"{self._title}: {done:,} of {total:,}{note and f'; {note}'}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
