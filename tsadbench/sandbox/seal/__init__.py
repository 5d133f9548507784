"""The seal: what the kernel keeps a box's process from."""

from tsadbench.sandbox.seal.walls import SealStatus, Walls, plan_walls

__all__ = ["SealStatus", "Walls", "plan_walls"]
