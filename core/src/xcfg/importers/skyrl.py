"""SkyRL: the training batch of a step with both sides' logprobs, or a generator's output with the rollout's.

Sources, in https://github.com/NovaSky-AI/SkyRL: ``skyrl/backends/skyrl_train/training_batch.py`` (``TrainingInput``,
``TensorBatch.save``), ``skyrl/train/dataset/preprocess.py`` (padding), ``skyrl/train/trainer.py``
(``_skip_policy_forward``, ``dump_data``), ``skyrl/train/generators/base.py`` (``GeneratorOutput``),
``skyrl/train/utils/trainer_utils.py`` (``dump_per_dataset_eval_results``); releases skyrl-train 0.3.1 and skyrl 0.4.0.

``trainer.dump_data_batch`` writes a pickle, which is never opened; ``trainer.dump_eval_results`` writes texts without
logprobs. The fields of the batch, saved as safetensors, npz or a torch file of tensors:

| field | shape | meaning |
|---|---|---|
| ``sequences``, ``attention_mask`` | (B, S) | prompt and response with padding around them, the mask is 1 on tokens |
| ``response_mask`` | (B, R) | 1 on tokens of the response |
| ``loss_mask`` | (B, R) | 0 on tokens the policy did not generate, or that the loss leaves out |
| ``rollout_logprobs`` | (B, R) | rollout |
| ``action_log_probs`` | (B, R) | training; null where the loss does not need it |

Column k of an (B, R) field is column S - R + k of ``sequences``, whether the response is padded left (0.4) or right
(0.3), and it holds the logprob of the token in that column. ``GeneratorOutput`` has ``prompt_token_ids``,
``response_ids``, ``loss_masks`` and ``rollout_logprobs``, one unpadded list a sequence, in the order of the batch.
Where a response does not end in the end-of-sequence token, SkyRL appends one with loss mask 1 and logprob 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xcfg.errors import ArtifactError
from xcfg.importers.missing import measured
from xcfg.importers.padded import cut, kept, samples
from xcfg.importers.values import field, mask, token_ids
from xcfg.model.recorded import Record, Row
from xcfg.model.scorer import Role

_TEXTS = frozenset({"input_prompt", "output_response"})

_LOGPROBS = {Role.ROLLOUT: "rollout_logprobs", Role.TRAINING: "action_log_probs"}

_HOW = {
    Role.ROLLOUT: "SkyRL has it where the engine returns logprobs: generator.sampling_params.logprobs=1",
    Role.TRAINING: "SkyRL skips this pass for policy losses that do not read it (rollout_is, dppo, cispo anchored at "
    "the rollout): take trainer.algorithm.policy_loss_type=regular for the step you compare",
}

_BATCH = ("attention_mask", "response_mask", "loss_mask", *_LOGPROBS.values())

_OUTPUT = ("prompt_token_ids", "loss_masks", _LOGPROBS[Role.ROLLOUT])


class SkyRl:
    """Records of a saved ``TrainingInputBatch`` or ``GeneratorOutput``; the evaluation dump is claimed and refused."""

    def claims(self, fields: frozenset[str]) -> bool:
        """Whether a row has the fields of a training batch, of a generator's output, or of the evaluation dump."""
        output = "response_ids" in fields and bool(fields & {"loss_masks", "rollout_logprobs"})
        return fields >= {"sequences", "response_mask"} or (output and "logprobs" not in fields) or fields >= _TEXTS

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """One record a sequence, ``row N`` in file order: the same in a batch and in its generator's output."""
        number = 0
        for row in rows:
            batch = "sequences" in row.fields
            if not batch and row.fields.keys() >= _TEXTS:
                raise _texts(row)
            key, names = ("sequences", _BATCH) if batch else ("response_ids", _OUTPUT)
            for sample in samples(row, key, names):
                yield (_padded if batch else _generated)(sample, f"row {number}", role)
                number += 1


def _padded(row: Row, name: str, role: Role) -> Record:
    """The record of one sequence of a training batch, its logprobs those of ``role``."""
    logprobs = measured(row, _LOGPROBS[role], _HOW[role])
    tokens = token_ids(field(row, "sequences"), row, "sequences")
    marks = mask(field(row, "response_mask"), row, "response_mask")
    response = kept(marks, row, "response_mask")
    everything = _everything(tokens.size, row)
    offset = tokens.size - marks.size
    first = offset + response.start if marks.any() else everything.stop
    last = first + response.stop - response.start
    if first < everything.start or last != everything.stop:
        raise ArtifactError(
            "response_mask does not mark the last tokens that attention_mask marks",
            where=row.place,
            hint=f"column k of its {marks.size} columns is column {offset} + k of the {tokens.size} of sequences",
        )
    return Record(
        id=name,
        response_ids=tokens[first:last],
        logprobs=cut(logprobs, response, marks.size, row, _LOGPROBS[role]),
        mask=cut(mask(field(row, "loss_mask"), row, "loss_mask"), response, marks.size, row, "loss_mask"),
        prompt_ids=tokens[everything.start : first],
        place=row.place,
        assumed=("id",),
    )


def _everything(width: int, row: Row) -> slice:
    """Where prompt and response lie in the ``width`` columns of ``sequences``."""
    real = mask(field(row, "attention_mask"), row, "attention_mask")
    return kept(cut(real, slice(None), width, row, "attention_mask"), row, "attention_mask")


def _generated(row: Row, name: str, role: Role) -> Record:
    """The record of one sequence of a generator's output, which the rollout alone has measured."""
    if role is Role.TRAINING:
        raise ArtifactError(
            "a GeneratorOutput holds the rollout's logprobs only",
            where=row.place,
            hint="the training side's are action_log_probs of the TrainingInputBatch of the same step",
        )
    return Record(
        id=name,
        response_ids=token_ids(field(row, "response_ids"), row, "response_ids"),
        logprobs=measured(row, _LOGPROBS[role], _HOW[role]),
        mask=mask(field(row, "loss_masks"), row, "loss_masks"),
        prompt_ids=token_ids(field(row, "prompt_token_ids"), row, "prompt_token_ids"),
        place=row.place,
        assumed=("id",),
    )


def _texts(row: Row) -> ArtifactError:
    return ArtifactError(
        "this is SkyRL's evaluation dump: prompts and responses as text, without token ids and without logprobs",
        where=row.place,
        hint="both are in the TrainingInputBatch (sequences, rollout_logprobs, action_log_probs) that "
        "RayPPOTrainer.dump_data gets: save its tensors",
    )
