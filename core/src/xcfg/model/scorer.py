"""Descriptors of scorers, materializers and kernel backends: plain data, importing no engine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled
from xcfg.model.kernel import KernelBuild
from xcfg.model.knob import Lifecycle


class Role(StrEnum):
    """The side a scorer plays."""

    ROLLOUT = "rollout"
    TRAINING = "training"


class Launch(StrEnum):
    """How the ranks of a scorer start: by itself, or under torch's elastic launcher."""

    SINGLE = "single"
    ELASTIC = "elastic"


@frozen(kw_only=True)
class ScorerDescriptor:
    """A scorer a plugin brings. ``target`` is an import string ``module:Class`` loaded in the child process only.

    ``requires`` are import names of the engine; ``install`` is the pip line that brings them.
    ``world_size_knob`` names the knob that gives the number of ranks of an elastic launch.
    ``samples`` and ``forces`` declare whether it can sample a token batch and force fixed tokens when decoding.
    ``operators`` are those it computes itself unless the experiment's ``operators`` name a backend for its side.
    """

    id: str
    summary: str
    target: str
    roles: tuple[Role, ...] = field(converter=tupled)
    launch: Launch = Launch.SINGLE
    requires: tuple[str, ...] = field(default=(), converter=tupled)
    install: str = ""
    world_size_knob: str = ""
    read_only: bool = True
    samples: bool = False
    forces: bool = False
    operators: tuple[str, ...] = field(default=(), converter=tupled)
    fake: bool = False


@frozen(kw_only=True)
class MaterializerDescriptor:
    """How one knob is applied to one scorer.

    ``values`` lists the only values this scorer can apply (empty: the knob's whole domain) and ``reason`` says why.
    ``inapplicable`` declares that the knob has no meaning for this scorer (padding for a ragged engine): the value
    does not enter that side's configuration, and provenance records the sentence instead of an observation.
    """

    knob: str
    scorer: str
    lifecycle: Lifecycle
    target: str = ""
    observable: bool = True
    values: tuple[Json, ...] = field(default=(), converter=tupled)
    reason: str = ""
    inapplicable: str = ""


@frozen(kw_only=True)
class KernelBackendDescriptor:
    """An implementation of a kernel operator such as ``selected_logprob``.

    ``builds`` are the artifacts it comes in where build-time knobs choose between several; the first that fits what is
    asked for is taken. Such a backend has the lifecycle ``build``: every build gets a process of its own.
    ``build_fingerprint`` tells apart the versions of a backend that comes in one build.
    ``check`` is the import string of a :class:`xcfg.plugin.protocols.BackendCheck`, which measures the backend alone.
    """

    operator: str
    id: str
    summary: str
    target: str
    roles: tuple[Role, ...] = field(converter=tupled)
    architectures: tuple[str, ...] = field(default=("cpu",), converter=tupled)
    dtypes: tuple[str, ...] = field(default=(), converter=tupled)
    layouts: tuple[str, ...] = field(default=("full-vocabulary",), converter=tupled)
    determinism: str = "run-to-run"
    required_metadata: tuple[str, ...] = field(default=(), converter=tupled)
    collectives: tuple[str, ...] = field(default=(), converter=tupled)
    lifecycle: Lifecycle = Lifecycle.REQUEST
    fallback: str = ""
    build_fingerprint: str = ""
    builds: tuple[KernelBuild, ...] = field(default=(), converter=tupled)
    options: Mapping[str, Json] = field(factory=dict, converter=freeze)
    check: str = ""
    fake: bool = False
