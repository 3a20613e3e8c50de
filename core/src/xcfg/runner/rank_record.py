"""What one rank writes of one side run, beside its samples."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.identity import LogprobSemantics
from xcfg.model.json import Json, freeze, tupled
from xcfg.model.kernel import BoundKernel
from xcfg.model.sample import RankInfo

SCHEMA = "xcfg.rank/1"


@frozen(kw_only=True)
class KnobReading:
    """One knob on one rank. ``unobservable`` is a sentence where there is no ``observed`` value."""

    materialized: Json = field(default=None, converter=freeze)
    observed: Json = field(default=None, converter=freeze)
    unobservable: str = ""


@frozen(kw_only=True)
class Repeats:
    """Scoring the same side again: largest absolute difference in nats, None where the rows were not the same."""

    count: int
    bitwise_equal: bool
    max_abs_difference: float | None = 0.0


@frozen(kw_only=True)
class RankRecord:
    """The evidence of one rank. ``samples`` is the SHA-256 of its tensor file; ``phases`` are seconds.

    ``peak_rss`` maps ``process`` and ``children`` to bytes; the latter sums the peaks of all living descendants.
    """

    schema: str = SCHEMA
    rank: int
    world_size: int
    token_digest: str
    sequence_ids: tuple[str, ...] = field(converter=tupled)
    checkpoint_digest: str
    tokenizer_digest: str
    optimizer_steps: int
    recorded: Mapping[str, Json] = field(factory=dict, converter=freeze)
    state_before: str
    state_after: str
    semantics: LogprobSemantics
    info: RankInfo
    knobs: Mapping[str, KnobReading] = field(factory=dict, converter=freeze)
    operators: Mapping[str, BoundKernel] = field(factory=dict, converter=freeze)
    repeats: Repeats
    phases: Mapping[str, float] = field(factory=dict, converter=freeze)
    peak_rss: Mapping[str, int] = field(factory=dict, converter=freeze)
    facts: Mapping[str, Json] = field(factory=dict, converter=freeze)
    samples: str


def tensor_name(rank: int) -> str:
    """File of a rank's samples."""
    return f"rank-{rank:05d}.safetensors"


def record_name(rank: int) -> str:
    """File of a rank's record; its presence says that the rank is complete."""
    return f"rank-{rank:05d}.json"


def failure_name(rank: int) -> str:
    """File that says why a rank failed, in a step's folder or, for the whole engine, in the launch's."""
    return f"failure-{rank:05d}.json"


def phase_name(rank: int) -> str:
    """File that says what a rank is doing."""
    return f"phase-{rank:05d}.txt"


def closed_name(rank: int) -> str:
    """File a rank writes after its engine was closed."""
    return f"closed-{rank:05d}.json"


def sampled_name(rank: int) -> str:
    """File a rank writes after it sampled the token batch."""
    return f"sampled-{rank:05d}.json"
