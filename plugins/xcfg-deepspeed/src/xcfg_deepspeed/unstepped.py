"""An optimizer that ZeRO can partition and nobody can step, and the engine's own ways to change a model, closed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import torch

from xcfg.errors import XcfgError

CHANGES = ("step", "backward")
"""Methods of an engine, and of what it takes for its optimizer, by which a model would change."""


class Unstepped(torch.optim.Optimizer):
    """Holds parameter groups and no state. ZeRO-1 and 2 exist only around an optimizer."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Groups of ``parameters`` with a learning rate of 0, which ZeRO asks for."""
        super().__init__(parameters, {"lr": 0.0})

    def step(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raises XcfgError."""
        refuse()


def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Raises XcfgError: stands where an engine would change its model."""
    raise XcfgError("this engine only scores: it takes no optimizer step and no backward pass", where="deepspeed")


def close_updates(engine: Any) -> None:
    """Make ``step`` and ``backward`` of the engine, and of the optimizer it holds, raise."""
    for owner in (engine, getattr(engine, "optimizer", None)):
        for name in CHANGES:
            if owner is not None and hasattr(owner, name):
                setattr(owner, name, refuse)
