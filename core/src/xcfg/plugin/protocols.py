"""The objects behind the ids: what a plugin's engine code implements. Loaded in the child process only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attrs import Factory, define, field, frozen

from xcfg.model.capability import Capability, Unobservable
from xcfg.model.experiment import SampleSource
from xcfg.model.identity import LogprobSemantics
from xcfg.model.json import Json, freeze
from xcfg.model.kernel import BoundKernel, KernelRequest
from xcfg.model.operator_check import CheckReport, CheckRequest
from xcfg.model.recorded import Record, Row
from xcfg.model.sample import RankInfo, Samples, TokenBatch
from xcfg.model.scorer import Role


@define(kw_only=True)
class Settings:
    """The draft that materializers write into, one section a lifecycle; the only mutable value of the protocol.

    ``env`` is set in the child's environment before any engine is imported, ``engine`` is read by ``Scorer.open``,
    ``request`` by ``Scorer.score``.
    """

    env: dict[str, str] = Factory(dict)
    engine: dict[str, Json] = Factory(dict)
    request: dict[str, Json] = Factory(dict)


@frozen(kw_only=True)
class ScorerSpec:
    """What one rank is opened with: its own side's settings and nothing of the other side."""

    role: Role
    checkpoint: Path
    trust_remote_code: bool
    rank: int
    world_size: int
    engine: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class ScorerIdentity:
    """What a rank proves about the model it loaded.

    ``checkpoint_digest`` and ``tokenizer_digest`` come from :func:`xcfg.plugin.checkpoint.digest_checkpoint` over the
    files this rank loaded. ``recorded`` holds versions and other facts that never decide.
    """

    checkpoint_digest: str
    tokenizer_digest: str
    optimizer_steps: int = 0
    recorded: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class ScoreRequest:
    """One scoring call: request-time settings and the bound kernel operators by operator name.

    An operator ``selected_logprob`` is called as ``(logits (N, V), targets (N,) int64) -> (N,) float32`` in nats. One
    whose request named a ``sharding`` is called with ``group``, the process group of the ranks that hold the columns,
    besides, by every rank of it; ``logits`` are then this rank's columns and every rank gets every row.
    """

    settings: Mapping[str, Json] = field(factory=dict, converter=freeze)
    operators: Mapping[str, Callable[..., Any]] = field(factory=dict)


@frozen(kw_only=True)
class Scored:
    """The rows this rank scored, its metadata, and what the numbers mean. A rank without rows gives empty samples."""

    samples: Samples
    rank: RankInfo
    semantics: LogprobSemantics


@frozen(kw_only=True)
class Prompt:
    """One prompt of the token source; ``token_ids`` wins over ``text`` when both are given."""

    id: str
    text: str = ""
    token_ids: tuple[int, ...] = ()


@runtime_checkable
class Scorer(Protocol):
    """Scores the selected tokens of a frozen batch without changing any model state.

    Lifecycle: ``open`` once, then any number of ``score`` calls, then ``close`` (also after a failure; idempotent).
    Every rank of an elastic launch gets the whole batch and returns its own rows. ``live`` is the handle given to
    materializers' ``read_back``; it is valid from ``open`` to ``close``.
    """

    live: Any

    def open(self, spec: ScorerSpec) -> None:
        """Build the engine. Raises on failure; the child reports the exception as ``launch_error``."""

    def identity(self) -> ScorerIdentity:
        """What was loaded."""

    def kernel_request(self, operator: str, options: Mapping[str, Json]) -> KernelRequest | None:
        """The request for an operator this scorer lets a backend take over; None where it takes none."""

    def score(self, batch: TokenBatch, request: ScoreRequest) -> Scored:
        """Selected-token logprobs (nats, float32 or wider) of the response tokens of every row of this rank."""

    def state_digest(self) -> str:
        """SHA-256 of all model state of this rank; equal before and after scoring."""

    def close(self) -> None:
        """Release everything: no process and no port stays behind."""


@runtime_checkable
class Sampler(Protocol):
    """A scorer that can also sample the token batch."""

    def sample(self, prompts: Sequence[Prompt], source: SampleSource) -> TokenBatch:
        """One response per prompt, with the logprobs reported while sampling."""


@frozen(kw_only=True)
class HostedOperator:
    """A kernel backend for a scorer to bind where its logits are: its id, its import string and the request."""

    backend: str
    target: str
    request: KernelRequest


@runtime_checkable
class OperatorHost(Protocol):
    """A scorer whose logits are in processes of its own, so that backends are bound there and not beside it."""

    def host(self, asked: HostedOperator) -> AbstractContextManager[Callable[[], BoundKernel | None]]:
        """A context in which the backend computes the operator.

        Yields what tells, read back from the processes, which kernel they called; None where they called none. Raises
        UnsupportedError where the engine or the backend cannot do it.
        """


@runtime_checkable
class Materializer(Protocol):
    """Applies one knob to one scorer and reads it back from the live object."""

    def probe(self, knob: str, value: Json, spec: Mapping[str, Json]) -> Capability:
        """Whether this machine and engine can apply the value. ``spec`` has ``role``, ``checkpoint``, ``knobs``."""

    def apply(self, knob: str, value: Json, settings: Settings) -> Json:
        """Write the value into the draft; returns the materialized value (None where the engine chooses)."""

    def read_back(self, knob: str, live: Any) -> Json | Unobservable:
        """The value in force, from the live object after scoring; never from the configuration that asked for it."""


@runtime_checkable
class KernelBackend(Protocol):
    """An implementation of one kernel operator."""

    def probe(self, request: KernelRequest) -> Capability:
        """Whether the request can be served without a fallback."""

    def bind(self, request: KernelRequest) -> AbstractContextManager[Callable[..., Any]]:
        """A context that yields the callable and undoes whatever binding it needed.

        A backend that comes in builds loads ``request.artifact`` and nothing else.
        """

    def identify(self, bound: Callable[..., Any]) -> BoundKernel:
        """What really ran: concrete class, build, fallback taken.

        ``build`` of a backend that comes in builds is the digest of the file that is loaded, never of the one asked
        for: :func:`xcfg.plugin.loaded.loaded_digest`.
        """


class BackendCheck(Protocol):
    """How one backend is measured by itself, against float64 and the production backend."""

    def __call__(self, asked: CheckRequest) -> CheckReport:
        """What was found. A dtype that the backend refuses is in ``refused``, never left out."""


class FileReader(Protocol):
    """How files of one container are opened; the target of a file format is such a function."""

    def __call__(self, path: Path) -> Iterator[Row]:
        """The rows of a file, read as they are asked for. Raises ArtifactError for a file that is not what it says."""


@runtime_checkable
class Importer(Protocol):
    """What turns the rows of one framework's files into records."""

    def claims(self, fields: frozenset[str]) -> bool:
        """Whether a file whose first row has these fields has this layout."""

    def records(self, rows: Iterable[Row], role: Role) -> Iterator[Record]:
        """The records of one side, in the order of the rows. Raises ArtifactError for a row that lacks what it needs.

        Nothing is trimmed, padded, dropped or repaired; only padding that the layout itself declares is taken away.
        """
