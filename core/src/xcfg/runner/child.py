"""``python -m xcfg.runner.child SPEC.json``: one rank of one engine.

Order matters: settings, environment variables, the engine's import, its construction, then the side runs. Each side
run is on disk before the next starts, so what happens to the process later cannot undo it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from attrs import evolve

from xcfg.errors import ArtifactError, UnsupportedError
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.model.sample import TokenBatch
from xcfg.model.scorer import Launch
from xcfg.plugin.protocols import Sampler, Scorer
from xcfg.runner.child_builds import Builds
from xcfg.runner.child_engine import Knobs, open_scorer, prepare
from xcfg.runner.child_score import score_step
from xcfg.runner.frozen import load_frozen
from xcfg.runner.launch import LaunchSpec, SampleTask, read_spec
from xcfg.runner.rank_record import closed_name, sampled_name
from xcfg.runner.reporter import Reporter


def main(arguments: list[str]) -> int:
    """Run the launch described in the file ``arguments[0]``; returns the exit code."""
    path = Path(arguments[0])
    spec = read_spec(path)
    rank, world_size = _place(spec)
    reporter = Reporter(folder=Path(spec.folder), rank=rank)
    if world_size != spec.world_size:
        with reporter.during("import"):
            error = ArtifactError(f"{world_size} ranks were launched, not {spec.world_size}", where=str(path))
        return reporter.failed(reporter.folder, error)
    try:
        return _run(spec, rank, reporter)
    except BaseException as error:
        return reporter.failed(reporter.folder, error)


def _place(spec: LaunchSpec) -> tuple[int, int]:
    """Rank and world size; torch's elastic launcher gives them in the environment."""
    if spec.launch is Launch.SINGLE:
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def _run(spec: LaunchSpec, rank: int, reporter: Reporter) -> int:
    knobs = Knobs(spec)
    with reporter.during("import"):
        builds = Builds.checked(spec.builds)
        settings = prepare(spec, knobs)
    with reporter.during("open"):
        scorer = open_scorer(spec, settings, rank)
        identity = scorer.identity()
    batch = _batch(spec, scorer, reporter)
    facts = _facts(spec)
    for step in spec.steps:
        folder = Path(step.folder)
        try:
            with reporter.during("score"):
                record, samples = score_step(scorer, identity, knobs, builds, step, batch, settings, rank)
            reporter.record(folder, evolve(record, facts=facts), samples)
        except UnsupportedError as error:  # nothing was scored: the engine is as it was
            reporter.failed(folder, error)
            continue
        except BaseException as error:  # the engine's state is unknown: the parent builds another one
            code = reporter.failed(folder, error)
            if spec.launch is Launch.SINGLE:
                scorer.close()
            return code
    with reporter.during("close"):
        scorer.close()
    reporter.write(reporter.folder / closed_name(rank), {"phases": reporter.phases})
    return 0


def _batch(spec: LaunchSpec, scorer: Scorer, reporter: Reporter) -> TokenBatch:
    if spec.sample is None:
        batch = load_frozen(Path(spec.tokens))
        if batch is None:
            raise ArtifactError("no frozen token batch", where=spec.tokens)
        return batch
    with reporter.during("sample"):
        return _sample(spec.sample, spec.scorer, scorer, reporter)


def _sample(task: SampleTask, name: str, scorer: Scorer, reporter: Reporter) -> TokenBatch:
    if not isinstance(scorer, Sampler):
        raise UnsupportedError("this scorer cannot sample the token batch", where=name)
    batch = scorer.sample(task.prompts, task.source)
    reporter.write(Path(task.folder) / sampled_name(reporter.rank), unstructure(batch))
    return batch


def _facts(spec: LaunchSpec) -> dict[str, Json]:
    if not spec.facts:
        return {}
    from xcfg.plugin.inventory import inventory
    from xcfg.plugin.registry import load_registry

    others = {plugin.name for plugin in inventory()} - set(spec.facts)
    return load_registry(disabled=others, allow_fake=True).environment_facts(spec.role.value)


def _leave(code: int) -> None:
    """End the process. Under the elastic launcher without the interpreter's own tear-down.

    A rank on gloo was seen to abort there after ``destroy_process_group``, when everything was already on disk.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    _leave(main(sys.argv[1:]))
