"""The ranks of one side run as one result: what must agree is compared, what may differ is combined."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import evolve, frozen
from safetensors.numpy import load as load_tensors

from xcfg.errors import XcfgError
from xcfg.model.attempt import Measured, SideResult
from xcfg.model.case import SideConfig
from xcfg.model.codec import load_json, structure, unstructure
from xcfg.model.identity import SideIdentity
from xcfg.model.ids import digest
from xcfg.model.json import Json
from xcfg.model.sample import Samples, concatenate
from xcfg.model.status import Status
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.provenance import side_provenance
from xcfg.runner.rank_record import SCHEMA, RankRecord, Repeats, record_name, tensor_name

_AGREED = ("token_digest", "sequence_ids", "checkpoint_digest", "tokenizer_digest", "optimizer_steps", "semantics")


class SideInvalid(Exception):
    """A finished side run that must not be taken for a result."""

    def __init__(self, status: Status, reason: str) -> None:
        """``reason`` is a sentence for the user."""
        self.status = status
        self.reason = reason
        super().__init__(f"{status}: {reason}")


@frozen(kw_only=True)
class Expected:
    """What the parent knows of a side run beforehand."""

    config: SideConfig
    ranks: int
    token_digest: str
    checkpoint: CheckpointDigest
    fake: bool


@frozen(kw_only=True)
class Merged:
    """A side run ready to be sealed. ``facts`` by rank decide nothing."""

    result: SideResult
    measured: Measured
    facts: Mapping[str, Json]


def merge(folder: Path, expected: Expected) -> Merged:
    """The result in a staging folder whose ranks are all complete. Raises :class:`SideInvalid`."""
    read = [_read(folder, rank) for rank in range(expected.ranks)]
    records = [record for record, _ in read]
    for record, samples in read:
        _check_rank(record, samples, expected)
    _check_agreement(records)
    _check_identity(records[0], expected)
    result = SideResult(
        identity=_identity(records, expected),
        provenance=side_provenance(expected.config, records),
        ranks=[record.info for record in records],
        expected_ranks=expected.ranks,
        sequence_ids=records[0].sequence_ids,
        samples=concatenate([samples for _, samples in read]),
        fake=expected.fake,
    )
    facts = {str(record.rank): record.facts for record in records}
    return Merged(result=result, measured=_measured(records), facts=facts)


def _read(folder: Path, rank: int) -> tuple[RankRecord, Samples]:
    path = folder / record_name(rank)
    try:
        record = structure(load_json(path.read_bytes(), where=path.name), RankRecord)
        data = (folder / tensor_name(rank)).read_bytes()
    except (OSError, XcfgError) as error:
        raise SideInvalid(Status.INVALID_ARTIFACT, f"rank {rank} left no readable record: {error}") from error
    if record.schema != SCHEMA or hashlib.sha256(data).hexdigest() != record.samples:
        raise SideInvalid(Status.INVALID_ARTIFACT, f"rank {rank}: schema or tensors are not what it recorded")
    try:
        return record, Samples(**load_tensors(data))
    except Exception as error:  # safetensors has no common base for its errors
        raise SideInvalid(Status.INVALID_ARTIFACT, f"rank {rank}: unusable tensors: {error}") from error


def _check_rank(record: RankRecord, samples: Samples, expected: Expected) -> None:
    named = {record.rank, record.info.rank} | set(samples.rank.tolist())
    if len(named) > 1:
        raise SideInvalid(
            Status.INVALID_ARTIFACT, f"rank {record.rank} wrote rows or metadata of ranks {sorted(named)}"
        )
    if record.info.world_size != expected.ranks:
        reason = f"rank {record.rank} saw {record.info.world_size} ranks, {expected.ranks} were launched"
        raise SideInvalid(Status.INVALID_ARTIFACT, reason)
    if np.any(samples.position_ids < 0):
        raise SideInvalid(Status.INVALID_ARTIFACT, f"rank {record.rank} reports positions below 0")
    if samples.rows and not np.all((samples.sequence >= 0) & (samples.sequence < len(record.sequence_ids))):
        raise SideInvalid(Status.INVALID_ARTIFACT, f"rank {record.rank} scored a sequence that the batch does not hold")


def _check_agreement(records: Sequence[RankRecord]) -> None:
    first = records[0]
    for other in records[1:]:
        for name in _AGREED:
            one, two = getattr(first, name), getattr(other, name)
            if one != two:
                reason = f"ranks disagree on {name}: {one!s:.80} on rank 0, {two!s:.80} on rank {other.rank}"
                raise SideInvalid(Status.INVALID_IDENTITY, reason)


def _check_identity(record: RankRecord, expected: Expected) -> None:
    proven = {
        "token_digest": (record.token_digest, expected.token_digest),
        "checkpoint_digest": (record.checkpoint_digest, expected.checkpoint.weights),
        "tokenizer_digest": (record.tokenizer_digest, expected.checkpoint.tokenizer),
    }
    for name, (loaded, planned) in proven.items():
        if loaded != planned:
            reason = f"the engine's {name} is {loaded or 'unknown'}, the plan's is {planned or 'unknown'}"
            raise SideInvalid(Status.INVALID_IDENTITY, reason)


def _identity(records: Sequence[RankRecord], expected: Expected) -> SideIdentity:
    first, config = records[0], expected.config
    return SideIdentity(
        checkpoint_digest=first.checkpoint_digest,
        checkpoint_revision=config.checkpoint.revision,
        weight_version=config.checkpoint.weight_version,
        tokenizer_digest=first.tokenizer_digest,
        token_digest=first.token_digest,
        optimizer_steps=first.optimizer_steps,
        base_digest=expected.checkpoint.base,
        state_before=_combined([record.state_before for record in records]),
        state_after=_combined([record.state_after for record in records]),
        semantics=first.semantics,
        recorded=first.recorded,
    )


def _combined(states: Sequence[str]) -> str:
    """One digest for all ranks; unknown as soon as one of them is."""
    if len(states) == 1 or not all(states):
        return states[0] if len(states) == 1 else ""
    return digest(list(states))


def _measured(records: Sequence[RankRecord]) -> Measured:
    phases: dict[str, float] = {}
    peaks: dict[str, int] = {}
    for record in records:
        for name, seconds in record.phases.items():
            phases[name] = max(seconds, phases.get(name, 0.0))
        for name, size in record.peak_rss.items():
            peaks[str(record.rank) if name == "process" else f"{record.rank}.{name}"] = size
    return Measured(phases=phases, peak_rss=peaks, repeats=unstructure(_repeats([item.repeats for item in records])))


def _repeats(ranks: Sequence[Repeats]) -> Repeats:
    gaps = [item.max_abs_difference for item in ranks]
    known = [gap for gap in gaps if gap is not None]
    return evolve(
        ranks[0],
        bitwise_equal=all(item.bitwise_equal for item in ranks),
        max_abs_difference=max(known) if len(known) == len(gaps) else None,
    )
