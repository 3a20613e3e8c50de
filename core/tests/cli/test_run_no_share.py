"""``xcfg run --no-share``: every case on engines of its own gives the result group that sharing gives."""

from pathlib import Path

AXES = {"rollout.dtype": ["bfloat16", "float32"], "batch.size": [8, 1]}


def result_group(cube: Path) -> dict[str, bytes]:
    """Every file of the cube but those of ``measured``."""
    files = (path for path in cube.rglob("*") if path.is_file())
    return {
        path.relative_to(cube).as_posix(): path.read_bytes()
        for path in files
        if path.relative_to(cube).parts[0] != "measured"
    }


def test_the_result_group_is_the_same_bits(xcfg, write):
    experiment = write(axes=AXES, cases=[], slices={})
    outs = {name: experiment.parent / name for name in ("shared", "alone")}
    documents = {}
    for name, extra in (("shared", ()), ("alone", ("--no-share",))):
        done = xcfg("-q", "run", experiment, "--allow-fake", "--out", outs[name], "--json", *extra)
        documents[name] = done.document
        assert done.code == 0
    # three cases: production, batch size 1 (both sides), float32 (rollout); the sampler is an engine of its own
    assert documents["shared"]["engines"] == {"distinct": 3, "constructed": 3, "reused_from_disk": 0}
    assert documents["alone"]["engines"] == {"distinct": 3, "constructed": 2 * 3 + 1, "reused_from_disk": 0}
    groups = {name: result_group(out / "cube.zarr") for name, out in outs.items()}
    assert groups["shared"] and groups["shared"] == groups["alone"]
    # production's training side is that of float32 as well: one attempt for each
    attempts = sorted(len(list(side.glob("attempt-*/COMPLETE"))) for side in outs["alone"].glob("sides/*"))
    assert attempts == [1, 1, 1, 1, 2]
    # a later run that shares takes the newest attempts
    later = xcfg("-q", "run", experiment, "--allow-fake", "--out", outs["alone"], "--json").document
    assert later["engines"]["constructed"] == 0
    assert result_group(outs["alone"] / "cube.zarr") == groups["shared"]
