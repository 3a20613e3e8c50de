"""Forcing the next token on the decode path without touching the logits.

The sampler runs unchanged, temperature, top-k, top-p and logprobs included; only then is the id it drew replaced
by the forced one, and the logprob that vLLM gathers next is that of the forced id. So forcing never counts as
a logits processor and both raw and processed logprobs keep their meaning. vLLM's Model Runner V2 does the
same itself (``SamplingParams.trace_decode_token_ids``); for Model Runner V1 the two halves are here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

if TYPE_CHECKING:
    import torch
    from vllm import SamplingParams
    from vllm.config import VllmConfig
    from vllm.v1.sample.logits_processor import BatchUpdate
    from vllm.v1.sample.metadata import SamplingMetadata

FORCED_IDS = "xcfg_forced_ids"

Row = tuple[list[int], list[int]]
"""(ids to force, ids emitted so far; the second is vLLM's own growing list)"""


class ForcedRows(LogitsProcessor):
    """Keeps, for each row of the running batch, the ids to force. It leaves the logits alone."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        self.rows: dict[int, Row] = {}

    def is_argmax_invariant(self) -> bool:
        """False puts it where the forcing hook looks, for greedy requests too."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow requests as they join, leave and move between rows."""
        process_dict_updates(self.rows, batch_update, _row)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Change nothing."""
        return logits

    def next_ids(self) -> dict[int, int]:
        """Row to the id it must emit in this step; rows whose ids are used up are absent."""
        return {row: ids[len(done)] for row, (ids, done) in self.rows.items() if len(done) < len(ids)}


def _row(params: SamplingParams, prompt_ids: list[int] | None, output_ids: list[int]) -> Row | None:
    forced = (params.extra_args or {}).get(FORCED_IDS)
    return None if forced is None else (forced, output_ids)


Sample = Callable[..., "tuple[torch.Tensor, torch.Tensor | None]"]


def forcing_sample(sample: Sample, on_forced: Callable[[int], None]) -> Sample:
    """Wrap ``Sampler.sample``: same logprobs, forced ids. ``on_forced`` is told how many rows were forced.

    ``sample(logits [rows, vocabulary], metadata)`` returns ids [rows] and processed logprobs or None.
    """

    def forced(logits: torch.Tensor, sampling_metadata: SamplingMetadata, *rest: Any, **named: Any) -> Any:
        ids, processed = sample(logits, sampling_metadata, *rest, **named)
        wanted = _next_ids(sampling_metadata)
        for row, token in wanted.items():
            ids[row] = token
        on_forced(len(wanted))
        return ids, processed

    return forced


def _next_ids(sampling_metadata: SamplingMetadata) -> dict[int, int]:
    for processor in sampling_metadata.logitsprocs.non_argmax_invariant:
        if isinstance(processor, ForcedRows):
            return processor.next_ids()
    return {}
