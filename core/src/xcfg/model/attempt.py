"""One sealed execution of a side run, as every later stage reads it back."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.identity import SideIdentity
from xcfg.model.json import Json, freeze, tupled
from xcfg.model.provenance import SideProvenance
from xcfg.model.sample import RankInfo, Samples

SCHEMA = "xcfg.attempt/1"


@frozen(kw_only=True)
class SideResult:
    """The evidence of one side run: identity, provenance, ranks, samples.

    ``sequence_ids`` are the ids that ``samples.sequence`` indexes. ``expected_ranks`` is the number of ranks launched:
    the comparator refuses a result in which one is missing or appears twice. Logprobs reported while sampling are
    kept in the token batch (:class:`xcfg.model.sample.TokenBatch`), not here.
    """

    identity: SideIdentity
    provenance: SideProvenance
    ranks: tuple[RankInfo, ...] = field(converter=tupled)
    expected_ranks: int
    sequence_ids: tuple[str, ...] = field(converter=tupled)
    samples: Samples = field(eq=False)
    fake: bool = False


@frozen(kw_only=True)
class Measured:
    """Cost of an attempt, outside every identity: seconds by phase (wall clock) and peak resident bytes by rank."""

    phases: Mapping[str, float] = field(factory=dict, converter=freeze)
    peak_rss: Mapping[str, int] = field(factory=dict, converter=freeze)
    repeats: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class SideFailure:
    """Why a side run has no result. ``status`` is a Status value; ``logs`` are paths inside the output folder."""

    status: str
    reason: str
    logs: tuple[str, ...] = field(default=(), converter=tupled)
