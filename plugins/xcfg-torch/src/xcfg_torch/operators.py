"""What a torch scorer asks of a kernel backend."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg_torch.live import Live
from xcfg_torch.scoring import OPERATOR


def logprob_request(live: Live, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
    """The request for ``selected_logprob`` on this model's logits; None for an operator no torch scorer hands over."""
    if operator != OPERATOR:
        return None
    return KernelRequest(
        operator=operator,
        device=live.device.type,
        dtype=live.logits_dtype,
        vocab_size=live.columns,
        options=options,
        sharding=live.head.sharding if live.head else None,
    )
