"""Binding a kernel backend in every worker of an engine, and reading back what they called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xcfg.errors import UnsupportedError
from xcfg.model.codec import structure, unstructure
from xcfg.model.json import Json
from xcfg.model.kernel import SELECTED_LOGPROB, BoundKernel, KernelRequest
from xcfg.plugin import HostedOperator
from xcfg_vllm.faults import EngineFault
from xcfg_vllm.forced_params import V1_HOOK

if TYPE_CHECKING:
    from xcfg_vllm.engine import Engine

RAW = "raw_logprobs"


def logprob_request(engine: Engine, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
    """The request for ``selected_logprob`` on the logits of this engine's sampler; None for any other operator.

    The sampler gets raw logits in the dtype of the model's head, and sees the real vocabulary only.
    """
    if operator != SELECTED_LOGPROB:
        return None
    config = engine.config.model_config
    dtype = str(getattr(config, "head_dtype", config.dtype)).removeprefix("torch.")
    device = engine.config.device_config.device_type
    return KernelRequest(operator=operator, device=device, dtype=dtype, vocab_size=engine.vocabulary, options=options)


@contextmanager
def hosted(engine: Engine, asked: HostedOperator) -> Iterator[Callable[[], BoundKernel | None]]:
    """The backend computes the logprobs of selected tokens in every worker. Raises UnsupportedError with the reason."""
    where = asked.request.operator
    if reason := _refusal(engine):
        raise UnsupportedError(f"{where} = {asked.backend}: {reason}", where=where)
    try:
        reasons = engine.rpc("xcfg_host", asked.target, unstructure(asked.request))
        if any(reasons):
            raise UnsupportedError(f"{where} = {asked.backend}: {next(filter(None, reasons))}", where=where)
        yield lambda: _told(engine.rpc("xcfg_hosted"))
    finally:
        engine.rpc("xcfg_unhost")


def _refusal(engine: Engine) -> str:
    if engine.forcing != V1_HOOK:
        return "vLLM's Model Runner V2 computes logprobs inside its own kernels; take VLLM_USE_V2_MODEL_RUNNER=0"
    if engine.settings.logprobs_mode != RAW:
        mode = engine.settings.logprobs_mode
        return f"vLLM takes {mode} inside its top-k and top-p kernels; only {RAW} can be taken over"
    return ""


def _told(answers: list[dict[str, Json] | None]) -> BoundKernel | None:
    if any(answer != answers[0] for answer in answers):
        raise EngineFault(f"the workers called different kernels: {answers}")
    return None if answers[0] is None else structure(answers[0], BoundKernel)
