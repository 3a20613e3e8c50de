"""Faults of what is in the folder: tampering, links, foreign names, and very many cases."""

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from .modules.faulty_artifacts import Bomb
from .place import EXPERIMENT, Done, Place
from .table import Fault

AGAIN = {"status": "pass", "code": 0, "kept": "3 sealed"}
"""One side is executed once more: what was there stays as it is."""
RUN = ("run", "experiment.json", "--allow-fake", "--out", "out", "--json")


@frozen
class Spoiled:
    """Run, spoil one sealed attempt, run again: that side alone gets a new attempt and the old one is not touched."""

    spoil: Callable[[Path], object]

    def __call__(self, place: Place) -> Done:
        place.write()
        assert place.run().code == 0
        attempt = next(place.out.glob("sides/*/attempt-0001"))
        self.spoil(attempt)
        before = _content(attempt)
        done = place.run()
        assert done.document["engines"]["constructed"] == 1, done.document
        assert _content(attempt) == before
        assert not (place.root / "unpickled").exists() and not (place.home / "unpickled").exists()
        return done


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _misread(attempt: Path) -> None:
    """One bit of the tensors' digest."""
    data = bytearray((attempt / "COMPLETE").read_bytes())
    data[data.index(b'"samples.safetensors"') + len('"samples.safetensors": "') + 1] ^= 1
    (attempt / "COMPLETE").write_bytes(bytes(data))


def resealed(attempt: Path) -> None:
    """Write the digests again, as one who tampers would."""
    seal = attempt / "COMPLETE"
    content = json.loads(seal.read_text())
    content["files"] = {name: hashlib.sha256((attempt / name).read_bytes()).hexdigest() for name in content["files"]}
    seal.write_text(json.dumps(content))


def _pickled(attempt: Path) -> None:
    (attempt / "samples.safetensors").write_bytes(pickle.dumps(Bomb()))
    resealed(attempt)


def _linked(attempt: Path) -> None:
    """The same content, but elsewhere, where it may change."""
    elsewhere = attempt.parents[3] / "elsewhere"
    shutil.move(attempt / "samples.safetensors", elsewhere)
    (attempt / "samples.safetensors").symlink_to(elsewhere)


def _dangling(attempt: Path) -> None:
    _linked(attempt)
    (attempt / "samples.safetensors").resolve().unlink()


def _climbing(attempt: Path) -> None:
    seal = attempt / "COMPLETE"
    content = json.loads(seal.read_text())
    outside = attempt.parents[3] / "model/config.json"
    name = os.path.relpath(outside, attempt)
    seal.write_text(
        json.dumps({**content, "files": {**content["files"], name: hashlib.sha256(outside.read_bytes()).hexdigest()}})
    )


@frozen
class Shown:
    """Run, spoil something, and let another command read the folder."""

    spoil: Callable[[Path], object]
    command: tuple[str, ...] = ("report", "out", "--json")

    def __call__(self, place: Place) -> Done:
        place.write()
        assert place.run().code == 0
        self.spoil(place.out)
        return place.xcfg(*self.command)


def _sample(out: Path) -> Path:
    return next(out.glob("sides/*/attempt-0001/samples.safetensors"))


def _renamed(out: Path) -> None:
    """A plan whose case is named like a path."""
    plan = json.loads((out / "plan.json").read_text())
    case = plan["cases"][0]["id"]
    (out / "plan.json").write_text((out / "plan.json").read_text().replace(case, "../../escaped"))


def _climbing_name(place: Place) -> Done:
    place.write("fake", name="../escaped")
    command = place.command()
    del command[command.index("--out") : command.index("--out") + 2]
    done = place.call(command)
    assert not (place.root / "escaped").exists()
    return done


def _escaped(spoil: Callable[[Path], object], *command: str) -> Callable[[Place], Done]:
    def do(place: Place) -> Done:
        done = Shown(spoil, command)(place)
        assert not list(place.root.rglob("*escaped*"))
        return done

    return do


def _strange_ids(place: Place) -> Done:
    """Sequences named like paths: an id is data and never part of a path."""
    place.write()
    text = (place.root / "tokens.jsonl").read_text()
    (place.root / "tokens.jsonl").write_text(text.replace('"a"', '"../../escaped"').replace('"b"', '"/etc/passwd"'))
    done = place.run()
    assert not list(place.root.rglob("*escaped*"))
    return done


def _many(place: Place) -> Done:
    """10,000 cases of 100 by 100 side runs on two engines; the second run makes none."""
    values = range(1, 101)
    axes = {"sampling.temperature": [1 + value / 1000 for value in values], "batch.micro_size": list(values)}
    place.write(
        "fake", mode="product", axes=axes, baseline={**EXPERIMENT["baseline"], **{k: v[0] for k, v in axes.items()}}
    )
    assert place.run("--max-cases", 10_000).code == 0
    done = place.run("--max-cases", 10_000)
    assert done.document["engines"] == {"distinct": 2, "constructed": 0, "reused_from_disk": 2}
    assert len({case["id"] for case in done.document["cases"]}) == 10_000
    return done


ROWS = (
    Fault(
        name="one bit of the tensors is flipped",
        how="in a sealed attempt; run again",
        do=Spoiled(lambda attempt: flip(attempt / "samples.safetensors")),
        says=r"refused attempt 1 of SIDE: .*samples.safetensors: the content is not what was sealed",
        **AGAIN,
    ),
    Fault(
        name="one bit of the seal is flipped",
        how="in a digest of `COMPLETE`; run again",
        do=Spoiled(_misread),
        says="refused attempt 1 of SIDE: .*samples.safetensors: the content is not what was sealed",
        **AGAIN,
    ),
    Fault(
        name="one bit flipped, then a report",
        how="in a sealed attempt; `xcfg report`",
        do=Shown(lambda out: flip(_sample(out))),
        status="invalid_artifact",
        code=6,
        kept="2 sealed",
        says="samples.safetensors[^|]*not what was sealed|the content is not what was sealed.*",
    ),
    Fault(
        name="one bit of the tokens is flipped",
        how="in the frozen batch; run again: tokens are never made anew",
        do=Shown(lambda out: flip(out / "tokens/batch.jsonl"), RUN),
        status="error",
        code=6,
        kept="2 sealed",
        says="out/tokens/batch.jsonl the content is not what was sealed",
    ),
    Fault(
        name="a sealed file is a symlink",
        how="to the same content outside of the folder; run again",
        do=Spoiled(_linked),
        says=r"refused attempt 1 of SIDE: .*samples.safetensors: a link stands in the place of a sealed file",
        **AGAIN,
    ),
    Fault(
        name="a sealed file is a dangling symlink",
        how="to a file that is gone; run again",
        do=Spoiled(_dangling),
        says=r"refused attempt 1 of SIDE: .*samples.safetensors: a link stands in the place of a sealed file",
        **AGAIN,
    ),
    Fault(
        name="`../` in a seal",
        how="`COMPLETE` names a file outside of the folder; run again",
        do=Spoiled(_climbing),
        says=r"refused attempt 1 of SIDE: .*a sealed file is missing",
        **AGAIN,
    ),
    Fault(
        name="`../` in the experiment's name",
        how="`name: ../escaped` and no `--out`",
        do=_climbing_name,
        status="error",
        code=2,
        kept="nothing",
        says="name.*",
    ),
    Fault(
        name="`../` in a case's id",
        how="in `plan.json` of the folder; run again",
        do=_escaped(_renamed, *RUN),
        status="error",
        code=2,
        kept="2 sealed",
        says=r"case SIDE differs from case \.\./\.\./escaped of an earlier run",
    ),
    Fault(
        name="`../` in a sequence's id",
        how="in the recorded tokens",
        do=_strange_ids,
        status="pass",
        code=0,
        kept="2 sealed",
    ),
    Fault(
        name="a sealed artifact is a pickle",
        how="tensors replaced and the seal made to match; run again: it is never loaded",
        do=Spoiled(_pickled),
        says=r"refused attempt 1 of SIDE: .*unusable content",
        **AGAIN,
    ),
    Fault(
        name="a folder of 10,000 cases",
        how="100 by 100 side runs; run again",
        do=_many,
        status="pass",
        code=0,
        kept="200 sealed",
        full=True,
    ),
)
