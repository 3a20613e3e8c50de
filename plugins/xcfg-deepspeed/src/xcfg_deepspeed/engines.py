"""Building DeepSpeed's engines around a Hugging Face model, for scoring only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xcfg.errors import UnsupportedError
from xcfg_deepspeed.unstepped import Unstepped, close_updates

_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16"}


def zero_engine(model: Any, *, stage: int, dtype: str) -> Any:
    """An engine of ``deepspeed.initialize`` in evaluation mode, which can neither step nor run backward.

    Stage 3 partitions ``model`` and needs no optimizer, nor does stage 0; stages 1 and 2 get one that holds no state.
    Raises UnsupportedError with DeepSpeed's own words where it refuses.
    """
    import deepspeed

    config: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
    }
    if dtype in _PRECISIONS:
        config[_PRECISIONS[dtype]] = {"enabled": True}
    with _refusals():
        optimizer = Unstepped(model.parameters()) if stage in (1, 2) else None
        engine = deepspeed.initialize(model=model, config=config, optimizer=optimizer)[0]
    engine.eval()
    close_updates(engine)
    return engine


def inference_engine(model: Any, *, tensor_parallel: int, dtype: str) -> Any:
    """An engine of ``deepspeed.init_inference`` without its CUDA kernels.

    Raises UnsupportedError with DeepSpeed's own words where it refuses.
    """
    import deepspeed
    import torch

    with _refusals():
        engine = deepspeed.init_inference(
            model,
            tensor_parallel={"tp_size": tensor_parallel},
            dtype=getattr(torch, dtype),
            replace_with_kernel_inject=False,
        )
    engine.eval()
    close_updates(engine)
    return engine


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UnsupportedError(f"DeepSpeed: {error}", where="training.compute_dtype") from error
