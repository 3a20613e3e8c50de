"""The files of one attempt: written once, sealed, and read back only where everything still holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from attrs import field, frozen
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save

from xcfg.errors import ArtifactError, InvalidInput
from xcfg.model.attempt import SCHEMA, Measured, SideFailure, SideResult
from xcfg.model.case import SideConfig
from xcfg.model.codec import load_json, structure
from xcfg.model.identity import SideIdentity
from xcfg.model.json import Json, freeze
from xcfg.model.kernel import BoundKernel
from xcfg.model.provenance import KnobProvenance, KnobState, SideProvenance
from xcfg.model.sample import RankInfo, Samples
from xcfg.plugin.checkpoint import CheckpointDigest
from xcfg.runner.durable import encode, room, write_json, write_new
from xcfg.runner.merge import Merged
from xcfg.runner.seal import seal, verify
from xcfg.runner.store import side_id

T = TypeVar("T")

FAILURE = "failure.json"
SAMPLES = "samples.safetensors"


@frozen(kw_only=True)
class _Identity:
    schema: str
    identity: SideIdentity


@frozen(kw_only=True)
class _Values:
    """``requested.json`` and ``materialized.json``; only the former holds the side's configuration."""

    knobs: Mapping[str, Json] = field(converter=freeze)
    side: SideConfig | None = None


@frozen(kw_only=True)
class _Reading:
    observed: Json = field(converter=freeze)
    state: KnobState
    reason: str


@frozen(kw_only=True)
class _Observed:
    knobs: Mapping[str, _Reading] = field(converter=freeze)
    operators: Mapping[str, BoundKernel] = field(converter=freeze)


@frozen(kw_only=True)
class _Ranks:
    expected: int
    ranks: tuple[RankInfo, ...]
    sequence_ids: tuple[str, ...]
    fake: bool


@frozen(kw_only=True)
class Surroundings:
    """What an attempt was made with and by: compared at resume (``fingerprint``), or only kept."""

    fingerprint: Mapping[str, Json] = field(converter=freeze)
    facts: Mapping[str, Json] = field(converter=freeze)
    launch: str


@frozen(kw_only=True)
class Attempt:
    """A sealed attempt as it was read back."""

    config: SideConfig
    result: SideResult
    measured: Measured
    surroundings: Surroundings


@frozen(kw_only=True)
class FailedAttempt:
    """Content of ``failure.json``."""

    schema: str = SCHEMA
    failure: SideFailure
    launch: str


def write_attempt(
    folder: Path, subject: str, config: SideConfig, merged: Merged, around: Surroundings, logs: Mapping[str, bytes]
) -> None:
    """Write every payload into the empty ``folder``, then the seal. Raises EnvironmentFault where there is no room."""
    result, provenance = merged.result, merged.result.provenance
    knobs = provenance.knobs
    documents: dict[str, Json] = {
        "identity": _Identity(schema=SCHEMA, identity=result.identity),
        "requested": _Values(knobs={name: item.requested for name, item in knobs.items()}, side=config),
        "materialized": _Values(knobs={name: item.materialized for name, item in knobs.items()}),
        "observed": _Observed(
            knobs={
                name: _Reading(observed=item.observed, state=item.state, reason=item.reason)
                for name, item in knobs.items()
            },
            operators=provenance.operators,
        ),
        "ranks": _Ranks(
            expected=result.expected_ranks, ranks=result.ranks, sequence_ids=result.sequence_ids, fake=result.fake
        ),
        "timing": merged.measured,
        "environment": around,
    }
    for name, value in documents.items():
        write_new(folder / f"{name}.json", encode(value))
    write_new(folder / SAMPLES, save(result.samples.arrays()))
    write_logs(folder, logs)
    seal(folder, subject)


def write_logs(folder: Path, logs: Mapping[str, bytes]) -> None:
    """Write the parts of the process logs that belong to an attempt."""
    for name, data in logs.items():
        path = folder / "logs" / name
        with room(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, data)


def write_failure(folder: Path, failure: SideFailure, launch: str, logs: Mapping[str, bytes]) -> None:
    """Record in ``folder`` why the attempt gave nothing."""
    write_logs(folder, logs)
    write_json(folder / FAILURE, FailedAttempt(failure=failure, launch=launch))


def read_failure(folder: Path) -> FailedAttempt | None:
    """The recorded failure of an attempt, if it is one. Raises ArtifactError where the record is unreadable."""
    path = folder / FAILURE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArtifactError(f"unreadable: {error}", where=str(path)) from error
    return _parsed(data, path, FailedAttempt)


def subject_of(side: str, number: int) -> str:
    """What the seal of an attempt names."""
    return f"{side}/attempt-{number:04d}"


def read_attempt(folder: Path, side: str, number: int) -> Attempt:
    """A sealed attempt. Raises ArtifactError where a seal, a schema or a digest does not hold."""
    content = verify(folder, subject_of(side, number))

    def read(name: str, cls: type[T]) -> T:
        path = folder / f"{name}.json"
        if path.name not in content:
            raise ArtifactError("nothing of this name was sealed", where=str(path))
        return _parsed(content[path.name], path, cls)

    identity = read("identity", _Identity)
    requested = read("requested", _Values)
    materialized = read("materialized", _Values).knobs
    observed = read("observed", _Observed)
    ranks = read("ranks", _Ranks)
    if identity.schema != SCHEMA or requested.side is None:
        raise ArtifactError(f"schema {identity.schema!r}, expected {SCHEMA!r}", where=str(folder))
    proven = identity.identity
    digests = CheckpointDigest(weights=proven.checkpoint_digest, tokenizer=proven.tokenizer_digest)
    if side_id(requested.side, proven.token_digest, digests) != side:
        raise ArtifactError("configuration and identity do not give this side id", where=str(folder))
    if silent := requested.knobs.keys() - observed.knobs.keys():
        raise ArtifactError(f"nothing is recorded of {', '.join(sorted(silent))}", where=str(folder / "observed.json"))
    try:
        knobs = {
            name: KnobProvenance(
                requested=requested.knobs[name],
                materialized=materialized[name],
                observed=item.observed,
                state=item.state,
                reason=item.reason,
            )
            for name, item in observed.knobs.items()
        }
        samples = Samples(**load_tensors(content[SAMPLES]))
    except Exception as error:  # safetensors has no common base for its errors
        raise ArtifactError(f"unusable content: {error}", where=str(folder)) from error
    return Attempt(
        config=requested.side,
        result=SideResult(
            identity=proven,
            provenance=SideProvenance(knobs=knobs, operators=observed.operators),
            ranks=ranks.ranks,
            expected_ranks=ranks.expected,
            sequence_ids=ranks.sequence_ids,
            samples=samples,
            fake=ranks.fake,
        ),
        measured=read("timing", Measured),
        surroundings=read("environment", Surroundings),
    )


def _parsed(data: bytes, path: Path, cls: type[T]) -> T:
    try:
        return structure(load_json(data, where=str(path)), cls)
    except InvalidInput as error:
        raise ArtifactError(f"unreadable: {error}", where=str(path)) from error
