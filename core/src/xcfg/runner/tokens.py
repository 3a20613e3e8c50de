"""Token batches as JSONL: one sequence a line with ``id``, ``prompt_ids``, ``response_ids`` and optional ``mask``."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from xcfg.errors import InvalidInput
from xcfg.model.codec import dump_json
from xcfg.model.json import Json, tupled
from xcfg.model.sample import TokenBatch
from xcfg.plugin.protocols import Prompt
from xcfg.runner.records import ids_problem, read_records


@frozen(kw_only=True)
class TokenRecord:
    """One line. No ``mask`` means that every response token is active; ``weight_version`` is that of the batch."""

    id: str
    prompt_ids: tuple[int, ...] = field(converter=tupled)
    response_ids: tuple[int, ...] = field(converter=tupled)
    mask: tuple[bool, ...] | None = None
    weight_version: str = ""


@frozen(kw_only=True)
class LogprobRecord:
    """The logprobs (nats) that the sampler reported for one sequence's response tokens."""

    id: str
    logprobs: tuple[float, ...] = field(converter=tupled)


@frozen(kw_only=True)
class PromptRecord:
    """One prompt of a token source: ``text`` or ``token_ids``."""

    id: str
    text: str = ""
    token_ids: tuple[int, ...] = field(default=(), converter=tupled)


def read_batch(path: Path) -> TokenBatch:
    """A recorded token batch. Raises InvalidInput naming every faulty line."""
    records = read_records(path, TokenRecord, _token_problem, lambda record: record.id)
    versions = sorted({record.weight_version for record in records})
    if len(versions) > 1:
        raise InvalidInput(f"one batch has one weight_version, found {', '.join(versions)}", where=str(path))
    return TokenBatch(
        ids=[record.id for record in records],
        prompts=[record.prompt_ids for record in records],
        responses=[record.response_ids for record in records],
        action_masks=[(True,) * len(record.response_ids) if record.mask is None else record.mask for record in records],
        weight_version=versions[0],
    )


def read_logprobs(path: Path, batch: TokenBatch) -> tuple[tuple[float, ...], ...]:
    """The sampled logprobs that belong to ``batch``, in its order. Raises InvalidInput where they do not fit it."""
    records = read_records(path, LogprobRecord, lambda record: "", lambda record: record.id)
    rows = {record.id: record.logprobs for record in records}
    if [len(rows.get(name, ())) for name in batch.ids] != [len(row) for row in batch.responses]:
        raise InvalidInput("the logprobs do not fit the token batch", where=str(path))
    return tuple(rows[name] for name in batch.ids)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """The prompts of a token source. Raises InvalidInput naming every faulty line."""
    records = read_records(path, PromptRecord, _prompt_problem, lambda record: record.id)
    return tuple(Prompt(id=record.id, text=record.text, token_ids=record.token_ids) for record in records)


def batch_lines(batch: TokenBatch) -> bytes:
    """The batch as :func:`read_batch` reads it."""
    version = {"weight_version": batch.weight_version} if batch.weight_version else {}
    rows = zip(batch.ids, batch.prompts, batch.responses, batch.action_masks, strict=True)
    return _lines(
        {"id": name, "prompt_ids": prompt, "response_ids": response, "mask": mask, **version}
        for name, prompt, response, mask in rows
    )


def logprob_lines(batch: TokenBatch) -> bytes:
    """The sampled logprobs as :func:`read_logprobs` reads them. Raises ValueError where one is not finite."""
    return _lines(
        {"id": name, "logprobs": row} for name, row in zip(batch.ids, batch.sampled_logprobs or (), strict=True)
    )


def _lines(records: Json) -> bytes:
    return "".join(dump_json(record) + "\n" for record in records).encode()


def _token_problem(record: TokenRecord) -> str:
    if not record.id:
        return "the id is empty"
    if not record.prompt_ids:
        return "prompt_ids is empty: the first response token needs a token before it"
    if record.mask is not None and len(record.mask) != len(record.response_ids):
        return f"{len(record.mask)} mask values for {len(record.response_ids)} response tokens"
    return ids_problem("prompt_ids", record.prompt_ids) or ids_problem("response_ids", record.response_ids)


def _prompt_problem(record: PromptRecord) -> str:
    if not record.id:
        return "the id is empty"
    if not record.text and not record.token_ids:
        return "a prompt needs text or token_ids"
    return ids_problem("token_ids", record.token_ids)
