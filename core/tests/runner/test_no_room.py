"""The kernel refuses to write more (a file size limit), as it does on a full disk."""

import resource
import sys

from xcfg.model.status import Status
from xcfg.runner import collect, launching
from xcfg.runner.artifacts import load_run
from xcfg.runner.events import SideFailed


def test_an_engine_that_fills_the_disk_is_an_environment_error(world, monkeypatch):
    side, good = world.side("rollout", "BigSampler"), world.side("rollout")
    plain = launching.command
    limit = ["/bin/sh", "-c", 'ulimit -f 2048; exec "$0" "$@"', sys.executable]  # 1 MiB; this engine writes 8
    monkeypatch.setattr(launching, "command", lambda *args: [*limit, *plain(*args)[1:]])
    report = world.run(world.plan((side, good)))
    failure = report.sides[side.digest()].failure
    assert failure.status == Status.ENVIRONMENT_ERROR
    assert "File too large" in failure.reason
    assert report.sides[good.digest()].failure is None


def test_a_full_output_folder_fails_the_side_alone_and_keeps_former_attempts(world, monkeypatch):
    rows = [f'{{"id": "s{n}", "prompt_ids": [1], "response_ids": [2, 3]}}\n' for n in range(40)]
    (world.root / "tokens.jsonl").write_text("".join(rows))
    sides = [world.side("rollout", batch__size=size) for size in (1, 2, 3)]
    plan = world.plan(*[(side, side) for side in sides])
    first = world.run(world.plan((sides[0], sides[0])))
    former, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    plain = collect.merge

    def merge(folder, expected):
        merged = plain(folder, expected)
        if expected.config == sides[1]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # the failure's own record fits, the samples do not
        return merged

    def on_event(event):
        if isinstance(event, SideFailed):
            resource.setrlimit(resource.RLIMIT_FSIZE, (former, hard))

    monkeypatch.setattr(collect, "merge", merge)
    try:
        report = world.run(plan, on_event=on_event)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (former, hard))
    full = report.sides[sides[1].digest()]
    assert full.failure.status == Status.ENVIRONMENT_ERROR
    assert str(world.out) in full.failure.reason
    assert not list(world.out.rglob("*.partial"))
    assert report.sides[sides[2].digest()].failure is None
    kept = load_run(world.out, plan).sides[sides[0].digest()]
    assert kept.result == first.sides[sides[0].digest()].result
    monkeypatch.undo()
    assert world.run(plan).sides[sides[1].digest()].failure is None
