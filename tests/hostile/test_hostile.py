"""Every hostile detector under the seal: none learns anything, none changes another trial, none stops the run."""

from __future__ import annotations

import os
import re

import pytest

from tests.helpers.sealed import require_seal
from tests.hostile.plant import Attack, Plant, attacks, learned, servers
from tests.hostile.suite import (
    REFUSED,
    Suite,
    require_nothing_learned,
    require_nothing_left,
    require_undisturbed,
    run_suite,
)
from tsadbench.errors import TsadbenchError
from tsadbench.registry import locate
from tsadbench.sandbox import Description, ask
from tsadbench.sandbox.description import described

pytestmark = [pytest.mark.processes, pytest.mark.long]

ATTACKS = attacks()
CLOSED = [attack for attack in ATTACKS if not attack.stays_open]
PLANNED = [attack for attack in CLOSED if REFUSED not in attack.ends]
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Suite:
    require_seal()
    return run_suite(tmp_path_factory.mktemp("h") / "user")


def test_every_trial_ran_sealed(suite: Suite):
    found = {(trial.record.seal, trial.record.seal_reason) for made in suite.trials.values() for trial in made}
    assert found == {("sealed", "")}


@pytest.mark.parametrize("attack", PLANNED, ids=str)
def test_nothing_is_learned(suite: Suite, attack: Attack):
    require_nothing_learned(suite, attack)


def test_honest_trials_are_undisturbed(suite: Suite):
    require_undisturbed(suite)


def test_the_runs_come_to_an_end_and_say_that_trials_failed(suite: Suite):
    assert (suite.alone.returncode, suite.crowd.returncode, suite.endless.returncode) == (0, 1, 1), suite.crowd.stderr
    for done in (suite.crowd, suite.endless):
        assert "Traceback" not in done.stderr
        assert not CONTROL.search(done.stderr.replace("\x1b", "") if os.environ.get("FORCE_COLOR") else done.stderr)
        assert not CONTROL.search(done.stdout)


def test_nothing_is_left_behind(suite: Suite):
    require_nothing_left(suite)


def test_what_stays_open_comes_through(suite: Suite):
    remembering = [one for one in ATTACKS if one.stays_open]
    assert len(remembering) == 3
    for attack in remembering:
        (trial,) = suite.of(attack)
        assert learned(trial, suite.innocent)


# Code that cannot even be planned: the run is refused in one line, before anything starts.
UNPLANNABLE = {
    "leaves": "raise SystemExit(0)",
    "interrupts": "raise KeyboardInterrupt",
    "writes to address 0": "import ctypes\nctypes.memset(0, 0, 1)",
    "floods its output": "import os\nwhile True: os.write(1, b'x' * 2**20)",
    "ends its group": "import os, signal\nos.kill(0, signal.SIGKILL)",
    "forges an answer": (
        "import gc, json, os, socket, struct\n"
        "text = json.dumps({'kind': 'done', 'arrays': [], 'request': '0' * 16, 'answer': '{}'}).encode()\n"
        "for one in [one for one in gc.get_objects() if isinstance(one, socket.socket)]:\n"
        "    one.sendall(struct.pack('>Q', len(text)) + text)\n"
        "os._exit(0)"
    ),
    "has a docstring that never ends": (
        "from tsadbench import Detector\n"
        "class Meta(type(Detector)):\n"
        "    @property\n"
        "    def __doc__(cls):\n"
        "        while True: pass\n"
        "class Hostile(Detector, metaclass=Meta):\n"
        "    def _fit(self, recordings): pass\n"
        "    def _score(self, recording): pass"
    ),
}


@pytest.mark.parametrize("what", UNPLANNABLE)
def test_code_that_cannot_be_planned_is_refused_in_one_line(tmp_path, what: str):
    file = tmp_path / "planned.py"
    file.write_text(UNPLANNABLE[what])
    source = locate(f"{file}:Hostile")
    with pytest.raises(TsadbenchError) as refused:
        ask(source, described, Description, source, None, None, False, seconds=3.0)
    said = str(refused.value)
    assert "Hostile" in said
    assert "Traceback" not in said
    assert "\n" not in said
    assert not CONTROL.search(said)
    assert what != "forges an answer" or "unrequested" in said


def test_a_false_floor_and_a_detector_that_patches_the_harness_are_refused(tmp_path):
    """The judge runs in another process: the command refuses the detector in one line, with exit code 2."""
    plant = Plant(tmp_path / "user")
    plant.build()
    with servers(plant):
        plant.write_detectors()
    before, refused = plant.fingerprint(), [attack for attack in ATTACKS if REFUSED in attack.ends]
    assert len(refused) == 2
    for attack in refused:
        done = plant.run("detectors/victim.py:Victim", attack.reference)
        assert done.returncode == 2
        assert attack.name in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
        assert not plant.runs.exists()
    assert plant.fingerprint() == before
    assert plant.left() == []
