"""The scheduler of a served engine: vLLM's own, which tells the workers what it holds and takes batches whole.

A server's engine core is a process that nothing outside can read. What its live scheduler holds travels with each step
to the workers, which can be asked (:meth:`xcfg_vllm.worker.WorkerProbe.xcfg_told`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from vllm.v1.core.sched.scheduler import Scheduler

from xcfg_vllm.cache_watch import CacheWatch
from xcfg_vllm.told_names import TOGETHER, TOLD


class ToldScheduler(Scheduler):
    """Requests of one batch are scheduled once all of them are there, in their order, as the offline engine does."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Take what vLLM gives its scheduler."""
        super().__init__(*arguments, **named)
        self._watch = CacheWatch(self)
        self._held: dict[str, dict[int, Any]] = {}

    def schedule(self, *arguments: Any, **named: Any) -> Any:
        """Plan a step, and let it carry what this scheduler holds."""
        output = super().schedule(*arguments, **named)
        setattr(output, TOLD, {"pid": os.getpid(), "cache": self._watch.facts()})
        return output

    def add_request(self, request: Any) -> None:
        """Hold a request until its batch is whole; one that names no batch is not held."""
        together = (getattr(request.sampling_params, "extra_args", None) or {}).get(TOGETHER)
        if together is None:
            super().add_request(request)
            return
        batch, size, place = together
        held = self._held.setdefault(batch, {})
        held[place] = request
        if len(held) == size:
            for _, waiting in sorted(self._held.pop(batch).items()):
                super().add_request(waiting)

    def finish_requests(self, request_ids: str | Iterable[str] | None, finished_status: Any) -> Any:
        """End requests from outside; a batch that loses one of its requests before it is whole never runs."""
        ended = {request_ids} if isinstance(request_ids, str) else None if request_ids is None else set(request_ids)
        self._held = {
            batch: held
            for batch, held in self._held.items()
            if ended is not None and not any(request.request_id in ended for request in held.values())
        }
        return super().finish_requests(ended, finished_status)
