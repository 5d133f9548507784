"""The statuses of trials and checks, and the seals of boxes."""

from __future__ import annotations

from typing import Literal, TypeAlias

Status: TypeAlias = Literal["ok", "error", "timeout", "memory", "killed", "invalid"]
# Sealed by the kernel, or guarded by an audit hook, which only stops mistakes.
Seal: TypeAlias = Literal["sealed", "guarded"]

CheckStatus: TypeAlias = Literal["pass", "warn", "fail", "skip", "expected-failure", "not-applicable", "not-run"]
