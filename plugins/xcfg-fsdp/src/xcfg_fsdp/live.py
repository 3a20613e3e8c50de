"""The handle that the scorer ``fsdp`` gives to read-back."""

from __future__ import annotations

from attrs import Factory, define

from xcfg_fsdp.topology import Topology
from xcfg_torch.live import Live


@define(kw_only=True)
class FsdpLive(Live):
    """An open model on its place among the ranks.

    ``freed``: by name of a wrapped module, whether its gathered parameters were gone after the last forward pass.
    ``passed``: (width of the rows, columns of them that this rank passed) of each pass of the last scoring call, where
    rows are shared.
    """

    topology: Topology
    freed: dict[str, bool] = Factory(dict)
    passed: list[tuple[int, tuple[int, ...]]] = Factory(list)
