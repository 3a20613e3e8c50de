"""Every knob with every value on this machine: applied and observed as asked for, or refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from xcfg.builtin.knobs import KNOBS as CORE_KNOBS
from xcfg.model.capability import Unobservable, Unsupported
from xcfg_torch.knobs import KNOBS
from xcfg_torch.materialize import TorchMaterializer
from xcfg_torch.materializers import MATERIALIZERS
from xcfg_torch.testing.cases import ROLLOUT, TRAINING, played
from xcfg_torch.testing.oracle import oracle_logprobs

pytestmark = pytest.mark.full

KNOWN = {knob.name: knob for knob in (*CORE_KNOBS, *KNOBS)}
NUMBERS = {
    "batch.size": (1, 2, 8),
    "batch.micro_size": (1, 2),
    "execution.threads": (1,),
    "torch.prefill_chunk": (1, 3, 400),
    "torch.rollout_prefill_chunk": (1, 3, 400),
    "layout.vocab_padding": (1, 64),
    "sampling.temperature": (1.0, 0.7),
    "sampling.top_p": (1.0, 0.9),
    "sampling.top_k": (0, 5),
}
NAMES = {
    "training.attention_backend": ("sdpa", "eager", "flash_attention_2", "flex_attention"),
    "rollout.attention_backend": ("sdpa", "eager", "flash_attention_2"),
    "rollout.quantization": ("fp8",),
    "logp.reduction_policy": ("native", "canonical"),
    "logp.backend": ("production", "reference"),
}
BESIDE = {
    "torch.prefill_chunk": {"torch.forward": "chunked_prefill"},
    "rollout.chunked_prefill=True": {"torch.rollout_prefill_chunk": 4},
    "torch.forward=chunked_prefill": {"torch.prefill_chunk": 4},
    "layout.padding_side": {"batch.size": 4},
}
LOWER = {"bfloat16": 0.5, "float16": 0.05}  # nats, of random weights


def _values(name):
    domain = KNOWN[name].domain
    if domain.kind.value == "bool":
        return (False, True)
    if domain.values:
        return domain.values
    return NUMBERS.get(name) or NAMES.get(name) or (1, 2)


CELLS = [
    (item, value)
    for item in MATERIALIZERS
    if not item.inapplicable
    for value in _values(item.knob)
    if (item.knob, value) != ("training.compile", True)  # run by itself where torch compiles for the processor
]


@pytest.fixture(scope="module")
def oracle(checkpoint, batch):
    return np.concatenate(oracle_logprobs(checkpoint, batch))


@pytest.mark.parametrize(("item", "value"), CELLS, ids=[f"{item.knob}={value}" for item, value in CELLS])
def test_applied_and_observed_or_refused(checkpoint, batch, oracle, item, value) -> None:
    knob = item.knob
    role = "training" if knob in TRAINING else "rollout"
    if item.values and value not in item.values:
        assert len(item.reason.split()) > 3
        return
    base = TRAINING if role == "training" else ROLLOUT
    beside = BESIDE.get(knob) or BESIDE.get(f"{knob}={value}") or {}
    found = TorchMaterializer().probe(knob, value, {"role": role, "knobs": base})
    if isinstance(found, Unsupported):
        assert len(found.reason.split()) > 3
        return
    backend = value if knob == "logp.backend" else "production"
    result = played(checkpoint, batch, {**beside, knob: value}, role=role, backend=backend)
    observed = result.observed[knob]
    assert not isinstance(observed, Unobservable), observed.reason
    assert observed == value
    bound = LOWER.get(value, 2e-5)
    if (knob, value) != ("layout.position_ids", "padded"):
        np.testing.assert_allclose(result.scored[0].samples.logprobs, oracle, rtol=0, atol=bound)
    assert result.states[0] == result.states[1]
