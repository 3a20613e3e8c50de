import psutil
import pytest

from xcfg.model.status import Status

pytest.importorskip("torch")  # brings the launcher; neither core nor these ranks import it


def test_ranks_are_merged_and_a_lost_one_is_never_a_result(world):
    good, lost = (world.side("training", name, training__world_size=2) for name in ("Elastic", "ElasticLost"))
    report = world.run(world.plan((good, lost)), timeout=120.0)
    run = report.sides[good.digest()]
    assert run.failure is None
    result = run.result
    assert result.expected_ranks == 2
    assert [info.rank for info in result.ranks] == [0, 1]
    # rank 0 scored sequence a, rank 1 sequence b
    assert result.samples.sequence.tolist() == [0, 1]
    assert result.samples.rank.tolist() == [0, 1]
    assert result.provenance.knobs["training.world_size"].observed == 2
    assert sorted(run.measured.peak_rss) == ["0", "1"]
    names = {path.parent.name for path in (run.path / "logs").rglob("*.log")}
    assert {"0", "1"} <= names or names == {"logs"}  # ranks that said nothing have no part
    logs = world.out / "launches" / "0001" / "logs"
    assert len(list(logs.rglob("attempt_0/*/stderr.log"))) == 2

    failure = report.sides[lost.digest()].failure
    assert failure.status == Status.SCORER_ERROR
    assert not [
        item for item in psutil.process_iter(["cmdline"]) if str(world.out) in " ".join(item.info["cmdline"] or ())
    ]
