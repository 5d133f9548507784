"""What another library does to its process stays inside."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from tsadbench_detectors.adapters.surroundings import contained

torch = pytest.importorskip("torch")


def draws() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(1))


def test_global_chance_follows_from_the_seed_and_goes_on_as_if_nothing_had_been():
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    states = random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()
    with contained(3):
        first = draws()
    with contained(3):
        again = draws()
    with contained(4):
        other = draws()
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))
    assert states == (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())


def test_even_where_it_breaks_down():
    before = random.getstate()

    def break_down() -> None:
        with contained(1):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        break_down()
    assert random.getstate() == before
    assert sys.stdout is not sys.stderr


def test_what_it_prints_is_no_part_of_the_output(capsys):
    with contained(0):
        print("epoch 1")
    assert capsys.readouterr() == ("", "epoch 1\n")


def test_it_finds_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with contained(0):
        assert not torch.cuda.is_available()
    assert torch.cuda.is_available()
