"""Semantic identity, IDENTICAL and SEMANTIC tiers: a mismatch is not drift but an invalid comparison."""

from __future__ import annotations

import attrs
import numpy as np
from attrs import frozen

from xcfg.comparator.defect import Defect
from xcfg.comparator.pairing import SideRows
from xcfg.model.attempt import SideResult
from xcfg.model.identity import IDENTICAL_FIELDS, LogprobSemantics, SideIdentity
from xcfg.model.json import thaw
from xcfg.model.sample import Samples
from xcfg.model.status import Status

_MUST_BE_KNOWN = ("checkpoint_digest", "tokenizer_digest", "token_digest")
_COMPARED = ("input_ids", "position_ids", "action_mask")
_FROZEN = ("input_ids", "action_mask")
UNKNOWN_POSITION = -1
CHECKPOINT = "checkpoint_digest"


@frozen(kw_only=True, eq=False)
class _Reference:
    """What rows are held against: the arrays compared, and its name where it is not a rank of the rollout."""

    rows: SideRows
    names: tuple[str, ...]
    said: str = ""

    def origin(self, sequence: int) -> str:
        return self.said or f"rollout rank {int(self.rows.rank[self.rows.first[sequence]])}"


def identity_defects(rollout: SideResult, training: SideResult) -> list[Defect]:
    """Fields of the identity that are unknown or unequal, the pre-update state, and the ids of the sequences."""
    reasons = [
        *_state("rollout", rollout.identity),
        *_state("training", training.identity),
        *_fields(rollout.identity, training.identity),
        *_semantics(rollout.identity.semantics, training.identity.semantics),
        *_ids(rollout, training),
    ]
    return [Defect(Status.INVALID_IDENTITY, reason) for reason in reasons]


def _state(side: str, identity: SideIdentity) -> list[str]:
    reasons = []
    if identity.optimizer_steps != 0:
        reasons.append(f"optimizer_steps: {side} took {identity.optimizer_steps} optimizer steps before it scored")
    if not identity.state_before or not identity.state_after:
        reasons.append(f"state_digest: {side} does not prove its model state before and after scoring")
    elif identity.state_before != identity.state_after:
        reasons.append(
            f"state_digest: {side} model state changed while scoring: "
            f"before {identity.state_before!r}, after {identity.state_after!r}"
        )
    return reasons


def declared_kin(rollout: SideIdentity, training: SideIdentity) -> bool:
    """Whether two checkpoints of different content are declared to be of one base, and nothing but that is known."""
    left, right = (item.base_digest or item.checkpoint_digest for item in (rollout, training))
    return rollout.checkpoint_digest != training.checkpoint_digest and bool(left) and left == right


def _fields(rollout: SideIdentity, training: SideIdentity) -> list[str]:
    reasons = []
    for name in IDENTICAL_FIELDS:
        left, right = getattr(rollout, name), getattr(training, name)
        if name == CHECKPOINT and declared_kin(rollout, training):
            continue
        if left != right:
            reasons.append(f"{name} differs: rollout {left!r}, training {right!r}")
        elif name in _MUST_BE_KNOWN and not left:
            reasons.append(f"{name} is unknown on both sides, and unknown is not equal")
    return reasons


def _semantics(rollout: LogprobSemantics, training: LogprobSemantics) -> list[str]:
    reasons = []
    for item in attrs.fields(LogprobSemantics):
        left, right = thaw(getattr(rollout, item.name)), thaw(getattr(training, item.name))
        if left != right:
            reasons.append(f"semantics.{item.name} differs: rollout {left!r}, training {right!r}")
        elif item.name == "vocab_size" and not left:
            reasons.append("semantics.vocab_size is unknown on both sides, and unknown is not equal")
    return reasons


def _ids(rollout: SideResult, training: SideResult) -> list[str]:
    left, right = set(rollout.sequence_ids), set(training.sequence_ids)
    return [
        f"sequence_ids: {min(extra)!r} ({len(extra)} in all) only on the {side} side"
        for side, extra in (("rollout", left - right), ("training", right - left))
        if extra
    ]


def token_defects(
    ids: tuple[str, ...], rollout: SideRows, training: SideRows, frozen: SideRows | None = None
) -> list[Defect]:
    """Lengths, token ids and masks of every row of both sides against the frozen batch, positions between the sides.

    Without ``frozen`` everything is held against the sequence's first rollout row.
    """
    sides = (("rollout", rollout), ("training", training))
    held = [_Reference(rows=rollout, names=_COMPARED)]
    if frozen is not None:
        held.append(_Reference(rows=frozen, names=_FROZEN, said="the frozen batch"))
    reasons = [reason for to in held for side, rows in sides if (reason := _lengths(ids, side, rows, to))]
    if not reasons:
        reasons = [reason for to in held for side, rows in sides for reason in _values(ids, side, rows, to)]
        reasons += [reason for side, rows in sides for reason in _start(ids, side, rows)]
    return [Defect(Status.INVALID_IDENTITY, reason) for reason in reasons]


def positions_known(samples: Samples) -> bool:
    """False where a recorded batch carries no positions."""
    return not len(samples.position_ids) or bool((samples.position_ids != UNKNOWN_POSITION).any())


def _lengths(ids: tuple[str, ...], side: str, rows: SideRows, to: _Reference) -> str:
    for name in ("prompt_length", "response_length"):
        mine = getattr(rows, name)
        theirs = getattr(to.rows, name)[to.rows.first[rows.sequence]]
        different = np.flatnonzero(mine != theirs)
        if len(different):
            row = int(different[0])
            return (
                f"{name} differs in sequence {ids[int(rows.sequence[row])]!r}: {to.origin(int(rows.sequence[row]))} "
                f"{int(theirs[row])}, {side} rank {int(rows.rank[row])} {int(mine[row])}"
            )
    return ""


def _values(ids: tuple[str, ...], side: str, rows: SideRows, to: _Reference) -> list[str]:
    reference = to.rows
    chosen = np.arange(len(rows.sequence))
    if rows is reference:
        chosen = chosen[chosen != rows.first[rows.sequence]]
    if not len(chosen):
        return []
    origin = reference.first[rows.sequence[chosen]]
    totals = (rows.prompt_length + rows.response_length)[chosen]
    reasons = []
    for name in to.names:
        mine, theirs = getattr(rows.samples, name), getattr(reference.samples, name)
        if name == "action_mask":
            lengths = rows.response_length[chosen]
            mine, theirs = rows.response(mine, chosen), reference.response(theirs, origin)
        else:
            lengths = totals
            mine, theirs = rows.sequences(mine, chosen), reference.sequences(theirs, origin)
        different = mine != theirs
        if not different.any():
            continue
        flat = int(np.argmax(different))
        ends = np.cumsum(lengths)
        place = int(np.searchsorted(ends, flat, side="right"))
        row, index = int(chosen[place]), flat - int(ends[place] - lengths[place])
        reasons.append(
            f"{name} differs in sequence {ids[int(rows.sequence[row])]!r} at index {index}"
            f"{_part(name, index, int(rows.prompt_length[row]))}: {to.origin(int(rows.sequence[row]))} "
            f"{theirs[flat].item()}, {side} rank {int(rows.rank[row])} {mine[flat].item()}"
        )
    return reasons


def _part(name: str, index: int, prompt_length: int) -> str:
    if name == "action_mask":
        return " of the response"
    return f" (response index {index - prompt_length})" if index >= prompt_length else " (prompt)"


def _start(ids: tuple[str, ...], side: str, rows: SideRows) -> list[str]:
    """A response that does not start where its prompt ends has a prompt token among its scored ones, or lost one."""
    if not positions_known(rows.samples):
        return []
    scored = np.flatnonzero(rows.response_length > 0)
    start = rows.samples.position_ids[(rows.input_start + rows.prompt_length)[scored]]
    wrong = np.flatnonzero(start != rows.prompt_length[scored])
    if not len(wrong):
        return []
    row = int(scored[wrong[0]])
    return [
        f"position_ids: the response of sequence {ids[int(rows.sequence[row])]!r} on {side} rank {int(rows.rank[row])} "
        f"starts at position {int(start[wrong[0]])}, its prompt has {int(rows.prompt_length[row])} tokens"
    ]
