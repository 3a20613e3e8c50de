"""Semantic identity of a side run: what must be equal before numbers may be compared."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze


@frozen(kw_only=True)
class LogprobSemantics:
    """What a reported logprob means. Part of the SEMANTIC tier.

    ``vocab_size`` is the number of logits in the normaliser, padded rows included where they take part; 0 is
    "unknown", which is not equal to anything.
    """

    mode: str = "raw"
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    penalties: Mapping[str, float] = field(factory=dict, converter=freeze)
    logit_scale: float = 1.0
    logit_softcap: float = 0.0
    vocab_size: int = 0


@frozen(kw_only=True)
class SideIdentity:
    """Identity of one side run as its ranks proved it.

    IDENTICAL tier: ``checkpoint_digest``, ``checkpoint_revision``, ``weight_version``, ``tokenizer_digest``,
    ``token_digest``, ``optimizer_steps`` and equal ``state_before`` and ``state_after`` (the tokens, masks and
    positions themselves are in the samples). SEMANTIC tier: ``semantics``. RECORDED tier: ``recorded``.
    An empty string is "unknown", which is not equal to anything. ``base_digest`` is that of the checkpoint which this
    one is declared to be made from; empty without a declaration.
    """

    checkpoint_digest: str
    checkpoint_revision: str = ""
    weight_version: str = ""
    tokenizer_digest: str
    token_digest: str
    optimizer_steps: int = 0
    state_before: str
    state_after: str
    base_digest: str = ""
    semantics: LogprobSemantics = LogprobSemantics()
    recorded: Mapping[str, Json] = field(factory=dict, converter=freeze)


IDENTICAL_FIELDS = (
    "checkpoint_digest",
    "checkpoint_revision",
    "weight_version",
    "tokenizer_digest",
    "token_digest",
    "optimizer_steps",
)
