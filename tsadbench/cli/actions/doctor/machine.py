"""The machine: cores, memory, devices, and programs that some commands use."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from tsadbench.cli.actions.doctor.findings import Finding
from tsadbench.cli.actions.doctor.packages import fault_of
from tsadbench.sandbox import seal_status

_GIB = 2**30
_TORCH_SECONDS = 120.0
# Run by another process, which a broken torch may crash.
_TORCH = """
import json, torch
cuda = [f"{torch.cuda.get_device_name(i)}, {torch.cuda.get_device_properties(i).total_memory / 2**30:.0f} GiB"
        for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(json.dumps({"version": torch.__version__, "cuda": cuda, "mps": torch.backends.mps.is_available()}))
"""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def machine() -> Iterator[Finding]:
    """Yield the system, its cores, its memory, and the free space on the disk of the working directory."""
    yield Finding("machine", "system", "ok", f"{platform.platform()}, {platform.machine()}")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limit = os.environ.get("OMP_NUM_THREADS")
    threads = f"; OMP_NUM_THREADS={limit} (--threads decides in trials)" if limit else ""
    yield Finding("machine", "cores", "ok", f"{usable} of {os.cpu_count()} may be used{threads}")
    memory = psutil.virtual_memory()
    text = f"{memory.total / _GIB:.1f} GiB, {memory.available / _GIB:.1f} GiB of it free"
    yield Finding("machine", "memory", "ok", text)
    yield Finding("machine", "disk", "ok", f"{shutil.disk_usage(Path.cwd()).free / _GIB:.1f} GiB free here")


def seal() -> Iterator[Finding]:
    """Yield whether the kernel seals boxes here, why not better, and what it offers."""
    status = seal_status()
    text = f"{status.seal}{f': {status.reason}' if status.reason else ''}"
    text += f" ({'; '.join(status.details)})" if status.details else ""
    if status.seal == "sealed":
        yield Finding("machine", "seal", "ok", text)
    else:
        advice = "detectors run, but an audit hook stops mistakes alone, and --require-seal refuses"
        yield Finding("machine", "seal", "missing", text, advice)


def devices() -> Iterator[Finding]:
    """Yield what torch can compute on, as another process reports it."""
    yield Finding("devices", "cpu", "ok", platform.processor() or platform.machine())
    if fault_of(Requirement("torch")) is not None:
        yield Finding("devices", "torch", "missing", "is not installed", "pip install 'tsadbench[deep]'")
        return
    command = [sys.executable, "-c", _TORCH]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TORCH_SECONDS, check=False)
        failure = _failure_of(done)
    except subprocess.TimeoutExpired:
        failure = f"no end after {_TORCH_SECONDS:.0f} s"
    if failure is not None:
        yield Finding("devices", "torch", "broken", f"is installed, but cannot be imported: {failure}", "reinstall it")
        return
    answer = json.loads(done.stdout.splitlines()[-1])
    yield Finding("devices", "torch", "ok", answer["version"])
    for number, name in enumerate(answer["cuda"]):
        yield Finding("devices", f"cuda:{number}", "ok", name)
    if not answer["cuda"]:
        yield Finding("devices", "cuda", "missing", "no GPU that torch can use")
    if answer["mps"]:
        yield Finding("devices", "mps", "ok", "Apple's GPU")


def tools() -> Iterator[Finding]:
    """Yield programs that single commands use."""
    browser = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if browser:
        yield Finding("tools", "chromium", "ok", browser)
    else:
        advice = "only tests of reports use it: apt-get install chromium"
        yield Finding("tools", "chromium", "missing", "not found", advice)


def _failure_of(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return how a process failed, with the last line of its standard error; None if it did not."""
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    end = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"its process ended: {end}" + (f": {lines[-1][:200]}" if lines else "")
