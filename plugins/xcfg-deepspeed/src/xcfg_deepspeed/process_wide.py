"""What DeepSpeed changes for the whole process, and how it is put back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from attrs import frozen


@frozen(kw_only=True, eq=False)
class Before:
    """The process as it was before DeepSpeed was set up: torch's linear function and some variables."""

    linear: Any
    variables: Mapping[str, str | None]

    def restore(self) -> None:
        """Put everything back. ZeRO-3 replaces ``torch.nn.functional.linear`` and says itself that this persists."""
        import torch

        torch.nn.functional.linear = self.linear
        for name, value in self.variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def set_variables(values: Mapping[str, str]) -> Before:
    """Set the variables that DeepSpeed reads, and remember the process as it was."""
    import torch

    before = Before(linear=torch.nn.functional.linear, variables={name: os.environ.get(name) for name in values})
    os.environ.update(values)
    return before
