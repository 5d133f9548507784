"""How a trial or a check can end, and how well a trial's box was closed."""

from __future__ import annotations

from typing import Literal, TypeAlias

Status: TypeAlias = Literal["ok", "error", "timeout", "memory", "killed", "invalid"]
# Closed by the kernel, or guarded by an audit hook against mistakes alone.
Seal: TypeAlias = Literal["sealed", "guarded"]

CheckStatus: TypeAlias = Literal["pass", "warn", "fail", "skip", "expected-failure", "not-applicable", "not-run"]
