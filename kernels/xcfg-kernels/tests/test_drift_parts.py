"""The parts of the drift sweep that run no rank: inputs, references, differences, judgement, refusals."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from xcfg.errors import InvalidInput
from xcfg.plugin.registry import load_registry
from xcfg_kernels.drift.document import document
from xcfg_kernels.drift.entry import entry
from xcfg_kernels.drift.inputs import logits_file, written
from xcfg_kernels.drift.measure import differences, worst
from xcfg_kernels.drift.reference import Reference, reference
from xcfg_kernels.drift.spec import DriftSpec, Topology
from xcfg_kernels.reduction import ReductionSpec, Scheme

torch = pytest.importorskip("torch", reason="torch is not installed")

SPEC = DriftSpec(tp=(1, 2), cp=(1, 2), vocab_size=1024, rows=4)
BITS = runpy.run_path(str(Path(__file__).with_name("logprob_cases.py")))["bits"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_stored_logits_are_what_torch_rounds_to(dtype, tmp_path) -> None:
    made = written(SPEC, dtype, tmp_path)
    stored = torch.from_numpy(np.load(tmp_path / logits_file(dtype)))
    stored = stored.view(torch.bfloat16) if dtype == "bfloat16" else stored
    exact = torch.from_numpy(written(SPEC, "float32", tmp_path).logits)
    assert torch.equal(BITS(stored), BITS(exact.to(getattr(torch, dtype))))
    np.testing.assert_array_equal(stored.float().numpy(), made.logits)
    assert made.digest == written(SPEC, dtype, tmp_path).digest


def test_ties_round_to_even(tmp_path, monkeypatch) -> None:
    from xcfg_kernels.drift import inputs

    bits = np.array([[0x3F808000, 0x3F818000, 0x3F808001, 0xBF807FFF]], dtype=np.uint32)
    stored, held = inputs._rounded(bits.view(np.float32), "bfloat16")
    assert stored.tolist() == [[0x3F80, 0x3F82, 0x3F81, 0xBF80]]
    assert held.tolist() == [[1.0, 1.015625, 1.0078125, -1.0]]


def test_references(tmp_path) -> None:
    made = written(SPEC, "bfloat16", tmp_path)
    wide = torch.from_numpy(made.logits).double()
    exact, single = reference(made, "float64"), reference(made, "float32")
    np.testing.assert_allclose(exact.lse, torch.logsumexp(wide, dim=1).numpy(), rtol=1e-14)
    right = torch.log_softmax(wide, dim=1).gather(1, torch.from_numpy(made.targets)[:, None])[:, 0].numpy()
    np.testing.assert_allclose(exact.logprob, right, rtol=1e-13)
    assert 0 < np.abs(single.logprob - exact.logprob).max() < 3e-6
    np.testing.assert_array_equal(single.logprob, single.logprob.astype(np.float32))


def test_differences_by_hand() -> None:
    expected = np.array([-2.0, -4.0, 0.0, -8.0, -1.0])
    found = np.array([-2.5, -4.0, 0.0, -7.0, -1.25])
    assert differences(found, expected) == {
        "max_abs": 1.0,
        "p95_abs": pytest.approx(0.9),  # place 3.8 of 0 0 0.25 0.5 1
        "p99_abs": pytest.approx(0.98),
        "max_relative": 0.25,
        "mean_signed": pytest.approx(0.05),
        "values": 5,
    }
    assert differences(np.array([1.0]), np.array([0.0]))["max_relative"] is None


def test_the_worst_token_is_the_lowest_of_several() -> None:
    expected, found = np.array([-2.0, -4.0, -8.0]), np.array([-2.0, -4.5, -7.5])
    assert worst(found, expected, np.array([7, 8, 9]), first=16) == {
        "row": 17, "token": 8, "logprob": -4.5, "reference_logprob": -4.0, "dlogp": -0.5, "relative": 0.125,
    }  # fmt: skip


def by_hand(logprob_of_rank):
    """The document of one topology, TP 2 by CP 2, whose references are 0 at two rows with targets in both shards."""
    from xcfg_kernels.drift.inputs import Inputs

    spec, topology = DriftSpec(tp=(2,), cp=(2,), dtypes=("float32",), vocab_size=1024, rows=2), Topology(tp=2, cp=2)
    made = Inputs(
        dtype="float32", logits=np.zeros((2, 1024), np.float32), targets=np.array([3, 900]), digest="of inputs"
    )
    flat = np.array([-1.0, -2.0])
    references = tuple(Reference(name=name, lse=np.ones(2), logprob=flat) for name in ("float64", "float32"))
    ranks = [
        {"float32 lse": np.ones(1, np.float32), "float32 logprob": np.array([value], np.float32)}
        for value in logprob_of_rank
    ]
    contract = load_registry().contract("ws1")
    return document(spec, [entry(spec, topology, made, references, ranks, ["launch"])], [made], contract)


def test_ranks_and_owners() -> None:
    found = by_hand([-1.0, -1.0, -2.0 - 2**-18, -2.0 - 2**-18])
    (item,) = found["topologies"]
    assert found["status"] == item["status"] == "pass" and item["replicas_agree"]
    assert (item["worst"]["row"], item["worst"]["token"]) == (1, 900)
    assert (item["worst"]["cp_rank"], item["worst"]["owner_rank"], item["worst"]["dlogp"]) == (1, 3, -(2**-18))
    places = [(rank["tp_rank"], rank["cp_rank"], rank["rows"], rank["columns"]) for rank in item["ranks"]]
    assert places == [
        (0, 0, [0, 1], [0, 512]),
        (1, 0, [0, 1], [512, 1024]),
        (0, 1, [1, 2], [0, 512]),
        (1, 1, [1, 2], [512, 1024]),
    ]
    assert [rank["targets_owned"] for rank in item["ranks"]] == [1, 0, 0, 1]
    assert [rank["worst"]["owner_rank"] for rank in item["ranks"]] == [0, 0, 3, 3]
    assert [rank["dlogp"]["float64"]["max_abs"] for rank in item["ranks"]] == [0.0, 0.0, 2**-18, 2**-18]
    json.dumps(found, allow_nan=False)


def test_replicated_ranks_that_disagree_are_a_failure() -> None:
    found = by_hand([-1.0, -1.0 + 2**-20, -2.0, -2.0])
    assert found["status"] == "fail" and not found["topologies"][0]["replicas_agree"]


def test_beyond_the_contract_is_a_failure() -> None:
    limit = load_registry().contract("ws1").max_abs_dlogp["float32"]
    assert by_hand([-1.0, -1.0, -2.0 + 2 * limit, -2.0 + 2 * limit])["status"] == "fail"
    assert by_hand([-1.0, -1.0, -2.0 + limit / 2, -2.0 + limit / 2])["status"] == "pass"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tp": (3,)}, "1024 columns do not split into 3 equal shards"),
        ({"tp": (2, 2)}, r"--tp: degrees are whole numbers from 1, each once, not \[2, 2\]"),
        ({"cp": (0,)}, "--cp: degrees are whole numbers from 1"),
        ({"cp": (3,)}, "--rows: 4 rows do not split evenly over 3 context parallel ranks"),
        ({"dtypes": ("float64",)}, "--dtype: each of float32, bfloat16, float16 at most once"),
        ({"rows": 0}, "--rows: there is nothing to score in 0 rows"),
        ({"reduction": ReductionSpec(block=1000)}, "at tensor parallel degree 2: column 512 is a shard boundary"),
    ],
)
def test_sweeps_that_are_refused(fields, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        DriftSpec(**{"tp": (1, 2), "cp": (1, 2), "vocab_size": 1024, "rows": 4, **fields})


def test_every_fault_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        DriftSpec(tp=(1, 3, 5), cp=(1, 3), rows=64, vocab_size=1024, reduction=ReductionSpec(scheme=Scheme.ORDER_FREE))
    assert len(refused.value.faults) == 3
