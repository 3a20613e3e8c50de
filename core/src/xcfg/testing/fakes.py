"""A scorer of either role over the numpy language model; knobs change its numbers the way they change an engine's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import Factory, define

from xcfg.errors import InvalidInput
from xcfg.model.codec import load_json
from xcfg.model.experiment import SampleSource
from xcfg.model.identity import LogprobSemantics
from xcfg.model.json import Json
from xcfg.model.kernel import SELECTED_LOGPROB, KernelRequest
from xcfg.model.sample import RankInfo, Samples, TokenBatch
from xcfg.model.scorer import Role
from xcfg.plugin.checkpoint import CheckpointDigest, digest_checkpoint
from xcfg.plugin.protocols import Prompt, Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg.testing.language import LanguageModel, Precision, Weights, selected_logprob
from xcfg.testing.sampling import draw_response


@define
class FakeLive:
    """The values in force by knob name: those of construction after ``open``, those of a request after ``score``."""

    values: dict[str, Json] = Factory(dict)


class FakeScorer:
    """Scores and samples with :class:`LanguageModel`, whose weights are drawn from the checkpoint's digest.

    Two checkpoints of other content therefore give other logprobs. ``operators`` lets a kernel backend take over.
    """

    operators: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        """Nothing is built before ``open``."""
        self.live: Any = None

    def open(self, spec: ScorerSpec) -> None:
        """Read ``vocab_size`` of ``config.json`` and draw the weights. Raises FileNotFoundError and InvalidInput."""
        where = spec.checkpoint / "config.json"
        config = load_json(where.read_bytes(), where=str(where))
        self._vocab_size = _count(config, "vocab_size", str(where))
        self._eos = config.get("eos_token_id")
        self._spec = spec
        self._digest: CheckpointDigest = digest_checkpoint(spec.checkpoint)
        self._engine = self.engine_values(spec)
        self._weights = Weights(int(self._digest.weights[:16], 16), self._vocab_size)
        self._model = LanguageModel(self._weights, self.precision())
        self.live = FakeLive(dict(self._engine))

    def engine_values(self, spec: ScorerSpec) -> dict[str, Json]:
        """The values of construction in force: those asked for, and the engine's choice where none was."""
        chosen = ROLLOUT_CHOICES if spec.role is Role.ROLLOUT else TRAINING_CHOICES
        asked = {name: value for name, value in spec.engine.items() if value is not None}
        values = {**chosen, **asked}
        dtype = values["rollout.dtype" if spec.role is Role.ROLLOUT else "training.compute_dtype"]
        return {name: dtype if value is SAME_AS_COMPUTE else value for name, value in values.items()}

    def precision(self) -> Precision:
        """How the forward pass rounds under the values in force."""
        values = self._engine
        if self._spec.role is Role.ROLLOUT:
            return Precision(
                compute=values["rollout.dtype"],
                cache=values["rollout.kv_cache_dtype"],
                output=values["rollout.dtype"],
                shards=values["rollout.tensor_parallel_size"],
                eager=values["rollout.attention_backend"] == "eager",
            )
        return Precision(
            compute=values["training.compute_dtype"],
            cache=values["training.compute_dtype"],
            output=values["training.output_dtype"],
            eager=values["training.attention_backend"] == "eager",
        )

    def identity(self) -> ScorerIdentity:
        """Digests of the checkpoint's files."""
        return ScorerIdentity(
            checkpoint_digest=self._digest.weights,
            tokenizer_digest=self._digest.tokenizer,
            recorded={"numpy": np.__version__},
        )

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """The request for an operator of ``operators``."""
        if operator not in self.operators:
            return None
        dtype = self._model.precision.output
        return KernelRequest(operator=operator, device="cpu", dtype=dtype, vocab_size=self._vocab_size, options=options)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Every row, on the one rank there is. Raises InvalidInput for an empty prompt or an unknown token."""
        operator = request.operators.get(SELECTED_LOGPROB, selected_logprob)
        temperature = self._temperature(request)
        logprobs = [self._score_row(batch, row, operator, temperature) for row in range(len(batch.ids))]
        self.live.values.update(_request_values(request.settings))
        return Scored(
            samples=samples_of(batch, logprobs, rank=self._spec.rank),
            rank=self._rank_info(),
            semantics=self._semantics(temperature),
        )

    def sample(self, prompts: Sequence[Prompt], source: SampleSource) -> TokenBatch:
        """One response per prompt; a text prompt is its UTF-8 bytes modulo the vocabulary."""
        stops = self._eos if isinstance(self._eos, list) else [self._eos]
        encoded = [prompt.token_ids or self._encode(prompt.text) for prompt in prompts]
        drawn = [
            draw_response(self._model, tokens, source, stops=stops, row=row, processed=self._processed)
            for row, tokens in enumerate(encoded)
        ]
        return TokenBatch(
            ids=[prompt.id for prompt in prompts],
            prompts=encoded,
            responses=[tokens for tokens, _ in drawn],
            action_masks=[[True] * len(tokens) for tokens, _ in drawn],
            sampled_logprobs=tuple(tuple(logprobs) for _, logprobs in drawn),
        )

    def state_digest(self) -> str:
        """SHA-256 of the weights."""
        return self._weights.digest()

    def close(self) -> None:
        """Drop the live handle."""
        self.live = None

    def _score_row(self, batch: TokenBatch, row: int, operator: Callable[..., Any], temperature: float) -> np.ndarray:
        """(n,) float32 logprobs of the response tokens of one row: logits at t - 1 score the token at t."""
        prompt, response = batch.prompts[row], batch.responses[row]
        tokens = (*prompt, *response)
        if not prompt:
            raise InvalidInput("the prompt is empty: nothing scores the first response token", where=batch.ids[row])
        if outside := [token for token in tokens if not 0 <= token < self._vocab_size]:
            message = f"token {outside[0]} is outside the vocabulary of {self._vocab_size}"
            raise InvalidInput(message, where=batch.ids[row])
        logits = self._model.logits(tokens[:-1])[len(prompt) - 1 :] if response else np.zeros((0, self._vocab_size))
        scaled = (logits / np.float32(temperature)).astype(np.float32)
        return np.asarray(operator(scaled, np.array(response, dtype=np.int64)), dtype=np.float32)

    @property
    def _processed(self) -> bool:
        return bool(self._engine.get("sampling.logprobs_mode") == "processed_logprobs")

    def _temperature(self, request: ScoreRequest) -> float:
        return float(request.settings.get("sampling.temperature") or 1.0) if self._processed else 1.0

    def _semantics(self, temperature: float) -> LogprobSemantics:
        mode = "processed" if self._processed else "raw"
        return LogprobSemantics(mode=mode, temperature=temperature, vocab_size=self._vocab_size)

    def _rank_info(self) -> RankInfo:
        return RankInfo(
            rank=self._spec.rank,
            world_size=self._spec.world_size,
            compute_dtype=self._model.precision.compute,
            parallel={"tp": self._model.precision.shards},
            padding_side=self.live.values["layout.padding_side"],
            cache_mode="prefix" if self._engine.get("execution.prefix_cache") else "none",
        )

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(byte % self._vocab_size for byte in text.encode("utf-8"))


class KernelFakeScorer(FakeScorer):
    """The fake scorer that lets a backend take over the selected-token logprob."""

    operators = frozenset({SELECTED_LOGPROB})


SAME_AS_COMPUTE = "same as the compute dtype"
ROLLOUT_CHOICES: Mapping[str, Json] = {
    "rollout.dtype": "bfloat16",
    "rollout.kv_cache_dtype": SAME_AS_COMPUTE,
    "rollout.tensor_parallel_size": 1,
    "rollout.attention_backend": "sdpa",
    "rollout.enforce_eager": True,
    "execution.prefix_cache": False,
    "sampling.logprobs_mode": "raw_logprobs",
}
TRAINING_CHOICES: Mapping[str, Json] = {
    "training.compute_dtype": "bfloat16",
    "training.output_dtype": SAME_AS_COMPUTE,
    "training.reduce_dtype": SAME_AS_COMPUTE,
    "training.attention_backend": "sdpa",
    "training.sharding": "unsharded",
    "training.world_size": 1,
}
_REQUEST_CHOICES: Mapping[str, Json] = {
    "rollout.scoring_path": "forced_decode",
    "sampling.temperature": 1.0,
    "batch.size": 8,
    "layout.padding_side": "right",
}


def _request_values(settings: Mapping[str, Json]) -> dict[str, Json]:
    values = {**_REQUEST_CHOICES, **{name: value for name, value in settings.items() if value is not None}}
    return {"batch.micro_size": values["batch.size"], **values}


def _count(config: Json, name: str, where: str) -> int:
    value = config.get(name) if isinstance(config, Mapping) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(f"{name} must be a whole number of at least 1, got {value!r}", where=where)
    return value


def samples_of(batch: TokenBatch, logprobs: Sequence[np.ndarray], *, rank: int = 0) -> Samples:
    """The samples of every row of ``batch`` on one rank; ``logprobs`` holds one (n,) array a row, in nats."""
    lengths = [len(prompt) + len(response) for prompt, response in zip(batch.prompts, batch.responses, strict=True)]
    blank = np.zeros(0, dtype=np.float32)
    return Samples(
        sequence=np.arange(len(batch.ids)),
        rank=np.full(len(batch.ids), rank),
        prompt_length=[len(prompt) for prompt in batch.prompts],
        response_length=[len(response) for response in batch.responses],
        input_ids=[token for row in range(len(batch.ids)) for token in (*batch.prompts[row], *batch.responses[row])],
        position_ids=[position for length in lengths for position in range(length)],
        action_mask=np.array([flag for mask in batch.action_masks for flag in mask], dtype=bool),
        logprobs=np.concatenate([blank, *logprobs]).astype(np.float32),
    )
