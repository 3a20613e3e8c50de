"""Builders of side results with made-up identities, and of contracts with made-up figures."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from hypothesis import Phase, settings

from xcfg.model.attempt import SideResult
from xcfg.model.identity import LogprobSemantics, SideIdentity
from xcfg.model.provenance import KnobProvenance, KnobState, SideProvenance
from xcfg.model.sample import RankInfo, Samples
from xcfg.model.tolerance import ContractRef, ToleranceContract

settings.register_profile(
    "mutation", derandomize=True, database=None, phases=(Phase.explicit, Phase.generate), max_examples=20
)
"""For the mutation run (tests/mutation): the same few examples for every mutant, and none made smaller."""

SEMANTICS = LogprobSemantics(vocab_size=100)
IDENTITY = SideIdentity(
    checkpoint_digest="c" * 64,
    tokenizer_digest="t" * 64,
    token_digest="b" * 64,
    state_before="s" * 64,
    state_after="s" * 64,
    semantics=SEMANTICS,
)


def make_samples(logprobs, masks=None, ranks=None, sequences=None, prompts=None, tokens=None):
    """Rows of one side: ``logprobs`` a list of rows of nats; row i is sequence i on rank 0 with prompt 2 + i % 3."""
    rows = len(logprobs)
    sequences = list(range(rows)) if sequences is None else sequences
    prompts = [2 + index % 3 for index in sequences] if prompts is None else prompts
    lengths = [len(row) for row in logprobs]
    masks = [[True] * length for length in lengths] if masks is None else masks
    tokens = [[10 + place for place in range(length)] for length in lengths] if tokens is None else tokens
    inputs, positions = [], []
    for prompt, length, response in zip(prompts, lengths, tokens, strict=True):
        inputs += [1] * prompt + list(response)
        positions += range(prompt + length)
    return Samples(
        sequence=sequences,
        rank=[0] * rows if ranks is None else ranks,
        prompt_length=prompts,
        response_length=lengths,
        input_ids=np.array(inputs, dtype=np.int64),
        position_ids=np.array(positions, dtype=np.int64),
        action_mask=np.array([flag for row in masks for flag in row], dtype=bool),
        logprobs=np.array([value for row in logprobs for value in row], dtype=np.float32),
    )


def make_side(logprobs, *, ids=None, dtype="float32", world=1, knobs=None, identity=IDENTITY, **kwargs):
    """A sound side result; rank r of ``world`` has the compute dtype ``dtype`` (or ``dtype[r]``)."""
    samples = make_samples(logprobs, **kwargs)
    count = int(samples.sequence.max(initial=-1)) + 1
    dtypes = [dtype] * world if isinstance(dtype, str) else dtype
    return SideResult(
        identity=identity,
        provenance=SideProvenance(knobs=knobs or {"batch.size": applied(4)}),
        ranks=[
            RankInfo(rank=rank, world_size=world, compute_dtype=dtypes[rank], parallel={"fsdp": world})
            for rank in range(world)
        ],
        expected_ranks=world,
        sequence_ids=ids or [f"s{index}" for index in range(count)],
        samples=samples,
    )


def applied(value):
    """Provenance of a knob in force."""
    return KnobProvenance(requested=value, materialized=value, observed=value, state=KnobState.APPLIED)


def permuted(side, order):
    """The same evidence with its rows in another order."""
    samples = side.samples
    parts = []
    for row in order:
        tokens, response = samples.input_slice(row), samples.response_slice(row)
        parts.append(
            Samples(
                sequence=samples.sequence[row : row + 1],
                rank=samples.rank[row : row + 1],
                prompt_length=samples.prompt_length[row : row + 1],
                response_length=samples.response_length[row : row + 1],
                input_ids=samples.input_ids[tokens],
                position_ids=samples.position_ids[tokens],
                action_mask=samples.action_mask[response],
                logprobs=samples.logprobs[response],
            )
        )
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in samples.arrays()}
    return evolve(side, samples=Samples(**joined))


@pytest.fixture(scope="session")
def contract():
    """A made-up contract: round binary figures so that equality can be met exactly."""
    return ToleranceContract(
        ref=ContractRef(id="made-up", version="1", digest="d" * 64),
        clip_interval=(0.75, 1.25),
        max_abs_dlogp={"float32": 2.0**-10, "float16": 2.0**-6, "bfloat16": 2.0**-3},
        approx_kl0={"float32": 1e-6, "bfloat16": 1e-2},
        clipfrac0={"float32": 0.0, "bfloat16": 0.0},
    )


@pytest.fixture(scope="session")
def side():
    """The builder of side results."""
    return make_side


@pytest.fixture(scope="session")
def permute():
    """The function that reorders a side's rows."""
    return permuted


@pytest.fixture(scope="session")
def rows_of():
    """The builder of samples."""
    return make_samples


@pytest.fixture(scope="session")
def knob():
    """The builder of a knob's provenance in force."""
    return applied
