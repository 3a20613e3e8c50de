"""``plan.json`` of a folder: what is written is what a plain encoding gives, what is read is what was written."""

import json

import pytest
from attrs import evolve

from xcfg.errors import ArtifactError
from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.experiment import CaseSpec, Checkpoint, Experiment, SideSpec, TokenSource
from xcfg.model.kernel import OperatorChoice
from xcfg.model.plan import Plan
from xcfg.model.scorer import Role
from xcfg.runner.durable import encode
from xcfg.runner.plan_file import keep_plan, plan_text, read_plan

AXES = ("rollout.dtype", "batch.size")


def side(role, **knobs):
    return SideConfig(
        role=role,
        scorer="fake",
        checkpoint=Checkpoint(path="modèle"),
        knobs={name.replace("_", ".", 1): value for name, value in knobs.items()},
        inapplicable={"layout.packing": 'it has "no" packing'},
        operators={"selected_logprob": OperatorChoice(backend="reference", options={"block": 128})},
    )


def grid(*sizes):
    rollouts = [side(Role.ROLLOUT, rollout_dtype=dtype) for dtype in ("bfloat16", "float32", None)]
    trainings = [side(Role.TRAINING, batch_size=size) for size in sizes]
    cases = [
        Case(
            id=f"{row}-{size}",
            name="baseline" if not row and size == sizes[0] else "",
            axes={"rollout.dtype": rollout.knobs["rollout.dtype"], "batch.size": size},
            changed=("batch.size",),
            rollout=rollout,
            training=training,
            rejected=Rejection(kind="veto", reason="ü") if row == 2 else None,
        )
        for row, rollout in enumerate(rollouts)
        for size, training in zip(sizes, trainings, strict=True)
    ]
    experiment = Experiment(
        name="e",
        checkpoint=Checkpoint(path="modèle"),
        rollout=SideSpec(scorer="fake"),
        training=SideSpec(scorer="fake"),
        tokens=TokenSource(recorded="t"),
        cases=[CaseSpec(name="one", set={"batch.size": 1})],
    )
    return Plan(
        experiment=experiment, root="/", baseline=cases[0].id, dimensions=AXES, tokens={"recorded": 1.5}, cases=cases
    )


@pytest.mark.parametrize("change", [{}, {"cases": ()}, {"reference": grid(8).cases[0]}])
def test_the_text_is_that_of_the_plain_encoding(change):
    plan = evolve(grid(8, 1), **change)
    assert plan_text(plan) == encode(plan)


def test_a_plan_comes_back_as_it_was_and_its_cases_share_their_sides(tmp_path):
    plan = grid(8, 1)
    keep_plan(tmp_path / "plan.json", plan)
    found = read_plan(tmp_path / "plan.json")
    assert found == plan
    assert [case.rollout.inapplicable for case in found.cases] == [case.rollout.inapplicable for case in plan.cases]
    assert len({id(case.rollout) for case in found.cases}) == 3
    assert len({id(case.training) for case in found.cases}) == 2


def test_values_that_only_look_alike_stay_apart(tmp_path):
    """1, 1.0 and true are equal in Python; as settings they are three."""
    keep_plan(tmp_path / "plan.json", grid(1, 1.0, True))
    sizes = [case.training.knobs["batch.size"] for case in read_plan(tmp_path / "plan.json").cases[:3]]
    assert [type(size) for size in sizes] == [int, float, bool]


def test_the_same_plan_again_leaves_the_file_alone(tmp_path):
    path = tmp_path / "plan.json"
    keep_plan(path, grid(8, 1))
    before = path.stat()
    keep_plan(path, grid(8, 1))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_smaller_plan_keeps_the_cases_and_a_larger_one_adds_its_own(tmp_path):
    path = tmp_path / "plan.json"
    keep_plan(path, grid(8, 1))
    keep_plan(path, grid(8))
    assert [case.id for case in read_plan(path).cases] == ["0-8", "1-8", "2-8", "0-1", "1-1", "2-1"]
    keep_plan(path, grid(8, 1, 4))
    assert {case.id for case in read_plan(path).cases} == {f"{row}-{size}" for row in range(3) for size in (8, 1, 4)}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda document: document["cases"][4]["training"].pop("scorer"), "cases.4.training.scorer"),
        (lambda document: document["cases"][2]["rollout"].update(role="judge"), "cases.2.rollout.role"),
        (lambda document: document["cases"][1].pop("rollout"), "cases.1.rollout"),
        (lambda document: document["cases"].__setitem__(3, 7), "cases.3"),
        (lambda document: document.update(cases={}), "cases"),
        (lambda document: document.update(schema="xcfg.plan/9"), "xcfg.plan/9"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(tmp_path, change, named):
    path = tmp_path / "plan.json"
    keep_plan(path, grid(8, 1))
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError) as caught:
        read_plan(path)
    assert str(path) in str(caught.value) and named in str(caught.value)


def test_a_file_that_is_no_object_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(ArtifactError, match="expected a mapping"):
        read_plan(tmp_path / "plan.json")
