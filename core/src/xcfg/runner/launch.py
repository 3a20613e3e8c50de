"""What a child process is told: plain frozen data of one side only, written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from xcfg.model.codec import load_json, structure
from xcfg.model.experiment import SampleSource
from xcfg.model.json import Json, freeze, tupled
from xcfg.model.kernel import KernelBuild
from xcfg.model.knob import Lifecycle
from xcfg.model.scorer import Launch, Role
from xcfg.plugin.protocols import Prompt

SCHEMA = "xcfg.launch/1"


@frozen(kw_only=True)
class KnobTask:
    """One knob to apply and to read back. ``target`` is the materializer's import string."""

    name: str
    value: Json = field(default=None, converter=freeze)
    target: str
    lifecycle: Lifecycle
    observable: bool = True


@frozen(kw_only=True)
class OperatorTask:
    """One kernel operator to bind while a side is scored."""

    operator: str
    backend: str
    target: str
    options: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class BuildTask:
    """The one build of an operator's backend that the launch's processes load.

    ``builds`` are all that the backend has: what was loaded is looked up among them.
    """

    operator: str
    backend: str
    build: KernelBuild
    builds: tuple[KernelBuild, ...] = field(converter=tupled)


@frozen(kw_only=True)
class Step:
    """One side run on the open engine. ``folder`` is where its ranks write.

    ``knobs`` are all of the side's but those that chose a build, which is the launch's.
    """

    folder: str
    knobs: tuple[KnobTask, ...] = field(converter=tupled)
    operators: tuple[OperatorTask, ...] = field(default=(), converter=tupled)


@frozen(kw_only=True)
class SampleTask:
    """Sample the token batch before the first step. ``folder`` is where the ranks write it."""

    folder: str
    prompts: tuple[Prompt, ...] = field(converter=tupled)
    source: SampleSource


@frozen(kw_only=True)
class LaunchSpec:
    """Everything one engine's processes need. Paths are relative to the launch's folder, but for the checkpoint's.

    ``engine`` are the knobs the engine is opened with, ``builds`` the artifacts of its kernels. ``tokens`` names the
    frozen batch, or is empty where ``sample`` makes it. ``weights`` tells which value of ``rollout.weights`` the digest
    of a loaded checkpoint proves. ``folder`` takes the ranks' own state: phase, failure, closing
    times. ``facts`` names the plugins whose environment facts are asked.
    """

    schema: str = SCHEMA
    role: Role
    scorer: str
    target: str
    launch: Launch
    world_size: int
    requires: tuple[str, ...] = field(default=(), converter=tupled)
    install: str = ""
    checkpoint: str
    trust_remote_code: bool = False
    weights: Mapping[str, Json] = field(factory=dict, converter=freeze)
    engine: tuple[KnobTask, ...] = field(converter=tupled)
    builds: tuple[BuildTask, ...] = field(default=(), converter=tupled)
    steps: tuple[Step, ...] = field(default=(), converter=tupled)
    tokens: str = ""
    sample: SampleTask | None = None
    repeat: int = 1
    folder: str
    facts: tuple[str, ...] = field(default=(), converter=tupled)


def placed(spec: LaunchSpec, folder: Path) -> LaunchSpec:
    """The specification with absolute paths, for a launch whose folder is ``folder``."""
    return evolve(
        spec,
        folder=str(folder / spec.folder),
        steps=[evolve(step, folder=str(folder / step.folder)) for step in spec.steps],
        tokens=str(folder / spec.tokens) if spec.tokens else "",
        sample=evolve(spec.sample, folder=str(folder / spec.sample.folder)) if spec.sample else None,
    )


def read_spec(path: Path) -> LaunchSpec:
    """The specification in a file, with absolute paths."""
    return placed(structure(load_json(path.read_bytes(), where=str(path)), LaunchSpec), path.absolute().parent)


def folders(spec: LaunchSpec) -> tuple[Path, ...]:
    """Where the ranks write: state of their own, each side run, and the sampled tokens."""
    sampled = (Path(spec.sample.folder),) if spec.sample else ()
    return (Path(spec.folder), *(Path(step.folder) for step in spec.steps), *sampled)
