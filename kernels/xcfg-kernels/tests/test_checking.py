"""``xcfg backends check``: sound backends pass, and each kind of unsound one fails the row that is its own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from xcfg.cli.entry import main  # noqa: E402
from xcfg.model.operator_check import CheckReport, CheckRequest  # noqa: E402
from xcfg.plugin.registry import load_registry  # noqa: E402
from xcfg_kernels.checking import check  # noqa: E402

CONTRACT = load_registry().contract("ws1")
BACKEND = """
from contextlib import contextmanager
import torch
from xcfg.model.capability import Supported, Unsupported
from xcfg.model.kernel import BoundKernel

class Own:
    def probe(self, request):
        return Supported() if request.dtype != "float16" else Unsupported("no float16 here")

    @contextmanager
    def bind(self, request):
        yield self.score

    def identify(self, bound):
        return BoundKernel(backend="own", concrete="own.score", build="1")

    def score(self, logits, targets):
        wide = logits.double() if not SPOIL == "coarse" else logits.double() * (1 + 1e-4)
        scored = torch.log_softmax(wide, 1).gather(1, targets[:, None])[:, 0]
        if SPOIL == "maximum":  # is not subtracted
            scored = logits.gather(1, targets[:, None])[:, 0] - logits.float().exp().sum(1).log()
        if SPOIL == "batch":
            scored = scored + 1e-7 * len(targets)
        if SPOIL == "constant":
            return scored.detach().float()
        if SPOIL == "threads":
            scored = scored + 1e-6 * torch.get_num_threads()
        if SPOIL == "gradient":
            scored = 2 * scored - scored.detach()
        if SPOIL == "nan":
            scored = scored * float("nan")
        return scored.float()
"""


@pytest.fixture
def own(tmp_path, monkeypatch) -> Callable[[str], CheckReport]:
    monkeypatch.syspath_prepend(str(tmp_path))

    def checked(spoil: str) -> CheckReport:
        name = f"own_{spoil or 'sound'}"
        (tmp_path / f"{name}.py").write_text(f"SPOIL = {spoil!r}\n{BACKEND}")
        return check(
            CheckRequest(
                operator="selected_logprob",
                backend=f"{name}:Own",
                dtypes=["float32", "float16"],
                rows=5,
                vocab_size=97,
                contract=CONTRACT,
            )
        )

    return checked


def failed(report: CheckReport) -> set[tuple[str, str]]:
    return {(row.row, row.case) for row in report.rows if row.passed is False}


def test_a_sound_backend_passes_every_row(own) -> None:
    report = own("")
    assert not failed(report)
    assert [row.row for row in report.rows].count("forward") == 5
    assert {row.case for row in report.rows if row.row == "invariance"} == {
        "batches of 1",
        "other order of rows",
        "beside larger rows",
        "run to run",
        "1 and 2 threads",
    }
    assert report.kernels["float32"].concrete == "own.score"
    assert report.refused == {"float16": "no float16 here"}
    assert report.costs[0].seconds > 0


@pytest.mark.parametrize(
    ("spoil", "rows"),
    [
        ("batch", {("invariance", "batches of 1"), ("invariance", "beside larger rows")}),
        ("threads", {("invariance", "1 and 2 threads")}),
        ("gradient", {("gradient", "ordinary logits")}),
        ("maximum", {("forward", "logits far from zero")}),
    ],
)
def test_each_kind_of_fault_fails_its_row(own, spoil, rows) -> None:
    assert failed(own(spoil)) == rows


def test_a_wrong_value_fails_forward_by_its_size(own) -> None:
    report = own("coarse")
    assert ("forward", "ordinary logits") in failed(report)
    worst = next(row.worst for row in report.rows if row.case == "ordinary logits" and row.row == "forward")
    assert 1e-4 < worst < 1e-2  # logprobs of about -10, their logits off by a ten-thousandth


def test_nan_is_within_no_limit(own) -> None:
    report = own("nan")
    assert {row for row, _ in failed(report)} >= {"forward", "gradient"}
    assert {row.worst for row in report.rows if row.row == "forward"} == {None}  # JSON has no NaN


def test_no_gradient_is_told_and_not_judged(own) -> None:
    (row,) = (row for row in own("constant").rows if row.row == "gradient")
    assert row.passed is None and row.limit == "it has no gradient"


def called(capfd, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as leaving:
        main(["backends", "check", *arguments])
    return (int(leaving.value.code or 0), *capfd.readouterr())


SMALL = ("--rows", "4", "--vocab-size", "120")


@pytest.mark.parametrize("name", ["production", "reference", "selected_logprob/deterministic"])
def test_the_projects_own_backends_pass(capfd, name) -> None:
    code, out, _ = called(capfd, name, *SMALL, "--json")
    document = json.loads(out)
    assert (code, document["status"]) == (0, "pass")
    assert document["contract"]["id"] == "ws1"
    assert {row["dtype"] for row in document["rows"]} == {"float32", "bfloat16", "float16"}


def test_options_reach_the_backend(capfd) -> None:
    code, out, _ = called(
        capfd, "deterministic", *SMALL, "--dtype", "float32", "--option", "scheme=order_free", "--json"
    )
    assert code == 0
    assert "order_free" in json.loads(out)["kernels"]["float32"]["concrete"]
    code, out, _ = called(capfd, "deterministic", *SMALL, "--option", "shceme=order_free")
    assert code == 8 and "unknown option 'shceme'" in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("determinist",), 2, "deterministic"),
        (("selected_logprob/gone",), 4, "gone"),
        (("production", "--rows", "1"), 2, "--rows"),
        (("production", "--option", "chunk_rows"), 2, "NAME=VALUE"),
        (("production", "--contract", "gone"), 4, "gone"),
        (("fake_exact",), 8, "brings no check"),
    ],
)
def test_bad_input_is_told(capfd, arguments, code, said) -> None:
    found = called(capfd, *arguments)
    assert found[0] == code
    assert said in found[1] + found[2]
