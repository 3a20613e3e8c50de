"""By which route a model gets to the logits of fixed tokens: one pass, or several that keep keys and values."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from xcfg.errors import UnsupportedError
from xcfg.model.json import Json
from xcfg_torch.route_fault import CACHED_DECODE, route_fault


@frozen(kw_only=True)
class Route:
    """``decode``: prompts first, then one forced token a pass. ``chunk``: most columns of a prefill; None is all."""

    decode: bool = False
    chunk: int | None = None

    @property
    def cached(self) -> bool:
        """Whether keys and values are kept from pass to pass."""
        return self.decode or self.chunk is not None


def route_of(settings: Mapping[str, Json]) -> Route:
    """The route that request settings ask for. Raises UnsupportedError where they contradict each other."""
    fault = route_fault(settings)
    if fault:
        raise UnsupportedError(fault, where="torch.forward")
    decode = settings.get("forward") == CACHED_DECODE or settings.get("scoring_path") == "forced_decode"
    return Route(decode=decode, chunk=settings.get("prefill_chunk"))
