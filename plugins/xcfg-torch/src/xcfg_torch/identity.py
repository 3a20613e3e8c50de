"""What a torch scorer proves about the model it loaded."""

from __future__ import annotations

from xcfg.model.json import Json
from xcfg.plugin import ScorerIdentity, ScorerSpec, digest_checkpoint
from xcfg_torch.live import Live
from xcfg_torch.sections import held_sections


def model_identity(spec: ScorerSpec, live: Live, *, by_layer: bool = False) -> ScorerIdentity:
    """Content digests of the directory, and the class and versions that read it; remote code is recorded when on.

    ``by_layer`` adds ``sections``: digests of what the live model holds (:func:`held_sections`, which gathers shards).
    """
    import torch
    import transformers

    digests = digest_checkpoint(spec.checkpoint)
    kind = type(live.model)
    recorded: dict[str, Json] = {
        "model_class": f"{kind.__module__}.{kind.__qualname__}",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    if spec.trust_remote_code:
        recorded["trust_remote_code"] = True
    if by_layer:
        recorded["sections"] = held_sections(live.model.named_parameters(), spec.checkpoint, live.model.config.dtype)
    return ScorerIdentity(
        checkpoint_digest=digests.weights, tokenizer_digest=digests.tokenizer, optimizer_steps=0, recorded=recorded
    )
