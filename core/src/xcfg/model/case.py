"""Cases: a rollout-side and a training-side configuration to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import field, frozen

from xcfg.model.experiment import Checkpoint
from xcfg.model.ids import digest
from xcfg.model.json import Json, freeze, tupled
from xcfg.model.kernel import OperatorChoice
from xcfg.model.scorer import Role


@frozen(kw_only=True)
class SideConfig:
    """Everything a side's logprobs depend on besides the tokens and the checkpoint's content.

    ``knobs`` holds requested values that have a meaning for this scorer; ``inapplicable`` the sentence for each
    knob that has none. Both sides of a case never share a value: a role is part of the configuration.
    """

    role: Role
    scorer: str
    checkpoint: Checkpoint
    knobs: Mapping[str, Json] = field(factory=dict, converter=freeze)
    inapplicable: Mapping[str, str] = field(factory=dict, converter=freeze, eq=False)
    operators: Mapping[str, OperatorChoice] = field(factory=dict, converter=freeze)

    def key(self) -> dict[str, Json]:
        """The normalised form that ids are derived from; values None (engine's choice) are left out."""
        declared = {"derived_from": self.checkpoint.derived_from} if self.checkpoint.derived_from else {}
        return {
            "role": self.role.value,
            "scorer": self.scorer,
            "checkpoint": {
                "path": self.checkpoint.path,
                "revision": self.checkpoint.revision,
                "weight_version": self.checkpoint.weight_version,
                "trust_remote_code": self.checkpoint.trust_remote_code,
                **declared,
            },
            "knobs": {name: value for name, value in self.knobs.items() if value is not None},
            "operators": {
                name: {"backend": choice.backend, "options": choice.options} for name, choice in self.operators.items()
            },
        }

    def digest(self) -> str:
        """SHA-256 of the normalised configuration."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest(self.key())


@frozen(kw_only=True)
class Rejection:
    """Why a case is not run. ``kind`` is ``unsupported``, ``constraint`` or ``veto``."""

    kind: str
    reason: str


@frozen(kw_only=True)
class Case:
    """One cell of the experiment.

    ``axes`` are its coordinates: every axis knob (and ``rollout.scorer``, ``training.scorer`` where cases vary them);
    ``changed`` the knobs that differ from the baseline, sorted; ``name`` is set for explicit cases and the baseline.
    """

    id: str
    name: str = ""
    axes: Mapping[str, Json] = field(factory=dict, converter=freeze)
    changed: tuple[str, ...] = field(default=(), converter=tupled)
    rollout: SideConfig
    training: SideConfig
    rejected: Rejection | None = None


def case_id(rollout: SideConfig, training: SideConfig, tokens: Json, contract: Json) -> str:
    """16 hex digits from both configurations, the declared token source and the contract; no experiment name."""
    return digest({"rollout": rollout.key(), "training": training.key(), "tokens": tokens, "contract": contract})[:16]
