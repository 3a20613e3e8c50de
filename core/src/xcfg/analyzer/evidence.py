"""What the decision rules read, and how sure they may be of what they say."""

from __future__ import annotations

from attrs import frozen

from xcfg.analyzer.curves import Curves
from xcfg.model.json import Json
from xcfg.model.result import Comparison


@frozen(kw_only=True)
class Evidence:
    """A judged pair and, where the user has them, the curves of the training run."""

    comparison: Comparison
    curves: Curves | None = None

    @property
    def proven(self) -> bool:
        """Whether every field of the identity was proven equal; a field that neither side states is assumed."""
        return not self.comparison.assumed

    def measured(self) -> str:
        """Confidence of what the two sides' own logprobs say."""
        return "high" if self.proven else "medium"

    def indicated(self, *, firm: bool) -> str:
        """Confidence of what curves indicate; low unless ``firm`` and the identity is proven."""
        return "medium" if firm and self.proven else "low"

    def numbers(self) -> dict[str, Json]:
        """The verdict in numbers (nats), and the fields that were assumed."""
        comparison = self.comparison
        found: dict[str, Json] = {
            "status": comparison.status.value,
            "dtype": comparison.dtype,
            "threshold": comparison.threshold,
            "active_tokens": comparison.active_tokens,
        }
        for name in ("max_abs_dlogp", "mean_abs_dlogp", "p99_abs_dlogp", "approx_kl0"):
            if name in comparison.metrics:
                found[name] = comparison.metrics[name]
        return {**found, "assumed": list(comparison.assumed)}

    def caveat(self) -> str:
        """The end of an advice: what has to be proven first."""
        if self.proven:
            return ""
        return f"; first prove what neither side states and was assumed equal: {', '.join(self.comparison.assumed)}"
