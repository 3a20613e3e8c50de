"""The loss of one token: the policy term, clipped or not, and the penalty on leaving a reference policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import field, frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json
from xcfg_kernels.grpo.choice import Choice


class KlEstimator(Choice):
    """Estimators of KL(policy, reference) from one sample, with ``d = reference_logprob - logprob`` in nats.

    J. Schulman, "Approximating KL Divergence", 2020: http://joschu.net/blog/kl-approx.html
    """

    K1 = "k1"
    """``-d``: unbiased, of high variance, negative half of the time."""
    K2 = "k2"
    """``d**2 / 2``: biased, of low variance."""
    K3 = "k3"
    """``exp(d) - 1 - d``: unbiased and never negative; the one of DeepSeekMath's equation 4, TRL and NeMo-RL."""


@frozen(kw_only=True)
class PolicyLossSpec:
    """``-min(ratio * A, clip(ratio, 1 - low, 1 + high) * A) + kl_weight * kl``, with ``ratio = exp(logp - old_logp)``.

    DeepSeekMath, https://arxiv.org/abs/2402.03300, equation 3; unequal bounds as in DAPO, https://arxiv.org/abs/2503.14476.
    ``clip`` is (low, high), both as distances from 1; an infinite ``high`` does not bound from above. Without ``clip``
    the policy term is ``-A * logp``, the on-policy form, which has the same gradient where logp equals old_logp.
    With a ``kl_weight`` of 0 no reference is read and no penalty computed. Raises InvalidInput.
    """

    clip: tuple[float, float] | None = (0.2, 0.2)
    kl_weight: float = 0.0
    kl_estimator: KlEstimator = field(default=KlEstimator.K3, converter=KlEstimator)

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput naming every fault."""
        if faults := tuple(Fault(message=text, where="policy") for text in _faults(self)):
            raise InvalidInput(faults=faults)

    def record(self) -> Mapping[str, Json]:
        """What every rank must agree on."""
        clip = None if self.clip is None else [repr(bound) for bound in self.clip]
        return {"clip": clip, "kl_weight": self.kl_weight, "kl_estimator": str(self.kl_estimator)}


def _faults(spec: PolicyLossSpec) -> Iterator[str]:
    if spec.clip is not None:
        low, high = spec.clip
        if not 0 <= low <= 1:
            yield f"a ratio is clipped to at least 1 - low, with low in [0, 1], not {low}"
        if not high >= 0:
            yield f"a ratio is clipped to at most 1 + high, with high of at least 0, not {high}"
    if not (math.isfinite(spec.kl_weight) and spec.kl_weight >= 0):
        yield f"kl_weight is a finite number of at least 0, not {spec.kl_weight}"
