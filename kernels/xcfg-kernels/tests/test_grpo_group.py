"""The GRPO loss on real ranks has the bits its order declares, in the loss, in every sequence and in the gradient."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

SCRIPT = Path(__file__).with_name("grpo_ranks.py")
RANKS = runpy.run_path(str(SCRIPT))
CASES, REDUCTIONS = RANKS["CASES"], RANKS["REDUCTIONS"]
CONTRACT = json.loads(files("xcfg.builtin").joinpath("data/tolerance-ws1.json").read_text())
SUMS, GRADIENTS = CONTRACT["forward"]["reduction"]["float32"], CONTRACT["gradient"]["logprob"]["float32"]


@pytest.fixture(scope="module", params=[2, 4])
def launched(request, tmp_path_factory):
    """The world, and the arrays and refusals of each of its ranks."""
    world, folder = request.param, tmp_path_factory.mktemp("gloo")
    commands = [[sys.executable, str(SCRIPT), str(folder), str(rank), str(world)] for rank in range(world)]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    try:
        errors = [process.communicate(timeout=550)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * world, errors
    arrays = [dict(np.load(folder / f"{rank}.npz")) for rank in range(world)]
    return world, arrays, [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


def whole_gradient(arrays, key: str, tp: int, cp: int, dp: int, layout_of) -> np.ndarray:
    """The gradients of all ranks as bits (S, T, V)."""
    made = np.full((8, 12, 64), -1, dtype=np.int32)
    for rank, found in enumerate(arrays):
        layout, columns = layout_of(rank // tp % cp, rank // tp // cp), rank % tp * (64 // tp)
        place = np.ix_(layout.dp_rows[layout.dp_rank], layout.positions[layout.cp_rank], range(64 // tp))
        made[:, :, columns : columns + 64 // tp][place] = found[key]
    return made


@cache
def alone(rows, title: str):
    """One process with these microbatches: loss, sequences and gradient, as bits, rows in order of their number."""
    flat = RANKS["LossLayout"](microbatches=[rows], positions=[range(12)])
    loss, sequences, gradient = RANKS["outcome"](CASES["tensors"](RANKS["SEED"]), flat, REDUCTIONS[title])
    return loss, sequences, gradient[np.argsort([row for own in rows for row in own])]


def microbatches(layout):
    """Those of all ranks, behind each other."""
    return tuple(own for rank in layout.microbatches for own in rank)


def floats(bits: np.ndarray) -> np.ndarray:
    return bits.view(np.float32)


def test_the_bits_of_one_process(launched) -> None:
    world, arrays, _ = launched
    compared, found = 0, CASES["tensors"](RANKS["SEED"])
    for name, tp, (cp, dp), layout_of in RANKS["layouts"](world):
        for title, reduction in REDUCTIONS.items():
            loss, sequences, gradient = alone(microbatches(layout_of(0, 0)), title)
            key = f"{name}|{title}|0|"
            merged = whole_gradient(arrays, f"{key}gradient", tp, cp, dp, layout_of)
            np.testing.assert_array_equal(merged, gradient, err_msg=key)
            for rank in arrays:
                if reduction.order == "global_positions" or cp == dp == 1:
                    np.testing.assert_array_equal(rank[f"{key}loss"], loss, err_msg=key)
                    np.testing.assert_array_equal(rank[f"{key}sequences"], sequences, err_msg=key)
                np.testing.assert_allclose(floats(rank[f"{key}sequences"]), floats(sequences), **SUMS)
                np.testing.assert_allclose(floats(rank[f"{key}loss"]), floats(loss), **SUMS)
            groups = microbatches(layout_of(0, 0))
            asked = {"kl_weight": 0.05, "constant": reduction.constant}
            asked["groups"] = groups if reduction.count == "microbatch" else None
            exact, numbers = CASES["oracle"](found, reduction.normaliser, **asked)
            np.testing.assert_allclose(floats(arrays[0][f"{key}sequences"]), numbers, **SUMS)
            np.testing.assert_allclose(floats(arrays[0][f"{key}loss"]), exact, **SUMS)
            compared += 1
    print(f"{compared} pairs of layout and reduction on {world} ranks")
    assert compared == {2: 6, 4: 13}[world] * 12


def test_microbatches_and_layouts_under_a_global_count_change_no_bit(launched) -> None:
    world, arrays, _ = launched
    whole = (tuple(range(8)),)
    for title, reduction in REDUCTIONS.items():
        if reduction.order != "global_positions" or reduction.count != "global":
            continue
        loss, sequences, gradient = alone(whole, title)
        for name, tp, (cp, dp), layout_of in RANKS["layouts"](world):
            key = f"{name}|{title}|0|"
            for rank in arrays:
                np.testing.assert_array_equal(rank[f"{key}loss"], loss)
                np.testing.assert_array_equal(rank[f"{key}sequences"], sequences)
            merged = whole_gradient(arrays, f"{key}gradient", tp, cp, dp, layout_of)
            np.testing.assert_array_equal(merged, gradient)


def test_ranks_agree_and_repeat(launched) -> None:
    world, arrays, _ = launched
    repeated = 0
    for key, value in arrays[0].items():
        name, title, run, kind = key.split("|")
        for rank in arrays:
            if kind != "gradient":
                np.testing.assert_array_equal(rank[key], value)
            if run == "1":
                np.testing.assert_array_equal(rank[key], rank[f"{name}|{title}|0|{kind}"])
                repeated += 1
    assert repeated == {2: 3, 4: 7}[world] * 12 * 3 * world


def test_what_does_not_fit_is_refused_on_every_rank(launched) -> None:
    world, _, refusals = launched
    for rank, said in enumerate(refusals):
        wrong = 0 if rank == 1 else 1
        assert f"data parallel rank {wrong} declares another layout" in said["another reduction on rank 1"], said
        assert f"this is rank {rank} of {world} in the group, rank {(rank + 1) % world}" in said["another rank"]
        assert f"this is rank {rank} of {world} in the group, rank 0 of 1" in said["the group of another axis"]
