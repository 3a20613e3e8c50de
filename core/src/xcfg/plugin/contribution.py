"""What one plugin registers, as one value that can be sent from one interpreter to another."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import field, frozen

from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.experiment import ProfileSpec, SliceSpec
from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor
from xcfg.model.json import tupled
from xcfg.model.knob import Knob
from xcfg.model.profile import ProfileDescriptor
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, ScorerDescriptor
from xcfg.model.tolerance import ToleranceContract

Descriptor = (
    Knob
    | ScorerDescriptor
    | MaterializerDescriptor
    | KernelBackendDescriptor
    | ProfileSpec
    | SliceSpec
    | ToleranceContract
    | ImporterDescriptor
    | FileFormatDescriptor
    | ExecutorDescriptor
)
Key = tuple[str, str]
"""Kind and identifier: ``("knob", "rollout.dtype")``, ``("backend", "selected_logprob/reference")``."""


@frozen(kw_only=True)
class Contribution:
    """The descriptors of one plugin and the distribution they come from."""

    plugin: str
    distribution: str
    knobs: tuple[Knob, ...] = field(default=(), converter=tupled)
    scorers: tuple[ScorerDescriptor, ...] = field(default=(), converter=tupled)
    materializers: tuple[MaterializerDescriptor, ...] = field(default=(), converter=tupled)
    backends: tuple[KernelBackendDescriptor, ...] = field(default=(), converter=tupled)
    profiles: tuple[ProfileDescriptor, ...] = field(default=(), converter=tupled)
    contracts: tuple[ToleranceContract, ...] = field(default=(), converter=tupled)
    importers: tuple[ImporterDescriptor, ...] = field(default=(), converter=tupled)
    file_formats: tuple[FileFormatDescriptor, ...] = field(default=(), converter=tupled)
    executors: tuple[ExecutorDescriptor, ...] = field(default=(), converter=tupled)

    def items(self) -> Iterator[tuple[Key, Descriptor]]:
        """Every descriptor with its key."""
        for knob in self.knobs:
            yield ("knob", knob.name), knob
        for scorer in self.scorers:
            yield ("scorer", scorer.id), scorer
        for materializer in self.materializers:
            yield materializer_key(materializer.knob, materializer.scorer), materializer
        for backend in self.backends:
            yield backend_key(backend.operator, backend.id), backend
        for named in self.profiles:
            if named.profile is not None:
                yield ("profile", named.id), named.profile
            if named.slice is not None:
                yield ("slice", named.id), named.slice
        for contract in self.contracts:
            yield ("contract", contract.ref.id), contract
        for importer in self.importers:
            yield ("importer", importer.id), importer
        for file_format in self.file_formats:
            yield ("file_format", file_format.id), file_format
        for executor in self.executors:
            yield ("executor", executor.id), executor


def materializer_key(knob: str, scorer: str) -> Key:
    """Key of the materializer of a knob for a scorer."""
    return "materializer", f"{knob}@{scorer}"


def backend_key(operator: str, backend: str) -> Key:
    """Key of a backend of an operator."""
    return "backend", f"{operator}/{backend}"


def describe_key(key: Key) -> str:
    """``scorer 'vllm'`` for messages."""
    return f"{key[0]} {key[1]!r}"
