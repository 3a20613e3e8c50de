"""The faulty scorers as a plugin; the fakes' materializers apply to all of them."""

from attrs import evolve

from xcfg.model.scorer import Launch, Role, ScorerDescriptor
from xcfg.plugin import hookimpl
from xcfg.testing.descriptors import MATERIALIZERS

SINGLE = {
    "faulty_processes": (
        *("ExitsInOpen", "KilledInOpen", "ExitsInScore", "LeavesInScore", "HangsInOpen", "HangsInScore"),
        *("HangsInClose", "Stubborn", "Daemon", "DaemonAndHang", "Floods", "FillsDisk", "Waits", "Unhurried"),
    ),
    "faulty_artifacts": ("HalfTensor", "KilledBetween", "OtherShape", "OtherDtype", "Pickled", "WrongWeights"),
    "faulty_ranks": ("RankTwice", "OutOfOrder"),
}
ELASTIC = ("Shared", "SharedLost", "SharedTwice", "SharedLate")


def _scorer(cls, module, **changes):
    changes = {"roles": (Role.ROLLOUT, Role.TRAINING), "samples": True, "forces": True, "fake": True, **changes}
    return ScorerDescriptor(id=cls, summary=cls, target=f"{module}:{cls}", **changes)


SCORERS = [
    *(_scorer(cls, module) for module, classes in SINGLE.items() for cls in classes),
    *(
        _scorer(cls, "faulty_ranks", launch=Launch.ELASTIC, world_size_knob="training.world_size", requires=("torch",))
        for cls in ELASTIC
    ),
]


@hookimpl
def xcfg_scorers():
    return SCORERS


@hookimpl
def xcfg_materializers():
    known = [item for item in MATERIALIZERS if item.scorer == "fake"]
    made = [evolve(item, scorer=scorer.id) for scorer in SCORERS for item in known]
    return [evolve(item, values=(), reason="") if item.knob == "training.world_size" else item for item in made]
