"""One sample of a verl batch: its padded fields, and the record they make. The layout is told in :mod:`.verl`."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from xcfg.errors import ArtifactError
from xcfg.importers.missing import measured
from xcfg.importers.padded import cut, kept
from xcfg.importers.values import field, integer, mask, number, token_ids
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

LOGPROBS = {Role.ROLLOUT: "rollout_log_probs", Role.TRAINING: "old_log_probs"}

FIELDS = (
    *("prompts", "response_mask", "attention_mask", "position_ids", *LOGPROBS.values()),
    *("uid", "min_global_steps", "max_global_steps", "temperature"),
)
"""The fields of a batch that are read, beside ``responses``."""

_HOW = {
    Role.ROLLOUT: "verl keeps them with actor_rollout_ref.rollout.calculate_log_probs=true",
    Role.TRAINING: "save the batch after the actor has recomputed them (_compute_old_log_prob) and before the update",
}


@frozen(kw_only=True, eq=False)
class VerlSample:
    """``prompts`` (P,) and ``responses`` (R,) with padding; the tokens lie at ``head`` and ``body`` of them."""

    row: Row
    prompts: np.ndarray
    responses: np.ndarray
    head: slice
    body: slice

    @classmethod
    def of(cls, row: Row) -> VerlSample:
        """The sample of one row; without ``attention_mask`` nothing of it is padding."""
        prompts = token_ids(field(row, "prompts"), row, "prompts")
        responses = token_ids(field(row, "responses"), row, "responses")
        head, body = slice(0, prompts.size), slice(0, responses.size)
        if "attention_mask" in row.fields:
            attention = mask(field(row, "attention_mask"), row, "attention_mask")
            attention = cut(attention, slice(None), prompts.size + responses.size, row, "attention_mask")
            head = kept(attention[: prompts.size], row, "attention_mask of the prompt")
            body = kept(attention[prompts.size :], row, "attention_mask of the response")
        return cls(row=row, prompts=prompts, responses=responses, head=head, body=body)

    def has(self, role: Role) -> bool:
        """Whether the file has the logprobs of ``role``."""
        return self.row.fields.get(LOGPROBS[role]) is not None

    def active(self, role: Role) -> np.ndarray:
        """The logprobs of ``role`` where the response mask is 1."""
        values, active = self._logprobs(role), self._mask()
        return values if active is None else values[active]

    def record(self, id: str, role: Role) -> Record:
        """The record under ``id``, its logprobs those of ``role``."""
        temperature = self.row.fields.get("temperature")
        return Record(
            id=id,
            response_ids=self.responses[self.body],
            logprobs=self._logprobs(role),
            mask=self._mask(),
            prompt_ids=self.prompts[self.head],
            position_ids=self._positions(),
            weight_versions=_versions(self.row) if role is Role.ROLLOUT else (),
            semantics={} if temperature is None else {"temperature": number(temperature, self.row, "temperature")},
            place=self.row.place,
            assumed=("id",),
        )

    def _logprobs(self, role: Role) -> np.ndarray:
        name = LOGPROBS[role]
        return cut(measured(self.row, name, _HOW[role]), self.body, self.responses.size, self.row, name)

    def _mask(self) -> np.ndarray | None:
        value = self.row.fields.get("response_mask")
        if value is None:
            return None
        return cut(mask(value, self.row, "response_mask"), self.body, self.responses.size, self.row, "response_mask")

    def _positions(self) -> np.ndarray | None:
        value = self.row.fields.get("position_ids")
        if value is None:
            return None
        if isinstance(value, np.ndarray) and value.ndim == 2:
            if value.shape[0] != 4:
                raise ArtifactError(
                    f"position_ids has {value.shape[0]} rows a sample; only of 4 the first is known to be the text's",
                    where=self.row.place,
                    hint="save the text's position ids (B, P + R), or leave the field out",
                )
            value = value[0]
        places = token_ids(value, self.row, "position_ids")
        places = cut(places, slice(None), self.prompts.size + self.responses.size, self.row, "position_ids")
        tokens: np.ndarray = np.concatenate(
            [places[: self.prompts.size][self.head], places[self.prompts.size :][self.body]]
        )
        return tokens


def _versions(row: Row) -> tuple[str, ...]:
    """The one weight version that generated the sample, empty where the file does not say."""
    names = ("min_global_steps", "max_global_steps")
    if any(row.fields.get(name) is None for name in names):
        return ()
    first, last = (integer(row.fields[name], row, name) for name in names)
    if first != last:
        raise ArtifactError(
            f"generated by weight versions {first} to {last}, and nothing says which token by which",
            where=row.place,
            hint="training logprobs of one version do not compare with it: record without rollouts across updates",
        )
    return (str(first),)
