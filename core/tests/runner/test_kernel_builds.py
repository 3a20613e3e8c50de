"""Builds of kernels: chosen once a launch, checked before they are loaded, read back from what was loaded."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve, frozen

from xcfg.errors import PluginError
from xcfg.model.kernel import KernelBuild, OperatorChoice
from xcfg.model.knob import Lifecycle
from xcfg.model.provenance import KnobState
from xcfg.model.status import Status
from xcfg.plugin.checkpoint import file_digest
from xcfg.runner.fingerprint import fingerprint
from xcfg.runner.schedule import group

KNOB = "kernel.fast_math"
KINDS = {"built": "Built", "stuck": "Stuck", "foreign": "Foreign"}


@pytest.fixture
def built(world, registry, monkeypatch):
    """A registry with kernels in two builds, whose files are in the temporary folder."""
    pack = world.root / "pack"
    shutil.copytree(Path(__file__).parent / "modules" / "pack", pack)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(world.root), os.environ["PYTHONPATH"]]))
    builds = [
        KernelBuild(knobs={KNOB: fast}, artifact=f"pack:{name}", fingerprint=file_digest(pack / name))
        for fast, name in ((False, "none"), (True, "half"))
    ]

    @frozen
    class Registry(registry):
        def backend(self, operator, backend):
            target = KINDS.get(backend)
            if target is None:
                return super().backend(operator, backend)
            usual = super().backend(operator, "fake_exact")
            return evolve(usual, id=backend, target=f"odd_kernels:{target}", lifecycle=Lifecycle.BUILD, builds=builds)

    return Registry()


def side(world, kernel="built", fast=None, role="rollout", **knobs):
    operators = {"selected_logprob": OperatorChoice(backend=kernel)}
    named = {} if fast is None else {"kernel__fast_math": fast}
    return world.side(role, "fake_kernel", operators, logp__backend=kernel, **named, **knobs)


def test_each_build_is_an_engine_of_its_own(world, built):
    sides = [side(world, fast=fast, batch__size=size) for fast in (False, True) for size in (1, 2)]
    sides += [side(world), side(world, "fake_exact"), side(world, "fake_coarse")]
    groups = group(sides, built)
    assert [len(item.sides) for item in groups] == [3, 2, 2]
    assert groups[0].sides == (sides[0], sides[1], sides[4])  # nothing asked for: the first build
    assert groups[2].sides == tuple(sides[5:])  # no build is loaded into a process that other kernels run in


def test_a_plan_made_with_other_builds_is_a_plugin_error(world, built):
    with pytest.raises(PluginError, match="has no build with the values of this plan"):
        group([side(world, fast="maybe")], built)
    with pytest.raises(PluginError, match=r"no materializer applies kernel\.fast_math"):
        group([side(world, "fake_exact", fast=True)], built)


def test_a_rebuilt_artifact_is_another_fingerprint(world, built):
    made = [fingerprint(side(world, fast=fast), built)["builds"] for fast in (False, True)]
    assert made[0].keys() == made[1].keys() == {"selected_logprob.built"}
    assert made[0] != made[1]


def test_each_value_runs_its_build_and_reads_it_back(world, built):
    asked = {name: side(world, fast=fast) for name, fast in (("open", None), ("strict", False), ("fast", True))}
    report = world.run(world.plan(*[(item, item) for item in asked.values()]), built)
    assert (report.engines.distinct, report.engines.constructed) == (2, 2)
    results = {name: report.sides[item.digest()].result for name, item in asked.items()}
    for name, (requested, observed) in {"open": (None, False), "strict": (False, False), "fast": (True, True)}.items():
        found = results[name].provenance.knobs[KNOB]
        assert (found.requested, found.materialized, found.observed) == (requested, observed, observed)
        assert found.state is KnobState.APPLIED
    values = {name: result.samples.logprobs for name, result in results.items()}
    np.testing.assert_array_equal(values["open"], values["strict"])
    np.testing.assert_allclose(values["fast"] - values["strict"], 0.5, atol=1e-6)
    for path in (world.out / "launches").glob("*/spec.json"):
        assert len(json.loads(path.read_text())["builds"]) == 1


def test_another_build_than_the_one_handed_over_is_a_mismatch(world, built):
    strict, fast = side(world, "stuck", fast=False), side(world, "stuck", fast=True)
    report = world.run(world.plan((strict, strict), (fast, fast)), built)
    wrong, right = (report.sides[item.digest()].result.provenance for item in (strict, fast))
    assert right.unsound == ()
    assert wrong.unsound == (KNOB,)
    assert (wrong.knobs[KNOB].state, wrong.knobs[KNOB].observed) == (KnobState.MISMATCH, True)


def test_a_digest_of_no_build_proves_nothing(world, built):
    item = side(world, "foreign")
    found = world.run(world.plan((item, item)), built).sides[item.digest()].result.provenance
    assert found.unsound == (KNOB,)
    assert found.knobs[KNOB].state is KnobState.UNOBSERVABLE
    assert "is none of those of foreign" in found.knobs[KNOB].reason


@pytest.mark.parametrize(("content", "said"), [("0.25\n", "it was not loaded"), (None, "is not installed")])
def test_an_artifact_that_is_not_the_planned_one_is_never_loaded(world, built, content, said):
    path = world.root / "pack" / "half"
    path.unlink() if content is None else path.write_text(content)
    item = side(world, fast=True)
    failure = world.run(world.plan((item, item)), built).sides[item.digest()].failure
    assert failure.status == Status.LAUNCH_ERROR
    assert failure.reason.startswith("import: ") and said in failure.reason
