"""What DeepSpeed really did, read from its engine, its parameters and its process groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xcfg.model.capability import Unobservable
from xcfg.model.json import Json
from xcfg_deepspeed.live import DeepspeedLive
from xcfg_deepspeed.partition import is_partitioned, partitions, release
from xcfg_deepspeed.shapes import FULL_SHARD, UNSHARDED
from xcfg_deepspeed.state import masters, optimizer_states, steps
from xcfg_deepspeed.tensor_parallel import shards
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.readback import SHARED
from xcfg_torch.readback_scored import Observed
from xcfg_torch.semantics import text_config


def init_inference(live: DeepspeedLive) -> Observed:
    """Whether the engine is the one of init_inference."""
    from deepspeed.inference.engine import InferenceEngine

    return isinstance(live.engine, InferenceEngine)


def zero_stage(live: DeepspeedLive) -> Observed:
    """The stage that parameters and optimizer bear out, where the engine says the same."""
    found = _stage_of_state(live)
    if isinstance(found, Unobservable) or init_inference(live):
        return found
    said = live.engine.zero_optimization_stage()
    return found if said == found else Unobservable(f"the engine says stage {said}, its state is that of stage {found}")


def _stage_of_state(live: DeepspeedLive) -> int | Unobservable:
    from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer

    optimizer = getattr(live.engine, "optimizer", None)
    taken = {is_partitioned(parameter) for parameter in live.model.parameters()}
    if taken == {True}:
        return 3
    if len(taken) > 1:
        return Unobservable("some parameters are partitioned and some are whole")
    if not isinstance(optimizer, DeepSpeedZeroOptimizer):
        return 0
    own, every = sum(item.numel() for item in masters(live.engine)), _ranks() or 1
    whole = sum(parameter.numel() for parameter in live.model.parameters())
    if own * every < whole or (every > 1 and own >= whole):
        return Unobservable(f"{own} of {whole} elements are the optimizer's on this rank of {every}")
    return 2 if optimizer.partition_gradients else 1


def sharding(live: DeepspeedLive) -> Observed:
    """``full_shard`` where this rank keeps its part of every parameter, ``unsharded`` where it keeps all whole."""
    release(live.engine)
    kept, total = partitions(live.model), list(live.model.parameters())
    if not kept:
        return UNSHARDED
    ranks = _ranks() or 1
    own = sum(item.numel() for item in kept.values())
    whole = sum(parameter.ds_numel for parameter in total if is_partitioned(parameter))
    left = sum(parameter.numel() for parameter in total)
    padding = len(kept) * ranks
    if len(kept) == len(total) and not left and whole <= own * ranks <= whole + padding:
        return FULL_SHARD
    return Unobservable(f"{own} of {whole} elements on each of {ranks} ranks, {left} left whole")


def world_size(live: DeepspeedLive) -> Observed:
    """Ranks of the process group, where DeepSpeed's communication counts as many."""
    ranks = _ranks()
    if ranks is None:
        return Unobservable("no process group")
    said = live.communication.get_world_size()
    return ranks if said == ranks else Unobservable(f"the process group has {ranks} ranks, DeepSpeed's {said}")


def tensor_parallel_size(live: DeepspeedLive) -> Observed:
    """Ranks of the group that every split layer sums over, where this rank holds less than the whole model."""
    import torch.distributed as dist

    layers = shards(live.model)
    if not layers:
        return 1
    sizes = {dist.get_world_size(layer.mp_group) for layer in layers}
    if len(sizes) > 1:
        return Unobservable(f"layers are split over groups of {sorted(sizes)} ranks")
    (size,) = sizes
    own = sum(parameter.numel() for parameter in live.model.parameters())
    return size if own < live.elements else Unobservable(f"this rank holds all {own} elements of the model")


def collective(live: DeepspeedLive) -> Observed:
    """What carried the sums over tensor-parallel ranks; else the library of the ranks' process group."""
    import torch.distributed as dist

    if live.carried:
        return "+".join(sorted(live.carried))
    if not dist.is_initialized():
        return Unobservable("no process group")
    name = getattr(live.communication, "name", "torch")
    return dist.get_backend() if name == "torch" else str(name)


def vocab_padding(live: DeepspeedLive) -> Observed:
    """1 where the output head has the rows that the checkpoint gives it."""
    rows, own = live.columns, int(text_config(live.model).vocab_size)
    return 1 if rows == own else Unobservable(f"the output head has {rows} rows, the checkpoint {own}")


def parallel_degrees(live: DeepspeedLive) -> dict[str, int]:
    """Degree of each parallel mode: ``tp`` of init_inference, ``shard`` of ZeRO-3, ``dp`` of everything else."""
    size = tensor_parallel_size(live)
    ranks = _ranks() or 1
    if isinstance(size, int) and size > 1:
        return {"tp": size}
    return {"shard" if partitions(live.model) else "dp": ranks}


def engine_facts(live: DeepspeedLive) -> dict[str, Json]:
    """Classes of engine, optimizer and linear function, this rank's share of the parameters, and steps taken."""
    import torch

    release(live.engine)
    kept = partitions(live.model)
    optimizer = getattr(live.engine, "optimizer", None)
    held = kept.values() if kept else live.model.parameters()
    linear = torch.nn.functional.linear
    return {
        "engine": type(live.engine).__qualname__,
        "optimizer": None if optimizer is None else type(optimizer).__qualname__,
        "optimizer_states": optimizer_states(live.engine),
        "steps": steps(live.engine),
        "buffer_dtypes": sorted({dtype_name(buffer.dtype) for buffer in live.model.buffers()}),
        "linear": f"{linear.__module__}.{linear.__name__}",
        "split_layers": sorted({type(layer).__name__ for layer in shards(live.model)}),
        "elements": live.elements,
        "local_elements": sum(tensor.numel() for tensor in held),
        "partition_dtypes": sorted({dtype_name(tensor.dtype) for tensor in kept.values()}),
        "master_dtypes": sorted({dtype_name(tensor.dtype) for tensor in masters(live.engine)}),
        "collective_backend": _told(collective(live)),
    }


def _told(value: Observed) -> Json:
    return value.reason if isinstance(value, Unobservable) else value


def _ranks() -> int | None:
    import torch.distributed as dist

    return dist.get_world_size() if dist.is_initialized() else None


READERS: Mapping[str, Callable[[Any], Observed]] = {
    **SHARED,
    "training.sharding": sharding,
    "training.world_size": world_size,
    "training.tensor_parallel_size": tensor_parallel_size,
    "execution.collective": collective,
    "layout.vocab_padding": vocab_padding,
    "deepspeed.zero_stage": zero_stage,
    "deepspeed.init_inference": init_inference,
}
"""Readers of every knob of the scorer ``deepspeed``."""
