"""TRL: the batch that GRPOTrainer makes of a generation, saved by a few lines in a subclass.

Sources: https://github.com/huggingface/trl/blob/v1.16.0/trl/trainer/grpo_trainer.py (``log``,
``_generate_and_score_completions``), https://huggingface.co/docs/trl/grpo_trainer, and for what the logprobs mean
https://github.com/huggingface/trl/issues/4159 (temperature) and https://github.com/huggingface/trl/issues/6789 (top-p,
top-k, min-p).

TRL itself writes texts only: ``log_completions=True`` gives ``completions/completions_00001.parquet`` with ``step``,
``prompt``, ``completion``, the rewards and ``advantage``. Token ids and logprobs stand in the dict that
``_generate_and_score_completions`` returns:

| field | shape | meaning |
|---|---|---|
| ``prompt_ids``, ``prompt_mask`` | (B, P) | padded left, the mask is 1 on tokens |
| ``completion_ids``, ``completion_mask`` | (B, C) | padded right, the mask is 1 on tokens |
| ``tool_mask`` | (B, C) | only with tools or an environment: 0 on tokens the policy did not generate |
| ``sampling_per_token_logps`` | (B, C) | rollout, from vLLM; NaN where vLLM gave none |
| ``old_per_token_logps`` | (B, C) | training, recomputed |

The logprob of completion token t is in column t. With ``mask_truncated_completions`` TRL zeroes ``completion_mask`` of
a truncated row, which then holds no token. RLOOTrainer keeps one sum a sequence (``old_logps``) and nothing of vLLM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from xcfg.errors import ArtifactError
from xcfg.importers.missing import measured
from xcfg.importers.padded import cut, kept, samples
from xcfg.importers.values import field, mask, token_ids
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

_TEXTS = frozenset({"step", "prompt", "completion"})

_LOGPROBS = {Role.ROLLOUT: "sampling_per_token_logps", Role.TRAINING: "old_per_token_logps"}

_HOW = {
    Role.ROLLOUT: "TRL has it of completions that vLLM generated: use_vllm=True",
    Role.TRAINING: "TRL computes it with use_vllm=True and vllm_importance_sampling_correction=True",
}

_FIELDS = ("prompt_ids", "prompt_mask", "completion_mask", "tool_mask", *_LOGPROBS.values())


class Trl:
    """Records of a saved GRPOTrainer batch; the completions log, which holds texts, is claimed and refused."""

    def claims(self, fields: frozenset[str]) -> bool:
        """Whether a row has TRL's completion tokens, or the columns of its completions log."""
        return fields >= {"completion_ids", "completion_mask"} or fields >= _TEXTS

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """One record a completion, ``row N`` in file order; no ``tool_mask`` leaves every completion token active."""
        number = 0
        for row in rows:
            if "completion_ids" not in row.fields and row.fields.keys() >= _TEXTS:
                raise _texts(row)
            for sample in samples(row, "completion_ids", _FIELDS):
                yield _record(sample, f"row {number}", role)
                number += 1


def _record(row: Row, name: str, role: Role) -> Record:
    """The record of one completion, its logprobs those of ``role``."""
    completion, keep = _tokens(row, "completion_ids", "completion_mask")
    prompt, keep_prompt = _tokens(row, "prompt_ids", "prompt_mask")
    logprobs = measured(row, _LOGPROBS[role], _HOW[role])
    tools = row.fields.get("tool_mask")
    width = completion.size
    return Record(
        id=name,
        response_ids=completion[keep],
        logprobs=cut(logprobs, keep, width, row, _LOGPROBS[role]),
        mask=None if tools is None else cut(mask(tools, row, "tool_mask"), keep, width, row, "tool_mask"),
        prompt_ids=prompt[keep_prompt],
        place=row.place,
        assumed=("id",),
    )


def _tokens(row: Row, ids: str, real: str) -> tuple[np.ndarray, slice]:
    """The padded token ids, int64, and where the mask ``real`` says that tokens lie."""
    padded = token_ids(field(row, ids), row, ids)
    marks = mask(field(row, real), row, real)
    return padded, kept(cut(marks, slice(None), padded.size, row, real), row, real)


def _texts(row: Row) -> ArtifactError:
    return ArtifactError(
        "this is TRL's completions log: prompts and completions as text, without token ids and without logprobs",
        where=row.place,
        hint="both are in the dict that GRPOTrainer._generate_and_score_completions returns (completion_ids, "
        "sampling_per_token_logps, old_per_token_logps): override it in a subclass and save that dict",
    )
