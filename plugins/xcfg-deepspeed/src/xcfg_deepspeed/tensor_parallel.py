"""Tensor parallelism of init_inference: models it splits evenly, what its layers saw, and what carried its sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from xcfg.errors import UnsupportedError
from xcfg_deepspeed.shapes import SHM
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.observe import Observation
from xcfg_torch.semantics import text_config

if TYPE_CHECKING:
    import torch

WHERE = "training.tensor_parallel_size"
_LEVELS = {"float32": 1, "bfloat16": 2, "float16": 2}  # the operator's vector kernels: 1 is AVX2, 2 AVX-512BW


def check_heads(model: Any, size: int) -> None:
    """Raise UnsupportedError where heads do not divide over ``size`` ranks: DeepSpeed would leave some with fewer."""
    config = text_config(model)
    for what, count in (
        ("attention heads", config.num_attention_heads),
        ("key-value heads", getattr(config, "num_key_value_heads", None) or config.num_attention_heads),
    ):
        if count % size:
            raise UnsupportedError(f"{count} {what} cannot be split evenly over {size} ranks", where=WHERE)


def shards(model: Any) -> list[Any]:
    """The layers that DeepSpeed split over ranks."""
    from deepspeed.module_inject.layers import TensorParallel_Layer

    return [module for module in model.modules() if isinstance(module, TensorParallel_Layer)]


def observe_shards(model: Any, seen: Observation) -> None:
    """Note in ``seen`` the dtype of what enters DeepSpeed's own linear layers; its embeddings get integers."""

    def projection(_module: Any, args: tuple[Any, ...]) -> None:
        if args[0].is_floating_point():
            seen.activations.add(dtype_name(args[0].dtype))

    for module in shards(model):
        module.register_forward_pre_hook(projection)


def check_shared_memory(communication: Any, dtype: str) -> None:
    """Raise UnsupportedError where DeepSpeed has no operator on this machine that sums ``dtype`` in shared memory."""
    level = getattr(communication, "shm_vector_kernel_level", 0)
    if level < _LEVELS[dtype]:
        raise UnsupportedError(
            f"DeepSpeed's shared-memory sum of {dtype} needs vector kernels of level {_LEVELS[dtype]} and this machine "
            f"has level {level}",
            where="execution.collective",
        )


def watch_sums(communication: Any, *, own_operator: bool) -> set[str]:
    """Note what carries each sum over tensor-parallel ranks; without ``own_operator`` it is the process group.

    The communication object belongs to one engine and is dropped with it.
    """
    carried: set[str] = set()
    engines = communication.inference_all_reduce if own_operator else communication.all_reduce

    def watched(tensor: torch.Tensor, op: Any, group: Any = None) -> Any:
        with _dispatch_watch()(carried, group):
            return engines(tensor, op, group)

    communication.inference_all_reduce = watched
    return carried


@cache
def _dispatch_watch() -> Callable[[set[str], Any], Any]:
    """The mode that sees which operator torch's dispatcher was asked for."""
    import torch.distributed as dist
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        def __init__(self, carried: set[str], group: Any) -> None:
            super().__init__()
            self.carried, self.group = carried, group

        def __torch_dispatch__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if function.namespace == "deepspeed":
                self.carried.add(SHM)
            elif function.namespace == "c10d":
                self.carried.add(dist.get_backend(self.group))
            return function(*args, **(kwargs or {}))

    return Watch
