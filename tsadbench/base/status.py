"""How a trial can end."""

from __future__ import annotations

from typing import Literal, TypeAlias

Status: TypeAlias = Literal["ok", "error", "timeout", "memory", "killed", "invalid"]
