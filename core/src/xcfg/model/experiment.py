"""An experiment: what is compared, never how it is executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled
from xcfg.model.kernel import OperatorChoice
from xcfg.model.knob import Constraint, SourceClass
from xcfg.model.tolerance import DEFAULT_CONTRACT

SCHEMA = "xcfg.experiment/1"


class Mode(StrEnum):
    """How axes expand into cases.

    Each value by itself; each value and every two of them; few rows in which every two values meet; every combination;
    the first values of all axes together, then the second.
    """

    ONE_AT_A_TIME = "one_at_a_time"
    TWO_AT_A_TIME = "two_at_a_time"
    PAIRWISE = "pairwise"
    PRODUCT = "product"
    ZIP = "zip"


@frozen(kw_only=True)
class Checkpoint:
    """A Hugging Face model directory, relative to the experiment file. Remote code is off unless asked for.

    ``derived_from`` declares that its weights were made from those of another directory, by quantising for instance:
    the two may then be compared although their content differs, and every result says that this was assumed.
    """

    path: str
    revision: str = ""
    weight_version: str = ""
    trust_remote_code: bool = False
    derived_from: str = ""

    @property
    def label(self) -> str:
        """The checkpoint as one coordinate: its path, with whatever else it states."""
        label = self.path
        label += f"@{self.revision}" if self.revision else ""
        label += f" weights {self.weight_version}" if self.weight_version else ""
        label += f" made from {self.derived_from}" if self.derived_from else ""
        return f"{label} with remote code" if self.trust_remote_code else label


@frozen(kw_only=True)
class SampleSource:
    """Tokens sampled once by the production rollout configuration.

    ``prompts`` is a JSONL file (``id`` and ``text`` or ``token_ids``), relative to the experiment file.
    """

    prompts: str
    max_new_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    ignore_eos: bool = False


@frozen(kw_only=True)
class TokenSource:
    """Exactly one of ``sample`` and ``recorded`` (a JSONL token batch: id, prompt_ids, response_ids, mask)."""

    sample: SampleSource | None = None
    recorded: str = ""


@frozen(kw_only=True)
class SideSpec:
    """The scorer of one side and, where it differs from the experiment's, its checkpoint."""

    scorer: str
    checkpoint: Checkpoint | None = None


@frozen(kw_only=True)
class SideOverride:
    """What an explicit case changes of a side besides knobs."""

    scorer: str = ""
    checkpoint: Checkpoint | None = None


@frozen(kw_only=True)
class CaseSpec:
    """An explicit case: the baseline with ``set`` applied, and other scorers where named."""

    name: str
    set: Mapping[str, Json] = field(factory=dict, converter=freeze)
    rollout: SideOverride = SideOverride()
    training: SideOverride = SideOverride()


@frozen(kw_only=True)
class SliceSpec:
    """A named selection of cases: explicit case names, axes, source classes; their union."""

    baseline: bool = False
    cases: tuple[str, ...] = field(default=(), converter=tupled)
    axes: tuple[str, ...] = field(default=(), converter=tupled)
    source_classes: tuple[str, ...] = field(default=(), converter=tupled)


def _rows(rows: Iterable[Iterable[SourceClass]]) -> tuple[tuple[SourceClass, ...], ...]:
    return tuple(tuple(row) for row in rows)


@frozen(kw_only=True)
class ProfileSpec:
    """Cases that differ from the aligned pair by source class.

    Each entry of ``differ`` is one case: knobs of the classes it lists keep their production value, every other knob
    that can be aligned is. No class: the fully aligned reference.
    """

    summary: str = ""
    differ: tuple[tuple[SourceClass, ...], ...] = field(converter=_rows)


@frozen(kw_only=True)
class OperatorSides:
    """Backends of one operator, per side."""

    rollout: OperatorChoice | None = None
    training: OperatorChoice | None = None


@frozen(kw_only=True)
class Experiment:
    """A validated experiment. ``baseline`` is the production value of each knob it names; ``axes`` the values tried.

    ``linked`` are axes that move several knobs together: name to knob to values, the columns of equal length.
    ``fixed`` holds knobs in every case that comes from the axes; the baseline keeps their production value.
    ``aligned`` says what aligning a knob sets, instead of the knob's own default.
    ``derived`` names copies made from the checkpoint, name to path: the values of ``rollout.weights``.
    ``clip_range`` (low, high) overrides the contract's PPO ratio interval for ``clipfrac0`` only.
    """

    schema: str = SCHEMA
    name: str
    checkpoint: Checkpoint
    contract: str = DEFAULT_CONTRACT
    rollout: SideSpec
    training: SideSpec
    tokens: TokenSource
    baseline: Mapping[str, Json] = field(factory=dict, converter=freeze)
    mode: Mode = Mode.ONE_AT_A_TIME
    axes: Mapping[str, tuple[Json, ...]] = field(factory=dict, converter=freeze)
    linked: Mapping[str, Mapping[str, tuple[Json, ...]]] = field(factory=dict, converter=freeze)
    fixed: Mapping[str, Json] = field(factory=dict, converter=freeze)
    cases: tuple[CaseSpec, ...] = field(default=(), converter=tupled)
    slices: Mapping[str, SliceSpec] = field(factory=dict, converter=freeze)
    constraints: tuple[Constraint, ...] = field(default=(), converter=tupled)
    aligned: Mapping[str, Mapping[str, Json]] = field(factory=dict, converter=freeze)
    profiles: Mapping[str, ProfileSpec] = field(factory=dict, converter=freeze)
    operators: Mapping[str, OperatorSides] = field(factory=dict, converter=freeze)
    derived: Mapping[str, str] = field(factory=dict, converter=freeze)
    clip_range: tuple[float, float] | None = None
