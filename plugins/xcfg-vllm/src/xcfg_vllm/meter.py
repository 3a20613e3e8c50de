"""What one worker saw while it ran: counters only, no influence on the numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from vllm.v1.core.sched.output import SchedulerOutput


class Meter:
    """Counts steps, scheduled requests, decoded and prefilled tokens, forced rows, dtypes and sampling values."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.steps = 0
        self.max_requests = 0
        self.max_tokens = 0
        self.decoded = 0
        self.prefilled = 0
        self.prompt_scored = 0
        self.resumed = 0
        self.forced = 0
        self.linear_dtypes: Counter[str] = Counter()
        self.head_dtypes: Counter[str] = Counter()
        self.logits_dtypes: Counter[str] = Counter()
        self.sampling: dict[str, set[float]] = {"temperature": set(), "top_p": set(), "top_k": set()}
        self._prompts: dict[str, int] = {}

    def saw_step(self, output: SchedulerOutput) -> None:
        """Classify what the scheduler gave this worker: a request is decoding once its whole prompt is computed."""
        scheduled = output.num_scheduled_tokens
        if not scheduled:
            return
        self.steps += 1
        self.max_requests = max(self.max_requests, len(scheduled))
        self.max_tokens = max(self.max_tokens, sum(scheduled.values()))
        cached = output.scheduled_cached_reqs
        computed = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        for request in output.scheduled_new_reqs:
            self._prompts[request.req_id] = len(request.prompt_token_ids or ())
            computed[request.req_id] = request.num_computed_tokens
            if request.sampling_params is not None and request.sampling_params.prompt_logprobs is not None:
                self.prompt_scored += 1
        self.resumed += len(cached.resumed_req_ids)
        for name, tokens in scheduled.items():
            if computed.get(name, 0) >= self._prompts.get(name, 0):
                self.decoded += tokens
            else:
                self.prefilled += tokens

    def saw_sampling(self, logits: torch.Tensor, metadata: Any) -> None:
        self.logits_dtypes[dtype_name(logits.dtype)] += 1
        for name, seen in self.sampling.items():
            values = getattr(metadata, name, None)
            if values is not None:
                seen.update(round(float(value), 6) for value in values.tolist())
            elif name == "temperature":
                seen.add(0.0)

    def saw_forced(self, rows: int) -> None:
        self.forced += rows

    def facts(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        dtypes = {name: dict(getattr(self, name)) for name in ("linear_dtypes", "head_dtypes", "logits_dtypes")}
        return plain | dtypes | {"sampling": {name: sorted(seen) for name, seen in self.sampling.items()}}


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
