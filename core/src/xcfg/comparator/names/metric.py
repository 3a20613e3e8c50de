"""What is known of a framework's metric, and how a group of metrics is computed in one pass."""

from __future__ import annotations

from typing import Protocol

from attrs import field, frozen
from attrs.validators import min_len

from xcfg.comparator.blocks import Block


@frozen(kw_only=True)
class NamedMetric:
    """A metric as its framework names and computes it.

    ``formula`` speaks of p = exp(train_logp), q = exp(rollout_logp), d = train_logp - rollout_logp in nats, the n
    active tokens (``mean_t``, ``max_t``), the sequences (``mean_s``) and the tokens of one sequence (``mean_ts``,
    ``sum_ts``). ``source`` is the URL of the code it was read from. ``ours`` is the nearest metric of
    ``METRIC_NAMES``, empty where there is none; ``differs`` is a sentence on how the two part, empty where they are
    the same quantity.
    """

    name: str = field(validator=min_len(1))
    formula: str = field(validator=min_len(1))
    source: str = field(validator=min_len(1))
    ours: str = ""
    differs: str = field(default="")

    @differs.validator
    def _compared_with_something(self, attribute: object, value: str) -> None:
        if value and not self.ours:
            raise ValueError(f"{self.name}: a difference needs the name of our metric")


class Group(Protocol):
    """Metrics that share their intermediate values: shown every block once, then asked."""

    def add(self, block: Block) -> None:
        """Take in one block; floating-point overflow is silent here and shows in the value."""

    def values(self) -> dict[str, float]:
        """Every metric of the group; nan or infinite where it is undefined or beyond the float range."""
