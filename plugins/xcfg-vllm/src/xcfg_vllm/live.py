"""The handle that the scorer gives to read-back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

from xcfg_vllm.admission import Admitted
from xcfg_vllm.limits import Limits
from xcfg_vllm.scoring import EngineScores

if TYPE_CHECKING:
    from xcfg_vllm.engine import Engine


@define(kw_only=True)
class Live:
    """An open engine, with what its workers and scheduler said after the last scoring call.

    ``workers``: one worker's facts each, rank order (:meth:`Engine.worker_facts`). ``scored`` is None before the first
    call; ``batch_size`` is the size that call grouped its sequences by. ``digests``: what the last state digest covers.
    ``admitted``: what was known of the checkpoint before the engine was built.
    """

    engine: Engine
    limits: Limits
    admitted: Admitted = field(factory=Admitted)
    workers: Sequence[Mapping[str, Any]] = field(factory=tuple)
    scored: EngineScores | None = None
    batch_size: int = 0
    digests: Sequence[Mapping[str, Any]] = field(factory=tuple)
