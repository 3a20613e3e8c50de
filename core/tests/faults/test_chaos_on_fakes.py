"""Runs over a grid of 6 by 6 side configurations on fakes, killed at random points and resumed.

20 kills here and 1,000 in the full tier. Folder N is drawn from seed N, from 0 here and from 10,000 in the full tier.
It is killed up to four times and run to its end, two folders at a time. A kill takes some seconds; a test that takes
longer than its ``timeout`` mark fails.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from .chaos import Counts, Whole, chaos, undisturbed
from .place import Place

KILLS_A_FOLDER = 4
AT_ONCE = 2
GRID = {
    "mode": "product",
    "axes": {
        "rollout.dtype": ["bfloat16", "float32", "float16"],
        "rollout.scoring_path": ["forced_decode", "prefill"],
        "training.compute_dtype": ["bfloat16", "float32", "float16"],
        "batch.micro_size": [1, 2],
    },
    "baseline": {
        "rollout.dtype": "bfloat16",
        "rollout.scoring_path": "forced_decode",
        "training.compute_dtype": "bfloat16",
        "batch.micro_size": 1,
    },
    "rollout": {"scorer": "Unhurried"},
    "tokens": {"sample": {"prompts": "prompts.jsonl", "max_new_tokens": 4}},
}
OPTIONS = ("--jobs", 2)


def _place(root) -> Place:
    place = Place.make(root)
    (root / "prompts.jsonl").write_text('{"id": "p", "token_ids": [1, 2]}\n{"id": "q", "token_ids": [3]}\n')
    place.write("Unhurried", **GRID)
    return place


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Whole:
    found = undisturbed(_place(tmp_path_factory.mktemp("undisturbed") / "place"), *OPTIONS)
    assert (len(found.document["cases"]), found.sides) == (36, 12)
    return found


@pytest.mark.parametrize(
    ("first", "kills"),
    [
        pytest.param(0, 20, id="20-kills", marks=pytest.mark.timeout(900)),
        pytest.param(10_000, 1000, id="1000-kills", marks=[pytest.mark.full, pytest.mark.timeout(7200)]),
    ],
)
def test_nothing_is_lost_and_nothing_done_twice(first: int, kills: int, whole: Whole, tmp_path, capsys) -> None:
    def some(worker: int) -> Counts:
        counts, seed = Counts(), first + worker
        while counts.kills.total() < kills // AT_ONCE:
            chaos(_place(tmp_path / f"{seed}"), whole, seed, KILLS_A_FOLDER, counts, *OPTIONS)
            shutil.rmtree(tmp_path / f"{seed}")
            seed += AT_ONCE
        return counts

    with ThreadPoolExecutor(AT_ONCE) as pool:
        total = Counts.sum(pool.map(some, range(AT_ONCE)))
    with capsys.disabled():
        print(f"\nseeds from {first}: {total}")
    assert total.kills.total() >= kills
    assert {who for who, _ in total.kills} >= {"parent", "child"}
