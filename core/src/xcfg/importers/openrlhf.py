"""OpenRLHF: the fields of ``Experience``, saved by a few lines after ``make_experience``.

OpenRLHF writes no logprobs to disk by itself. Sources, of https://github.com/OpenRLHF/OpenRLHF:
`openrlhf/trainer/ppo_utils/experience.py` (``Experience``), `openrlhf/trainer/ppo_utils/samples_generator.py`,
`openrlhf/trainer/ppo_utils/experience_maker.py` (``make_experience``), `openrlhf/utils/agent.py`.

| field | shape | meaning |
|---|---|---|
| ``sequences``, ``attention_mask`` | (B, T) | prompt and response, the mask 1 on tokens; padded right |
| ``action_mask`` | (B, T - 1) | 1 where the model sampled, 0 at the prompt, at an environment's tokens and at padding |
| ``rollout_log_probs`` | (B, T - 1) | rollout, from vLLM; 0.0 wherever the action mask is 0 |
| ``action_log_probs`` | (B, T - 1) | training, of the actor before the update |
| ``index`` | (B,) | optional place in the rollout batch |

Column t of the fields T - 1 wide is of token t + 1. The response begins at the first action and ends with the sequence;
of a sequence without an action, every token but the first is response and none is active. A row is a batch, or one
sample as flat lists, which may come without ``attention_mask`` and then hold no padding. Releases with action fields of
another width had no ``rollout_log_probs``: refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.importers.missing import measured
from xcfg.importers.padded import cut, kept, refuse_unmasked, samples
from xcfg.importers.values import field, integer, mask, token_ids
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

_LOGPROBS = {Role.ROLLOUT: "rollout_log_probs", Role.TRAINING: "action_log_probs"}
_HOW = {
    Role.ROLLOUT: "OpenRLHF asks vLLM for them with --algo.advantage.is_correction_enable (before: "
    "--enable_vllm_is_correction)",
    Role.TRAINING: "make_experience computes them: save the experience after it and before the update",
}
_FIELDS = ("attention_mask", "action_mask", "index", *_LOGPROBS.values())


class OpenRlhf:
    """Records of saved ``Experience`` fields."""

    def claims(self, fields: frozenset[str]) -> bool:
        """Whether a row has the trajectory of an ``Experience``, and not a mask that other frameworks add to it."""
        return fields >= {"sequences", "action_mask"} and fields.isdisjoint({"loss_mask", "response_mask"})

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """One record a sample, in file order, under its ``index``; without one, ``row N``.

        Raises:
            ArtifactError: a field that is missing or of another width, padding between tokens, an action at padding.
        """
        number = 0
        for row in rows:
            refuse_unmasked(row, "sequences", "attention_mask")
            for sample in samples(row, "sequences", _FIELDS):
                yield _record(sample, number, role)
                number += 1


def _record(row: Row, number: int, role: Role) -> Record:
    tokens = token_ids(field(row, "sequences"), row, "sequences")
    keep, scored = _places(row, tokens.size)
    actions = mask(field(row, "action_mask"), row, "action_mask")
    if actions.size != max(tokens.size - 1, 0):
        raise ArtifactError(
            f"action_mask is {actions.size} wide for sequences of {tokens.size}, not one less as now",
            where=row.place,
            hint="older releases pad otherwise: record with one that has rollout_log_probs",
        )
    active = actions[scored]
    if np.count_nonzero(active) != np.count_nonzero(actions):
        raise ArtifactError("action_mask is 1 at padding", where=row.place)
    before = int(np.argmax(active)) if active.any() else 0
    first = min(keep.start + 1 + before, keep.stop)
    values = measured(row, _LOGPROBS[role], _HOW[role])
    index = row.fields.get("index")
    return Record(
        id=f"row {number}" if index is None else str(integer(index, row, "index")),
        response_ids=tokens[first : keep.stop],
        logprobs=cut(values, scored, actions.size, row, _LOGPROBS[role])[before:],
        mask=active[before:],
        prompt_ids=tokens[keep.start : first],
        place=row.place,
        assumed=("id",) if index is None else (),
    )


def _places(row: Row, width: int) -> tuple[slice, slice]:
    """Where of ``width`` places the tokens lie, and where of one place less the fields of all but the first of them."""
    keep = slice(0, width)
    if "attention_mask" in row.fields:
        attention = mask(field(row, "attention_mask"), row, "attention_mask")
        keep = kept(cut(attention, slice(None), width, row, "attention_mask"), row, "attention_mask")
    return keep, slice(keep.start, max(keep.stop - 1, keep.start))
