"""Torch's switch against operations that may differ from run to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deterministic_algorithms(wanted: bool) -> Iterator[None]:
    """Within it torch refuses such operations, or allows them; afterwards the switch is as it was before."""
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(wanted)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
