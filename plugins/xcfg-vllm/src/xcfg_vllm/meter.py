"""What one worker saw while it ran: counters only, no influence on the numbers.

``columns`` are the widths of the logits that the sampler got: the tokens its normaliser runs over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from vllm.v1.core.sched.output import SchedulerOutput


class Meter:
    """Counts steps, scheduled requests, decoded and prefilled tokens, forced rows, dtypes and sampling values."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start counting anew."""
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
        self.columns: set[int] = set()
        self.sampling: dict[str, set[float]] = {"temperature": set(), "top_p": set(), "top_k": set(), "min_p": set()}
        self.adapters: set[str] = set()
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
            self.adapters.add(request.lora_request.lora_path if request.lora_request else "")
            if request.sampling_params is not None and request.sampling_params.prompt_logprobs is not None:
                self.prompt_scored += 1
        self.resumed += len(cached.resumed_req_ids)
        for name, tokens in scheduled.items():
            if computed.get(name, 0) >= self._prompts.get(name, 0):
                self.decoded += tokens
            else:
                self.prefilled += tokens

    def saw_sampling(self, logits: torch.Tensor, values: Mapping[str, Sequence[float] | None]) -> None:
        """Note ``values``, per row as the sampler got them.

        None is neutral, except that no temperature means greedy; a ``top_k`` of the whole vocabulary counts as 0.
        """
        self.logits_dtypes[dtype_name(logits.dtype)] += 1
        self.columns.add(int(logits.shape[-1]))
        neutral = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
        for name, seen in self.sampling.items():
            given = values.get(name)
            if given is None:
                seen.add(neutral[name])
            elif name == "top_k":
                seen.update(0 if value >= logits.shape[-1] else int(value) for value in given)
            else:
                seen.update(round(value, 6) for value in given)

    def saw_forced(self, rows: int) -> None:
        """Note that this many rows of one step were given their id."""
        self.forced += rows

    def facts(self) -> dict[str, Any]:
        """All counters as plain data."""
        plain = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        dtypes = {name: dict(getattr(self, name)) for name in ("linear_dtypes", "head_dtypes", "logits_dtypes")}
        sampling = {name: sorted(seen) for name, seen in self.sampling.items()}
        return (
            plain
            | dtypes
            | {
                "columns": sorted(self.columns),
                "sampling": sampling,
                "adapters": sorted(self.adapters),
            }
        )


def dtype_name(dtype: torch.dtype) -> str:
    """Say ``bfloat16`` for ``torch.bfloat16``."""
    return str(dtype).removeprefix("torch.")
