"""The scorer ``torch``: one process, a Hugging Face model, no training state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xcfg.model.experiment import SampleSource
from xcfg.model.json import Json
from xcfg.model.kernel import KernelRequest
from xcfg.model.sample import TokenBatch
from xcfg.plugin import Prompt, Scored, ScoreRequest, ScorerIdentity, ScorerSpec
from xcfg_torch.compiling import compile_layers
from xcfg_torch.device import device_of_rank
from xcfg_torch.dtypes import dtype_name
from xcfg_torch.head_dtype import compute_head_in
from xcfg_torch.identity import model_identity
from xcfg_torch.live import Live
from xcfg_torch.loading import load_model
from xcfg_torch.norms import compute_norms_by
from xcfg_torch.observe import cast_logits, observe
from xcfg_torch.operators import logprob_request
from xcfg_torch.sampler import sample_responses
from xcfg_torch.scoring import Place, score_batch
from xcfg_torch.state import state_digest

if TYPE_CHECKING:
    import torch


def open_whole(spec: ScorerSpec, device: torch.device) -> Live:
    """A hooked, unsharded model. Engine settings: ``dtype``, ``attention`` (None or absent: the model's own choice) and
    those of :func:`dressed`.
    """
    model = load_model(
        spec.checkpoint,
        dtype=spec.engine.get("dtype"),
        attention=spec.engine.get("attention"),
        trust_remote_code=spec.trust_remote_code,
        device=device,
    )
    return dressed(model, spec, device)


def dressed(model: Any, spec: ScorerSpec, device: torch.device) -> Live:
    """A loaded model, whole or in parts, with what the engine settings change about it, and hooked.

    Settings: ``output_dtype``, ``head_dtype``, ``norm_kernel`` (None or absent: the model's own), ``compile``.
    """
    output_dtype, head_dtype, norms = (spec.engine.get(name) for name in ("output_dtype", "head_dtype", "norm_kernel"))
    logits = output_dtype or head_dtype or dtype_name(model.dtype)
    if output_dtype:
        cast_logits(model, output_dtype)
    if head_dtype:
        compute_head_in(model, head_dtype)
    if norms:
        compute_norms_by(model, norms)
    if spec.engine.get("compile"):
        compile_layers(model)
    return Live(model=model, device=device, seen=observe(model), logits_dtype=logits)


class TorchScorer:
    """Scores, and samples, with a whole model in one process; plays either role."""

    def __init__(self) -> None:
        """Nothing is built before :meth:`open`."""
        self.live: Any = None
        self._spec: ScorerSpec | None = None

    def open(self, spec: ScorerSpec) -> None:
        """Load the model. Raises InvalidInput for a directory that is not one, EnvironmentFault without the device."""
        self._spec = spec
        self.live = open_whole(spec, device_of_rank(spec.engine.get("device"), 0))

    def identity(self) -> ScorerIdentity:
        """Digests of the files loaded and of each layer held; no optimizer exists."""
        assert self._spec is not None
        return model_identity(self._spec, self.live, by_layer=True)

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """A request for ``selected_logprob``; None for any other operator."""
        return logprob_request(self.live, operator, options)

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Logprobs (nats, float32) of every response token of the batch."""
        return score_batch(self.live, batch, request, Place())

    def sample(self, prompts: Sequence[Prompt], source: SampleSource) -> TokenBatch:
        """One response a prompt, each from its own seeded generator."""
        assert self._spec is not None
        return sample_responses(self.live, self._spec, prompts, source)

    def state_digest(self) -> str:
        """SHA-256 of parameters, buffers and gradients."""
        return state_digest(self.live.model)

    def close(self) -> None:
        """Drop the model."""
        self.live = None
