import json
import shutil
from pathlib import Path
from types import MappingProxyType

import pytest
from attrs import Factory, evolve, frozen

from xcfg.builtin.contracts import shipped_contracts
from xcfg.model.case import Case, SideConfig, case_id
from xcfg.model.experiment import Checkpoint, Experiment, SampleSource, SideSpec, TokenSource
from xcfg.model.plan import Plan
from xcfg.model.scorer import Launch, Role, ScorerDescriptor
from xcfg.runner.execute import execute
from xcfg.runner.options import RunOptions
from xcfg.testing.descriptors import BACKENDS, MATERIALIZERS, SCORERS

MODULES = Path(__file__).parent / "modules"


def _odd(cls: str, **changes: object) -> ScorerDescriptor:
    roles = (Role.ROLLOUT, Role.TRAINING)
    return ScorerDescriptor(id=cls, summary="", target=f"odd_scorers:{cls}", roles=roles, fake=True, **changes)


ODD = (
    *(
        _odd(cls)
        for cls in (
            *("Daemons", "DaemonsThenHang", "SlowSecond", "CrashSecond", "Flaky", "AbortsAtExit", "WrongWeights"),
            *("NoMemory", "NoSampler", "Jitter", "Environment", "BigSampler"),
            *("HangsAtOpen", "HangsAtClose"),
        )
    ),
    _odd("Absent", requires=("no_such_engine",), install="pip install no-such-engine"),
    *(_odd(cls, launch=Launch.ELASTIC, world_size_knob="training.world_size") for cls in ("Elastic", "ElasticLost")),
)


@frozen
class StubRegistry:
    """The fakes and the odd scorers, with the fakes' materializers for all of them."""

    environment: dict[str, str] = Factory(dict)
    interpreters: dict[Role, str] = Factory(dict)
    choosy: bool = False
    plugins: tuple[()] = ()

    def scorer(self, scorer):
        return {item.id: item for item in (*SCORERS, *ODD)}[scorer]

    def materializers(self, scorer):
        found = {item.knob: item for item in MATERIALIZERS if item.scorer == "fake_kernel"}
        if self.choosy:
            found["batch.size"] = evolve(found["batch.size"], target="odd_scorers:Choosy")
        return MappingProxyType(found)

    def backend(self, operator, backend):
        return {(item.operator, item.id): item for item in BACKENDS}[operator, backend]

    def owner(self, kind, name):
        return "xcfg"

    def contract(self, id_or_path, *, root=Path()):
        return next(item for item in shipped_contracts() if item.ref.id == id_or_path)

    def interpreter(self, role):
        return self.interpreters.get(role, "")

    def process_environment(self, side):
        return dict(self.environment)


@frozen
class World:
    """A temporary experiment: checkpoint, tokens, output folder."""

    root: Path
    folder: str = "out"

    @property
    def out(self) -> Path:
        return self.root / self.folder

    def copy(self, name: str) -> "World":
        """The same experiment with a copy of its output folder."""
        shutil.copytree(self.out, self.root / name)
        return World(self.root, name)

    @property
    def home(self) -> Path:
        return self.root / "home"

    def side(self, role: str, scorer: str = "fake", operators=(), checkpoint: str = "model", **knobs) -> SideConfig:
        knobs = {name.replace("__", "."): value for name, value in knobs.items()}
        return SideConfig(
            role=Role(role),
            scorer=scorer,
            checkpoint=Checkpoint(path=checkpoint),
            knobs=knobs,
            operators=dict(operators),
        )

    def plan(
        self, *pairs: tuple[SideConfig, SideConfig], sample: bool = False, baseline: SideConfig | None = None
    ) -> Plan:
        source = TokenSource(recorded="tokens.jsonl")
        if sample:
            source = TokenSource(sample=SampleSource(prompts="prompts.jsonl", max_new_tokens=4, seed=1))
        tokens = {"recorded": "tokens.jsonl"} if not sample else {"sample": "prompts.jsonl"}
        cases = [
            Case(id=case_id(rollout, training, tokens, "ws1"), rollout=rollout, training=training)
            for rollout, training in pairs
        ]
        experiment = Experiment(
            name="demo",
            checkpoint=Checkpoint(path="model"),
            rollout=SideSpec(scorer=pairs[0][0].scorer),
            training=SideSpec(scorer=pairs[0][1].scorer),
            tokens=source,
        )
        reference = None
        if baseline is not None:
            reference = Case(id="reference", rollout=baseline, training=pairs[0][1])
        return Plan(
            experiment=experiment,
            root=str(self.root),
            baseline=reference.id if reference else cases[0].id,
            dimensions=(),
            tokens=tokens,
            cases=cases,
            reference=reference,
        )

    def run(self, plan: Plan, registry=None, on_event=None, executor=None, **options):
        options = {"timeout": 60.0, "jobs": 1, **options}
        events = on_event or (lambda event: None)
        return execute(
            plan, registry or StubRegistry(), self.out, RunOptions(**options), on_event=events, executor=executor
        )


def _make_world(root: Path, patch: pytest.MonkeyPatch) -> World:
    for name, seed in (("model", 1), ("other", 2)):
        folder = root / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"vocab_size": 17, "seed": seed}))
        (folder / "tokenizer.json").write_text("{}")
    rows = [
        {"id": "a", "prompt_ids": [1, 2, 3], "response_ids": [4, 5]},
        {"id": "b", "prompt_ids": [6], "response_ids": [7, 8, 9], "mask": [True, False, True]},
    ]
    (root / "tokens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prompts = [{"id": "p", "token_ids": [1, 2]}, {"id": "q", "text": "hello"}]
    (root / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in prompts))
    made = World(root)
    made.home.mkdir()
    patch.syspath_prepend(str(MODULES))
    patch.setenv("PYTHONPATH", str(MODULES))
    patch.setenv("HOME", str(made.home))
    return made


@pytest.fixture(scope="session")
def make_world():
    return _make_world


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    return _make_world(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def registry():
    return StubRegistry


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A world whose grid was run once, its plan and its report: two rollout dtypes, two batch sizes, one training."""
    with pytest.MonkeyPatch.context() as patch:
        world = _make_world(tmp_path_factory.mktemp("finished"), patch)
        sides = [
            world.side("rollout", rollout__dtype=dtype, batch__size=size)
            for dtype in ("float32", "bfloat16")
            for size in (1, 2)
        ]
        plan = world.plan(*[(side, world.side("training")) for side in sides])
        report = world.run(plan)
        yield world, plan, report
