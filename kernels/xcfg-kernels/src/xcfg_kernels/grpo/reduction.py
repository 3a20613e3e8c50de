"""How the token losses of a batch become one number: what divides them, and the order in which they are added."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import field, frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json
from xcfg_kernels.grpo.choice import Choice


class Normaliser(Choice):
    """What the sum of token losses is divided by; ``l`` is a token's loss, ``n`` a sequence's active tokens."""

    TOKEN_MEAN = "token_mean"
    """``sum l / sum n``: verl's ``token-mean``, TRL's ``dapo`` (global count) and ``bnpo`` (microbatch count)."""
    SEQ_MEAN = "seq_mean"
    """Mean over sequences of ``sum l / n``: verl's ``seq-mean-token-mean``, TRL's ``grpo``, DeepSeekMath equation 3."""
    SEQ_SUM_TOKEN_MEAN = "seq_sum_token_mean"
    """Sum over sequences of ``sum l / n``."""
    CONSTANT = "constant"
    """``sum l / constant``: TRL's ``dr_grpo`` and verl's ``seq-mean-token-sum-norm`` with sequences times the longest
    length (older releases of verl: the width of the batch alone), verl's ``seq-mean-token-sum`` with the sequences."""


class Count(Choice):
    """Whose tokens and sequences are counted where the normaliser counts."""

    GLOBAL = "global"
    """Those of all microbatches and ranks, so that the loss does not depend on how the batch is cut."""
    MICROBATCH = "microbatch"
    """Those of the microbatch; the loss is the plain mean of the losses of all microbatches of all ranks."""


class Order(Choice):
    """The order in which losses are added. Collectives only carry, they never add."""

    GLOBAL_POSITIONS = "global_positions"
    RANK_MAJOR = "rank_major"


class Accumulation(Choice):
    """The dtype of every sum and quotient, and of the loss."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"


_ORDERS: Mapping[Order, Mapping[str, str]] = {
    Order.GLOBAL_POSITIONS: {
        "tokens": "one binary tree over the positions of the whole sequence",
        "sequences": "one binary tree over the sequences in ascending number; with a microbatch count over those of "
        "each microbatch, then over the microbatches by their first sequence",
        "cp_ranks": "not an axis of the sum: tokens are put in their places first",
        "dp_ranks": "not an axis of the sum: sequences are put in their places first",
        "invariant": "tensor, context and data parallel degree, microbatches, trailing padding, repeated runs",
    },
    Order.RANK_MAJOR: {
        "tokens": "one binary tree over the positions of each rank",
        "sequences": "one binary tree over the rows of each microbatch, then one over the microbatches of each rank",
        "cp_ranks": "ascending, for each sequence, before sequences are added",
        "dp_ranks": "ascending, last",
        "invariant": "tensor parallel degree, repeated runs of one layout",
    },
}


@frozen(kw_only=True)
class LossReductionSpec:
    """The reduction of token losses. ``constant`` is the divisor of ``Normaliser.CONSTANT`` and of no other.

    Names of the frameworks as in verl's ``agg_loss`` and TRL's ``GRPOConfig.loss_type``. Raises InvalidInput.
    """

    normaliser: Normaliser = field(converter=Normaliser)
    count: Count = field(default=Count.GLOBAL, converter=Count)
    constant: float | None = None
    order: Order = field(default=Order.GLOBAL_POSITIONS, converter=Order)
    accumulation: Accumulation = field(default=Accumulation.FLOAT32, converter=Accumulation)

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput naming every contradiction."""
        if faults := tuple(Fault(message=text, where="reduction") for text in _faults(self)):
            raise InvalidInput(faults=faults)

    def record(self) -> Mapping[str, Json]:
        """What every rank must agree on, and what a report says of the sum."""
        return {
            "normaliser": str(self.normaliser),
            "count": str(self.count),
            "constant": self.constant,
            "accumulation": str(self.accumulation),
            "collective": "all_gather, transport only",
            "order": str(self.order),
            **_ORDERS[self.order],
        }


def _faults(spec: LossReductionSpec) -> Iterator[str]:
    if spec.normaliser is Normaliser.CONSTANT:
        if spec.constant is None or not (math.isfinite(spec.constant) and spec.constant > 0):
            yield f"the normaliser constant needs a finite constant above 0, not {spec.constant}"
    elif spec.constant is not None:
        yield f"{spec.normaliser} counts what it divides by; a constant of {spec.constant} has no place in it"
    counts = spec.normaliser in (Normaliser.TOKEN_MEAN, Normaliser.SEQ_MEAN)
    if spec.count is Count.MICROBATCH and not counts:
        yield f"{spec.normaliser} counts no microbatch: its count is global"
