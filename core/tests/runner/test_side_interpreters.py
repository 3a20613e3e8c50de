"""A side whose ranks run in another interpreter."""

from xcfg.model.scorer import Role
from xcfg.model.status import Status


def test_each_side_runs_in_its_own_interpreter(world, registry, other_python):
    sides = [world.side(role, "Environment") for role in ("rollout", "training")]
    report = world.run(world.plan(tuple(sides)), registry(interpreters={Role.ROLLOUT: other_python}))
    ran = {role: report.sides[side.digest()].result for role, side in zip(("rollout", "training"), sides, strict=True)}
    assert ran["rollout"].identity.recorded["python"] == other_python
    assert ran["training"].identity.recorded["python"] != other_python
    assert ran["rollout"].samples.logprobs.tobytes() == ran["training"].samples.logprobs.tobytes()


def test_an_interpreter_that_cannot_run_fails_its_side_alone(world, registry, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    side, good = world.side("rollout"), world.side("training")
    report = world.run(world.plan((side, good)), registry(interpreters={Role.ROLLOUT: str(broken)}))
    assert report.sides[side.digest()].failure.status == Status.LAUNCH_ERROR
    assert report.sides[good.digest()].failure is None
