"""Values in force, read from the live modules and from what their hooks saw in the last scoring call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_torch.collate import Part
from xcfg_torch.dtypes import lowest_precision
from xcfg_torch.live import Live
from xcfg_torch.scoring import OPERATOR

Observed = Json | Unobservable
_NOT_SCORED = Unobservable("nothing was scored yet")


def compute_dtype(live: Live) -> Observed:
    """Dtype of the activations that entered linear layers."""
    return lowest_precision(live.seen.activations) if live.seen.activations else _NOT_SCORED


def output_dtype(live: Live) -> Observed:
    """Dtype of the logits the model handed on."""
    return "+".join(sorted(live.seen.logits)) or _NOT_SCORED


def attention(live: Live) -> Observed:
    """The attention implementation that ran."""
    return "+".join(sorted(live.seen.attention)) or Unobservable("no attention call that torch can show was seen")


def batch_size(live: Live) -> Observed:
    """The batch size in force, where the rows that passed bear it out.

    A last batch, or one that holds every sequence, may be smaller than the size in force.
    """
    if live.collation is None:
        return _NOT_SCORED
    rows: dict[int, int] = {}
    for step, forward in zip(live.steps, live.seen.forwards, strict=True):
        if step.part is not Part.FILLER:
            rows[step.batch] = rows.get(step.batch, 0) + forward.rows
    size = live.collation.size
    expected = {batch: min(size, live.sequences - batch * size) for batch in rows}
    return size if rows == expected else _contradicted(live, f"batches of {size}")


def micro_size(live: Live) -> Observed:
    """The micro-batch size in force (the batch size where none is set), where the rows that passed bear it out.

    A last micro-batch may be smaller than the size in force.
    """
    if live.collation is None:
        return _NOT_SCORED
    size = live.collation.size
    micro = live.collation.micro or size
    left: dict[int, int] = {}
    for step, forward in zip(live.steps, live.seen.forwards, strict=True):
        if step.part is Part.FILLER:
            continue
        rest = left.get(step.batch, min(size, live.sequences - step.batch * size))
        if forward.rows != min(micro, rest):
            return _contradicted(live, f"micro-batches of {micro}")
        left[step.batch] = rest - forward.rows
    return micro


def _contradicted(live: Live, expected: str) -> Unobservable:
    return Unobservable(f"passes of {[item.rows for item in live.seen.forwards]} rows do not come from {expected}")


def padding_side(live: Live) -> Observed:
    """The side of the attention masks' zeros; where no row needed padding, the side the collation would pad."""
    if live.collation is None:
        return _NOT_SCORED
    seen = live.seen.padding_side
    return live.collation.padding_side if seen == "none" else seen


def threads(_live: Live) -> Observed:
    """Intra-operation threads of this process."""
    import torch

    return torch.get_num_threads()


def device(live: Live) -> Observed:
    """Device kind that holds the parameters."""
    return "+".join(sorted({parameter.device.type for parameter in live.model.parameters()}))


def backend(live: Live) -> Observed:
    """Backend of the operator that scored, as the bound callable names it."""
    if OPERATOR not in live.operators:
        return _NOT_SCORED
    named = getattr(live.operators[OPERATOR], "backend", None)
    return named or Unobservable(f"the callable bound for {OPERATOR} does not name its backend")


def single_process(live: Live) -> Observed:
    """1 where no parameter is distributed over ranks."""
    import torch

    if any(hasattr(parameter, "device_mesh") for parameter in live.model.parameters()):
        return Unobservable("a parameter is distributed, which this scorer never does")
    grouped = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if grouped else 1


def unsharded(live: Live) -> Observed:
    """``unsharded`` where every parameter is whole."""
    return "unsharded" if single_process(live) == 1 else Unobservable("a parameter is distributed over ranks")


def eager(live: Live) -> Observed:
    """True where no module was compiled."""
    compiled = any(module._compiled_call_impl is not None for module in live.model.modules())
    return not compiled and not type(live.model).__name__.startswith("Optimized")


def scoring_path(live: Live) -> Observed:
    """``prefill`` where whole sequences passed without any cached key or value."""
    if not live.seen.forwards:
        return _NOT_SCORED
    return Unobservable("keys and values were cached") if live.seen.cached else "prefill"


def prefix_cache(live: Live) -> Observed:
    """Whether cached keys and values entered or left the model."""
    return live.seen.cached if live.seen.forwards else _NOT_SCORED


def kv_cache_dtype(live: Live) -> Observed:
    """``none``: no cache existed."""
    if not live.seen.forwards:
        return _NOT_SCORED
    return Unobservable("keys and values were cached") if live.seen.cached else "none"


def _raw(value: Json) -> Callable[[Live], Observed]:
    def read(live: Live) -> Observed:
        if live.seen.raw is None:
            return _NOT_SCORED
        return value if live.seen.raw else Unobservable("the operator did not get the model's own logits")

    return read


SHARED: Mapping[str, Callable[[Any], Observed]] = {
    "training.compute_dtype": compute_dtype,
    "training.attention_backend": attention,
    "training.output_dtype": output_dtype,
    "batch.size": batch_size,
    "batch.micro_size": micro_size,
    "layout.padding_side": padding_side,
    "execution.threads": threads,
    "logp.backend": backend,
    "torch.device": device,
}
"""Readers of the knobs that every torch training scorer has."""

SINGLE: Mapping[str, Callable[[Any], Observed]] = {
    **SHARED,
    "training.sharding": unsharded,
    "training.world_size": single_process,
    "rollout.dtype": compute_dtype,
    "rollout.attention_backend": attention,
    "rollout.tensor_parallel_size": single_process,
    "rollout.enforce_eager": eager,
    "rollout.scoring_path": scoring_path,
    "rollout.kv_cache_dtype": kv_cache_dtype,
    "execution.prefix_cache": prefix_cache,
    "sampling.logprobs_mode": _raw("raw_logprobs"),
    "sampling.temperature": _raw(1.0),
}
"""Readers of the scorer ``torch``, in either role."""
