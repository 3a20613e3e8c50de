"""NeMo-RL: the training data of a step, which GRPO logs as JSON lines with the logprobs of both sides.

Sources: https://github.com/NVIDIA-NeMo/RL/blob/main/nemo_rl/algorithms/grpo.py (``log_data``, ``skip_prev_logprobs``,
``compute_and_apply_seq_logprob_error_masking``), ``nemo_rl/utils/logger.py`` (``log_batched_dict_as_jsonl``),
``nemo_rl/models/policy/lm_policy.py`` (``get_logprobs``) in the same repository, and
https://docs.nvidia.com/nemo/rl/latest/adding-new-models.html (why the two logprobs are compared).

``<logger.log_dir>/train_data_step{N}.jsonl`` has one line a sample, each a batch of one: every value is a list of
length 1, beside ``idx``, the sample's number in the batch.

| field of the log (of ``train_data``) | shape | meaning |
|---|---|---|
| ``token_ids`` (``input_ids``) | (B, L) | prompt, response and everything between, padded right |
| ``input_lengths`` | (B,) | tokens of each row; what follows is padding |
| ``token_loss_mask`` (``token_mask``) | (B, L) | 1 on tokens the policy generated, 0 on all others |
| ``generation_logprobs`` | (B, L) | rollout; 0.0 on tokens the policy did not generate |
| ``prev_logprobs`` | (B, L) | training, recomputed before the update |

Nothing is shifted: the logprob of token t is in column t, and column 0 holds 0.0 because the first token has none. The
first token is therefore always prompt; the response runs from the first generated token after it to ``input_lengths``.
``sample_loss_mask`` is not read: with ``grpo.seq_logprob_error_threshold`` it is 0 on the very sequences whose
logprobs disagree most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.importers.missing import measured, unmeasured
from xcfg.importers.padded import cut, samples
from xcfg.importers.values import field, integer, mask, token_ids
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

_LOGPROBS = {Role.ROLLOUT: "generation_logprobs", Role.TRAINING: "prev_logprobs"}

_HOW = "NeMo-RL logs it in train_data_step{N}.jsonl of GRPO; distillation and supervised steps have none"

_PLACEHOLDER_TOKENS = 3
"""Generated tokens from which a row of nothing but 0.0 is no measurement: each would have probability 1 exactly."""


class NemoRl:
    """Records of NeMo-RL's ``train_data_step{N}.jsonl``, or of its ``train_data`` saved as arrays."""

    def claims(self, fields: frozenset[str]) -> bool:
        """Whether a row has the lengths of NeMo-RL's training data, with its logprobs or with its texts alone."""
        return "input_lengths" in fields and bool(fields & {*_LOGPROBS.values(), "content"})

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """One record a sample, named by ``idx`` or, where the file has none, ``row N`` in file order."""
        number = 0
        for row in rows:
            if _LOGPROBS[role] not in row.fields:
                raise unmeasured(row, _LOGPROBS[role], _HOW)
            ids = _present(row, "token_ids", "input_ids")
            marks = _present(row, "token_loss_mask", "token_mask")
            for sample in samples(row, ids, (marks, "input_lengths", "idx", _LOGPROBS[role])):
                yield _record(sample, ids, marks, number, role)
                number += 1


def _record(row: Row, ids: str, marks: str, number: int, role: Role) -> Record:
    """The record of one sample, its logprobs those of ``role``."""
    logprobs = measured(row, _LOGPROBS[role], _HOW)
    tokens = token_ids(field(row, ids), row, ids)
    generated = cut(mask(field(row, marks), row, marks), slice(None), tokens.size, row, marks)
    response = _response(generated, row, marks)
    if role is Role.TRAINING and generated.sum() >= _PLACEHOLDER_TOKENS and not logprobs.any():
        raise _placeholder(row)
    index = row.fields.get("idx")
    return Record(
        id=f"row {number}" if index is None else str(integer(index, row, "idx")),
        response_ids=tokens[response],
        logprobs=cut(logprobs, response, tokens.size, row, _LOGPROBS[role]),
        mask=generated[response],
        prompt_ids=tokens[: response.start],
        place=row.place,
        assumed=("id",) if index is None else (),
    )


def _response(generated: np.ndarray, row: Row, marks: str) -> slice:
    """Columns from the first generated token after column 0 to the end that ``input_lengths`` states."""
    end = integer(field(row, "input_lengths"), row, "input_lengths")
    if not 0 <= end <= generated.size:
        raise ArtifactError(f"input_lengths is {end} for {generated.size} padded tokens", where=row.place)
    if generated[end:].any():
        at = end + int(np.argmax(generated[end:]))
        raise ArtifactError(f"{marks} is 1 at {at}, in the padding that follows {end} tokens", where=row.place)
    first = np.flatnonzero(generated[1:end])
    return slice(1 + int(first[0]) if first.size else end, end)


def _present(row: Row, name: str, saved: str) -> str:
    """Which name the field has: that of the log, or that of ``train_data``."""
    for candidate in (name, saved):
        if candidate in row.fields:
            return candidate
    raise ArtifactError(
        f"{name} is missing: without it nothing says which tokens the logprobs are of",
        where=row.place,
        hint="older releases of NeMo-RL log neither token_ids nor token_loss_mask: take a newer one, or add them to "
        "log_data from train_data['input_ids'] and train_data['token_mask']",
    )


def _placeholder(row: Row) -> ArtifactError:
    return ArtifactError(
        "prev_logprobs is 0.0 at every token: a placeholder, the training side was not measured",
        where=row.place,
        hint="NeMo-RL skips this pass with loss_fn.force_on_policy_ratio=true: record a step without it",
    )
