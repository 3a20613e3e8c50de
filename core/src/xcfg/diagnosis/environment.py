"""What was not the same around the two sides of a case, the likeliest to matter first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import field, frozen

from xcfg.model.identity import SideIdentity
from xcfg.model.json import Json, freeze, thaw, tupled
from xcfg.model.provenance import KnobState, SideProvenance
from xcfg.model.sample import RankInfo

COUNTERPARTS: Mapping[str, str] = {
    "rollout.attention_backend": "training.attention_backend",
    "rollout.tensor_parallel_size": "training.tensor_parallel_size",
}
"""Settings of one side that say of it what another setting says of the other."""

_NONE = (3, "no known way to change a number")
LIKELIHOOD: tuple[tuple[str, int, str], ...] = (
    (r"weights|layer |weight version|checkpoint revision|optimizer steps", 0, "other weights give other logprobs"),
    (r"tokenizer|tokens scored", 0, "other tokens are scored"),
    (r"semantics ", 0, "the logprobs do not mean the same"),
    (r"compute dtype", 1, "every matrix product rounds to it"),
    (r"operator |logp\.|kernel\.", 1, "computed by other code"),
    (r"rollout\.attention_backend", 1, "attention is summed in another order"),
    (r"rollout\.tensor_parallel_size|parallel |execution\.collective", 1, "sums are cut at other places"),
    (r"version torch|version transformers|torch_cuda|cpu_capability", 1, "kernels and models change between versions"),
    (r"layout\.|batch\.|padding side|cache mode|execution\.", 2, "kernels are chosen by shape and order"),
    (r"variable .*(LOG|PROGRESS|USAGE|SHUTDOWN|OFFLINE|MULTIPROCESSING|PARALLELISM)", *_NONE),
    (r"variable (CU|NCCL|NV|TORCH|PYTORCH|OMP|MKL|VLLM|TRITON|DS_)", 2, "may choose kernels"),
    (r"torch_threads|torch_interop", 2, "sums are cut by threads"),
    (r"machine|python|version ", 3, "rarely changes a number"),
)
"""Pattern of a name, how near the top it is listed, and why."""


@frozen(kw_only=True)
class Surrounding:
    """One side: who it proved to be, what its knobs and ranks were, and what was installed and set around it.

    ``fingerprint`` and ``facts`` are those of a sealed attempt (``environment.json``).
    """

    identity: SideIdentity
    provenance: SideProvenance
    ranks: tuple[RankInfo, ...] = field(converter=tupled)
    fingerprint: Mapping[str, Json] = field(factory=dict, converter=freeze)
    facts: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class Difference:
    """One thing that the sides state differently. ``tier`` is 0 where it is likeliest to matter, at most 3."""

    name: str
    rollout: Json = field(converter=freeze)
    training: Json = field(converter=freeze)
    tier: int
    why: str


def differences(rollout: Surrounding, training: Surrounding) -> tuple[Difference, ...]:
    """What differs, by tier and name. What one side alone states is no difference, but for an environment variable."""
    left, right = dict(_stated(rollout)), dict(_stated(training))
    names = {*left} & {*right} | {name for name in {*left, *right} if name.startswith("variable ")}
    found = [
        Difference(name=name, rollout=left.get(name), training=right.get(name), tier=tier, why=why)
        for name in names
        if left.get(name) != right.get(name)
        for tier, why in [_likelihood(name)]
    ]
    return tuple(sorted(found, key=lambda item: (item.tier, item.name)))


def _likelihood(name: str) -> tuple[int, str]:
    return next(((tier, why) for pattern, tier, why in LIKELIHOOD if re.match(pattern, name)), _NONE)


def _stated(side: Surrounding) -> Iterator[tuple[str, Json]]:
    identity = side.identity
    yield "weights", identity.checkpoint_digest
    yield "checkpoint revision", identity.checkpoint_revision
    yield "weight version", identity.weight_version
    yield "optimizer steps", identity.optimizer_steps
    yield "tokenizer", identity.tokenizer_digest
    yield "tokens scored", identity.token_digest
    for name in (
        "mode",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "penalties",
        "logit_scale",
        "logit_softcap",
        "vocab_size",
    ):
        yield f"semantics {name}", thaw(getattr(identity.semantics, name))
    for section, digest in (thaw(identity.recorded.get("sections")) or {}).items():
        yield f"layer {section}", digest
    shared = {training: rollout for rollout, training in COUNTERPARTS.items()}
    for name, knob in side.provenance.knobs.items():
        if knob.state is not KnobState.INAPPLICABLE:
            yield shared.get(name, name), thaw(knob.observed)
    for operator, bound in side.provenance.operators.items():
        yield f"operator {operator}", f"{bound.concrete} ({bound.build})"
    yield from _ranks(side.ranks)
    yield from _installed(side)


def _ranks(ranks: tuple[RankInfo, ...]) -> Iterator[tuple[str, Json]]:
    for label, name in (
        ("compute dtype", "compute_dtype"),
        ("padding side", "padding_side"),
        ("cache mode", "cache_mode"),
    ):
        yield label, sorted({str(getattr(rank, name)) for rank in ranks})
    for mode in sorted({mode for rank in ranks for mode in rank.parallel}):
        yield f"parallel {mode}", sorted({str(rank.parallel.get(mode)) for rank in ranks})


def _installed(side: Surrounding) -> Iterator[tuple[str, Json]]:
    fingerprint, facts = thaw(side.fingerprint), thaw(side.facts)
    yield from ((name, fingerprint.get(name)) for name in ("python", "machine"))
    for name, value in fingerprint.get("environment", {}).items():
        yield f"variable {name}", value
    told: dict[str, Json] = {}
    for rank in facts.values():
        for plugin in rank.values():
            for name, value in plugin.items():
                told.setdefault(name, []).append(value)
    for name, values in told.items():
        yield f"version {name}" if not name.startswith("torch_") else name, sorted({str(value) for value in values})
