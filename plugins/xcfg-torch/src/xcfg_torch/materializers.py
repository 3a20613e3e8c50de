"""How knobs reach the scorer ``torch``, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import MaterializerDescriptor
from xcfg_torch.shared import (
    ATTENTION,
    ATTENTION_BACKENDS,
    PACKED_BY_OWN_MASK,
    Only,
    only_rows,
    own_materializers,
    row,
    shared_materializers,
)

SCORER = "torch"
TARGET = "xcfg_torch.materialize:TorchMaterializer"

_ONE_PROCESS = "the torch scorer is a single process"
_OWN_CACHE = "the torch scorer keeps keys and values of one batch at a time, in the dtype they are computed in"
_RAW = "the torch scorer hands the model's own logits to the logprob kernel"

ONLY: Mapping[str, Only] = {
    "training.sharding": Only(values=("unsharded",), reason=_ONE_PROCESS),
    "training.world_size": Only(values=(1,), reason=_ONE_PROCESS),
    "training.context_parallel_size": Only(values=(1,), reason=_ONE_PROCESS),
    "rollout.tensor_parallel_size": Only(values=(1,), reason=_ONE_PROCESS),
    "rollout.enforce_eager": Only(values=(None, True), reason="the torch scorer compiles on the training side only"),
    "rollout.quantization": Only(values=(None,), reason="the torch scorer quantises no weights"),
    "rollout.kv_cache_dtype": Only(values=(None,), reason=_OWN_CACHE),
    "execution.prefix_cache": Only(values=(None, False), reason=_OWN_CACHE),
    "sampling.logprobs_mode": Only(values=("raw_logprobs",), reason=_RAW),
    "sampling.temperature": Only(values=(1.0,), reason=_RAW, lifecycle=Lifecycle.REQUEST),
    "sampling.top_p": Only(values=(1.0,), reason=_RAW, lifecycle=Lifecycle.REQUEST),
    "sampling.top_k": Only(values=(0,), reason=_RAW, lifecycle=Lifecycle.REQUEST),
}
"""Knobs that the scorer ``torch`` has besides the shared ones and cannot change."""

_INAPPLICABLE: Mapping[str, str] = {
    "training.reduce_dtype": "a single process reduces nothing over ranks",
    "execution.collective": "a single process has no ranks to sum over",
    "execution.max_num_seqs": "the torch scorer schedules nothing: batch.size says which sequences pass together",
    "execution.compile_mode": "the torch scorer compiles on the training side only, where training.compile says so",
    "layout.vocab_padding": "the checkpoint's output head is loaded as it is, without columns of padding",
    "logp.tp_layout": "a single process has every column of the logits",
}

MATERIALIZERS = (
    *(item for item in shared_materializers(SCORER, TARGET, PACKED_BY_OWN_MASK) if item.knob not in _INAPPLICABLE),
    *own_materializers(SCORER, TARGET),
    *only_rows(SCORER, TARGET, ONLY),
    row(SCORER, TARGET, "rollout.dtype", Lifecycle.ENGINE),
    row(SCORER, TARGET, "rollout.scoring_path", Lifecycle.REQUEST),
    row(SCORER, TARGET, "rollout.chunked_prefill", Lifecycle.ENGINE),
    row(SCORER, TARGET, "torch.rollout_prefill_chunk", Lifecycle.REQUEST),
    row(SCORER, TARGET, "rollout.attention_backend", Lifecycle.ENGINE, ATTENTION_BACKENDS, ATTENTION),
    *(
        MaterializerDescriptor(knob=knob, scorer=SCORER, lifecycle=Lifecycle.ENGINE, inapplicable=sentence)
        for knob, sentence in _INAPPLICABLE.items()
    ),
)
"""Every materializer of the scorer ``torch``."""
