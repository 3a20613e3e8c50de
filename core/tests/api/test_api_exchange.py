"""Parts of one batch held by several processes: the result of the whole on each of them, and no one left waiting."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from xcfg import compare_logprobs
from xcfg.errors import InvalidInput
from xcfg.model.status import Status

EXAMPLES = settings.default.max_examples


@pytest.fixture
def dealt(threads, contract):
    """Every rank's result where ``owners[i]`` holds row i; ``changed`` replaces options of some ranks."""

    def call(rows, owners, world, changed=None, **options):
        def one(rank, exchange):
            mine = [place for place, owner in enumerate(owners) if owner == rank]
            given = {name: [values[place] for place in mine] for name, values in rows.items()}
            own = {"dtype": "bf16", "contract": contract, **options, **given, **(changed or {}).get(rank, {})}
            return compare_logprobs(**own, rank=rank, exchange=exchange)

        return threads(world).run(one)

    return call


def named(ragged, **options):
    rollout, training, masks = ragged(**options)
    names = [f"s{place}" for place in range(len(rollout))]
    tokens = [np.arange(len(row)) + 50 * place for place, row in enumerate(rollout)]
    return {"rollout": rollout, "training": training, "mask": masks, "sequence_ids": names, "token_ids": tokens}


OWNERS = {
    "uneven": [0, 0, 0, 0, 0, 1, 2],
    "a rank without a sequence": [0, 2, 0, 2, 2, 0, 2],
    "a rank whose tokens are all masked": [0, 1, 2, 0, 2, 1, 1],  # rows 2 and 4: masked and empty
    "all on the last": [2] * 7,
    "in turn": [0, 1, 2, 0, 1, 2, 0],
}


@pytest.mark.parametrize("owners", OWNERS.values(), ids=list(OWNERS))
@pytest.mark.parametrize("drift", [0.01, 0.5])
def test_every_rank_has_the_result_of_the_whole(dealt, oracle, same, ragged, contract, owners, drift):
    rows = named(ragged, seed=4, drift=drift)
    whole = compare_logprobs(**rows, dtype="bf16", contract=contract)
    found = dealt(rows, owners, world=3)
    assert found[0] == found[1] == found[2]
    same(found[0].metrics, oracle(rows["rollout"], rows["training"], rows["mask"]))
    owner = owners[rows["sequence_ids"].index(whole.worst.sequence)]
    assert found[0].worst == evolve(whole.worst, rollout_rank=owner, train_rank=owner)
    for name in ("status", "reason", "active_tokens", "threshold", "limits", "clip_interval", "contract", "assumed"):
        assert getattr(found[0], name) == getattr(whole, name), name
    for name in ("p95_abs_dlogp", "p99_abs_dlogp", "max_abs_dlogp", "frac_unequal", "ratio0_min", "ratio0_max"):
        assert found[0].metrics[name] == whole.metrics[name]


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(st.data())
def test_any_partition(threads, contract, ragged, oracle, data):
    world = data.draw(st.integers(2, 4))
    rows = named(ragged, seed=data.draw(st.integers(0, 50)), rows=9, drift=0.2)
    owners = data.draw(st.lists(st.integers(0, world - 1), min_size=9, max_size=9))

    def one(rank, exchange):
        mine = [place for place, owner in enumerate(owners) if owner == rank]
        given = {name: [values[place] for place in mine] for name, values in rows.items()}
        return compare_logprobs(**given, dtype="bf16", contract=contract, rank=rank, exchange=exchange)

    found = threads(world).run(one)
    assert all(item == found[0] for item in found)
    expected = oracle(rows["rollout"], rows["training"], rows["mask"])
    for name in ("max_abs_dlogp", "p95_abs_dlogp", "p99_abs_dlogp"):
        assert found[0].metrics[name] == expected[name]
    assert found[0].metrics["mean_abs_dlogp"] == pytest.approx(expected["mean_abs_dlogp"], rel=1e-12)


def test_nothing_active_on_any_rank(dealt, ragged):
    rows = named(ragged)
    rows["mask"] = [np.zeros(len(row), bool) for row in rows["mask"]]
    for found in (dealt(rows, OWNERS["in turn"], world=3), dealt({name: [] for name in rows}, [], world=2)):
        assert {item.status for item in found} == {Status.ZERO_ACTIVE_TOKENS}


def test_a_nan_on_one_rank_is_named_on_all(dealt, ragged):
    rows = named(ragged)
    rows["sequence_ids"][5] = "Folge 5 \u00fc \U0001f600"
    rows["training"][5][3], rows["mask"][5][3] = np.nan, True
    found = dealt(rows, OWNERS["uneven"], world=3)
    assert {item.status for item in found} == {Status.NON_FINITE}
    place = "in sequence 'Folge 5 \u00fc \U0001f600' at position 3 on rank 1"
    assert {item.reason for item in found} == {f"1 active logprobs are not finite, first training nan {place}"}
    assert {item.active_tokens for item in found} == {sum(int(row.sum()) for row in rows["mask"])}


def test_the_graver_defect_is_named_though_a_lower_rank_has_the_lesser(dealt, ragged):
    rows = named(ragged)
    rows["rollout"][0][0], rows["mask"][0][0] = np.nan, True
    rows["rollout"][6][1], rows["mask"][6][1] = 0.75, True
    found = dealt(rows, OWNERS["uneven"], world=3)
    assert {item.status for item in found} == {Status.INVALID_ARTIFACT}
    reason = "1 active logprobs are above 0.001, first rollout 0.75 in sequence 's6' at position 1 on rank 2"
    assert {item.reason for item in found} == {reason}


def test_one_memory_on_one_rank_is_refused_on_all(dealt, ragged):
    rows = named(ragged)
    rows["training"][5] = rows["rollout"][5]
    found = dealt(rows, OWNERS["uneven"], world=3)
    assert {item.status for item in found} == {Status.INVALID_ARTIFACT}
    reason = "both sides are the same logprobs in memory, not two measurements, on rank 1"
    assert {item.reason for item in found} == {reason}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mask": [[True]]}, "mask: mask has 1 rows of 1 tokens in all"),
        ({"dtype": None}, "dtype: the name of a dtype is needed"),
        ({"contract": "absent.json"}, "absent.json: the tolerance contract cannot be read"),
        ({"rollout": [object()]}, "rollout: "),
    ],
)
def test_a_wrong_argument_on_one_rank_raises_on_all(dealt, ragged, wrong, said):
    found = dealt(named(ragged), OWNERS["uneven"], world=3, changed={1: wrong})
    assert {type(item) for item in found} == {InvalidInput}
    assert str(found[1]).startswith(said)
    assert str(found[0]) == str(found[2]) == f"group: rank 1: {found[1]}"


def test_an_error_of_any_kind_is_told_to_the_others(threads, ragged, contract):
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise MemoryError

    def one(rank, exchange):
        rollout = Broken() if rank == 0 else np.full(3, -1.0)
        return compare_logprobs(rollout, np.full(3, -2.0), dtype="bf16", rank=rank, exchange=exchange)

    first, second = threads(2).run(one)
    assert isinstance(first, MemoryError)
    assert isinstance(second, InvalidInput)
    assert str(second) == "group: rank 0: MemoryError"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("dtype", "float32", "dtype: every rank must give the same dtype, got 'bfloat16' on rank 0, 'float32' on"),
        ("contract", None, "contract: every rank must give the same contract"),
        ("clip_range", (0.5, 1.5), "clip_range: every rank must give the same clip_range, got [0.75, 1.25] on rank 0"),
    ],
)
def test_other_terms_on_one_rank_raise_on_all(dealt, ragged, name, value, said):
    found = dealt(named(ragged), OWNERS["uneven"], world=3, changed={1: {name: value}})
    assert {type(item) for item in found} == {InvalidInput}
    assert len({str(item) for item in found}) == 1
    assert str(found[0]).startswith(said)


def test_a_finding_on_one_rank_reaches_all_with_its_rank(dealt):
    rng = np.random.default_rng(2)
    rollout = [-rng.exponential(1, 30) - 0.1 for _ in range(4)]
    training = [row - 0.01 for row in rollout]
    rollout[3][4:8] = 0.0
    found = dealt({"rollout": rollout, "training": training}, [0, 0, 1, 1], world=3)
    assert found[0] == found[1] == found[2]
    (finding,) = [item for item in found[0].findings if item.rule == "exact_zero_logprobs"]
    assert (finding.evidence["rank"], finding.evidence["first"]["sequence"]) == (1, "1")
    assert (finding.evidence["side"], finding.evidence["runs"], finding.evidence["tokens"]) == ("rollout", 1, 4)


def test_a_finding_that_all_ranks_have_is_said_once(dealt):
    rollout = [np.array([-1.0, -2.0]), np.array([-3.0])]
    training = [np.array([-1.0, -1e300]), np.array([-3.0])]
    found = dealt({"rollout": rollout, "training": training}, [0, 1], world=2)
    (finding,) = [item for item in found[1].findings if item.rule == "metric_overflow"]
    assert "rank" not in finding.evidence
    assert found[0] == found[1]


def test_unnamed_sequences_are_told_apart_by_their_rank(dealt):
    rollout = [np.array([-1.0]), np.array([-1.0]), np.array([-1.0])]
    training = [np.array([-1.0]), np.array([-1.0]), np.array([-3.0])]
    found = dealt({"rollout": rollout, "training": training}, [0, 0, 1], world=2)
    assert [(item.worst.sequence, item.worst.rollout_rank) for item in found] == [("0", 1)] * 2


def test_of_equally_bad_tokens_on_several_ranks_the_lowest_id_is_named(dealt):
    rows = {"rollout": [np.array([-1.0, -1.0])] * 3, "training": [np.array([-1.0, -3.0])] * 3}
    rows["sequence_ids"] = ["b", "z", "a"]
    for owners in ([0, 1, 2], [2, 1, 0], [1, 1, 0]):
        assert {item.worst.sequence for item in dealt(rows, owners, world=3)} == {"a"}
