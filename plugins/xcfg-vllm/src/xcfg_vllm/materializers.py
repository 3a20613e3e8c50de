"""How knobs reach the scorer ``vllm``, as plain data."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import MaterializerDescriptor
from xcfg_vllm.knobs import KNOBS

SCORER = "vllm"
TARGET = "xcfg_vllm.materialize:VllmMaterializer"

KV_CACHE_DTYPES: tuple[Json, ...] = (None, "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")
COMPILE_MODES: tuple[Json, ...] = (None, "NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE")

_RAGGED = "vLLM runs ragged batches: nothing is padded"
_OWN_LOGPROBS = "vLLM computes logprobs in its own sampler unless operators.selected_logprob.rollout names a backend"


def _row(
    knob: str,
    lifecycle: Lifecycle = Lifecycle.ENGINE,
    *,
    values: tuple[Json, ...] = (),
    reason: str = "",
) -> MaterializerDescriptor:
    return MaterializerDescriptor(
        knob=knob, scorer=SCORER, lifecycle=lifecycle, target=TARGET, values=values, reason=reason
    )


def _inapplicable(knob: str, sentence: str) -> MaterializerDescriptor:
    return MaterializerDescriptor(knob=knob, scorer=SCORER, lifecycle=Lifecycle.REQUEST, inapplicable=sentence)


MATERIALIZERS = (
    _row("rollout.tensor_parallel_size"),
    _row("rollout.dtype"),
    _row("rollout.quantization"),
    _row(
        "rollout.kv_cache_dtype",
        values=KV_CACHE_DTYPES,
        reason="vLLM stores keys and values in the compute dtype, or in one of these",
    ),
    _row("rollout.attention_backend"),
    _row("rollout.enforce_eager"),
    _row("rollout.chunked_prefill"),
    _row("rollout.scoring_path", Lifecycle.REQUEST),
    _row("execution.prefix_cache"),
    _row("execution.max_num_seqs"),
    _row("execution.compile_mode", values=COMPILE_MODES, reason="these are the modes vLLM has a name for"),
    _row("execution.collective"),
    _row("execution.threads", Lifecycle.PROCESS),
    _row("sampling.logprobs_mode"),
    _row("sampling.temperature", Lifecycle.REQUEST),
    _row("sampling.top_p", Lifecycle.REQUEST),
    _row("sampling.top_k", Lifecycle.REQUEST),
    _row("batch.size", Lifecycle.REQUEST),
    *(_row(knob.name, knob.lifecycle) for knob in KNOBS),
    _inapplicable("layout.padding_side", _RAGGED),
    _inapplicable("layout.packing", f"{_RAGGED} and no row holds two sequences"),
    _inapplicable("layout.position_ids", f"{_RAGGED}, so positions count from the first token of a sequence"),
    _inapplicable("layout.vocab_padding", "vLLM pads its head as it likes and takes the padding off the logits"),
    _inapplicable("logp.backend", _OWN_LOGPROBS),
    _inapplicable("logp.deterministic", _OWN_LOGPROBS),
    _inapplicable("logp.tp_layout", _OWN_LOGPROBS),
    _inapplicable("logp.reduction_policy", _OWN_LOGPROBS),
)
"""Every materializer of the scorer ``vllm``."""
