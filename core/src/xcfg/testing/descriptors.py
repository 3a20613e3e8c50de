"""The fakes as plain data: usable only with ``--allow-fake``, and every output that used one is marked."""

from __future__ import annotations

from collections.abc import Iterator

from xcfg.model.json import Json
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, Role, ScorerDescriptor

_ROLES = (Role.ROLLOUT, Role.TRAINING)
_MODULE = "xcfg.testing.materialize"


def _scorer(id: str, summary: str, target: str) -> ScorerDescriptor:
    return ScorerDescriptor(
        id=id, summary=summary, target=f"xcfg.testing.{target}", roles=_ROLES, samples=True, forces=True, fake=True
    )


SCORERS = (
    _scorer("fake", "numpy language model of either role", "fakes:FakeScorer"),
    _scorer("testing.fake", "the same under the name that examples use", "fakes:FakeScorer"),
    _scorer("fake_kernel", "numpy language model that lets a kernel backend take over", "fakes:KernelFakeScorer"),
    _scorer("fake_open_crash", "raises while the engine is built", "failing:OpenCrash"),
    _scorer("fake_score_crash", "raises while scoring", "failing:ScoreCrash"),
    _scorer("fake_hang", "never returns from scoring", "failing:Hang"),
    _scorer("fake_killed", "dies by SIGKILL while scoring", "failing:Killed"),
    _scorer("fake_nan", "returns NaN for the first active token", "failing:NotANumber"),
    _scorer("fake_dropped_rank", "returns the rows of one of two ranks", "failing:DroppedRank"),
    _scorer("fake_state_changed", "changes a weight while scoring", "failing:StateChanged"),
    _scorer("fake_fallback", "computes in float32 whatever is asked for", "failing:Fallback"),
    _scorer("fake_unobserved", "does not show its compute dtype", "failing:Unobserved"),
    _scorer("fake_off_by_one", "reports each token's logprob one place too early", "mutants:OffByOne"),
    _scorer("fake_prompt_in_mask", "counts the last prompt token as an active response token", "failing:PromptInMask"),
    _scorer("fake_mask_ignored", "reports every response token as active", "mutants:MaskIgnored"),
)

_ENGINE = (
    "rollout.dtype",
    "rollout.kv_cache_dtype",
    "rollout.tensor_parallel_size",
    "rollout.enforce_eager",
    "execution.prefix_cache",
    "sampling.logprobs_mode",
    "training.compute_dtype",
    "training.output_dtype",
    "training.reduce_dtype",
)
_REQUEST = (
    "rollout.scoring_path",
    "sampling.temperature",
    "batch.size",
    "batch.micro_size",
    "layout.padding_side",
)
_ATTENTION = ("sdpa", "eager")
_LIMITED: dict[str, tuple[tuple[Json, ...], str]] = {
    "rollout.attention_backend": ((None, *_ATTENTION), "the fake engine has these two attentions"),
    "training.attention_backend": ((None, *_ATTENTION), "the fake engine has these two attentions"),
    "training.world_size": ((1,), "the fake engine runs on one rank"),
    "training.sharding": (("unsharded",), "the fake engine runs on one rank"),
}


def _materializers(scorer: str) -> Iterator[MaterializerDescriptor]:
    for knob in _ENGINE:
        yield MaterializerDescriptor(
            knob=knob, scorer=scorer, lifecycle=Lifecycle.ENGINE, target=f"{_MODULE}:EngineMaterializer"
        )
    for knob, (values, reason) in _LIMITED.items():
        yield MaterializerDescriptor(
            knob=knob,
            scorer=scorer,
            lifecycle=Lifecycle.ENGINE,
            target=f"{_MODULE}:EngineMaterializer",
            values=values,
            reason=reason,
        )
    for knob in _REQUEST:
        yield MaterializerDescriptor(
            knob=knob, scorer=scorer, lifecycle=Lifecycle.REQUEST, target=f"{_MODULE}:RequestMaterializer"
        )
    yield MaterializerDescriptor(
        knob="execution.threads",
        scorer=scorer,
        lifecycle=Lifecycle.PROCESS,
        target=f"{_MODULE}:ThreadsMaterializer",
    )
    yield _logp_backend(scorer)


def _logp_backend(scorer: str) -> MaterializerDescriptor:
    if scorer != "fake_kernel":
        reason = "the fake engine computes its logprobs itself"
        return MaterializerDescriptor(
            knob="logp.backend", scorer=scorer, lifecycle=Lifecycle.REQUEST, inapplicable=reason
        )
    return MaterializerDescriptor(
        knob="logp.backend",
        scorer=scorer,
        lifecycle=Lifecycle.REQUEST,
        target=f"{_MODULE}:BackendMaterializer",
        values=tuple(backend.id for backend in BACKENDS),
        reason="the fake engine's logits are numpy arrays",
    )


def _backend(id: str, summary: str, cls: str) -> KernelBackendDescriptor:
    return KernelBackendDescriptor(
        operator="selected_logprob",
        id=id,
        summary=summary,
        target=f"xcfg.testing.backends:{cls}",
        roles=_ROLES,
        dtypes=("float32", "float16", "bfloat16"),
        fake=True,
    )


BACKENDS = (
    _backend("fake_exact", "numpy log-softmax in float64", "ExactBackend"),
    _backend("fake_coarse", "the exact value rounded to bfloat16", "CoarseBackend"),
)
MATERIALIZERS = tuple(item for scorer in SCORERS for item in _materializers(scorer.id))
