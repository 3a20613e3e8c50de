"""``xcfg report --html`` through the command line: commands that execute one case, answers, cost, errors."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex

import pytest

from .own_contract import write_contract


def data(path):
    """What the page was given, from its script block."""
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1])


def words(command, experiment):
    """What a shell makes of the command on the page, with the experiment for its placeholder."""
    program, *arguments = shlex.split(command)
    assert program == "xcfg" and arguments[:2] == ["run", "EXPERIMENT"]
    return [str(experiment) if word == "EXPERIMENT" else word for word in arguments]


@pytest.fixture
def page(xcfg, tmp_path):
    """Executes an experiment and gives the data of its page, beside its document."""

    def made(*arguments):
        out, path = tmp_path / "out", tmp_path / "report.html"
        done = xcfg("-q", *arguments, "--allow-fake", "--out", out, "--json").document
        xcfg("report", out, "--html", path)
        return data(path), done

    return made


def test_the_command_of_each_case_plans_it_alone_and_the_cost_is_told(xcfg, write, page) -> None:
    experiment = write(mode="product")
    found, done = page("run", experiment)
    assert {case["name"] for case in found["cases"]} == {"baseline", "", "fp32-both"}
    for case in found["cases"]:
        planned = xcfg(*words(case["reproduce"], experiment), "--dry-run", "--json").document
        assert [item["id"] for item in planned["cases"]] == [case["id"]]
    spent, engines = found["spent"], done["engines"]
    assert (spent["distinct"], spent["constructed"]) == (engines["distinct"], engines["constructed"])
    assert spent["constructed"] > 0
    assert (spent["wall_s"], spent["engine_s"]) == (done["wall_s"], done["engine_s"])


def test_the_command_works_where_the_run_was_a_smoke_test_and_axes_are_linked(xcfg, write, page) -> None:
    linked = {"both": {"rollout.dtype": ["bfloat16", "float32"], "training.compute_dtype": ["bfloat16", "float32"]}}
    experiment = write(axes={"batch.micro_size": [None, 2]}, linked=linked, mode="product", slices={})
    found, _ = page("run", experiment, "--limit", "9")
    assert len(found["cases"]) == 4
    for case in found["cases"]:
        planned = xcfg(*words(case["reproduce"], experiment), "--dry-run", "--json").document
        assert ([item["id"] for item in planned["cases"]], planned["limited"]) == ([case["id"]], 9)


def test_a_search_is_shown_with_its_ladder_sets_and_proof(xcfg, experiment, page, tmp_path) -> None:
    path = experiment(contract=write_contract(tmp_path, 1e-6))
    found, done = page("search", path)
    told = found["explained"]
    assert (told["level"], told["word"]) == (done["level"], done["word"])
    assert told["minimal_sets"] == [", ".join(names) for names in done["minimal_sets"]] != []
    assert len(told["proof"]) == len(done["proof"]) > 1
    assert found["spent"]["constructed"] == done["engines"]["constructed"] > 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.search(rf'<li aria-current="step"><b>{done["level"]}</b>', text)
    assert text.count('aria-current="step"') == 1
    for case in found["cases"][1:3]:  # made by the search: no axis and no name of the file selects them
        planned = xcfg(*words(case["reproduce"], path), "--dry-run", "--json").document
        assert [item["id"] for item in planned["cases"]] == [case["id"]]


def test_no_run_no_folder_no_name_that_fits(xcfg, write, tmp_path) -> None:
    out = tmp_path / "out"
    xcfg("-q", "run", write(), "--allow-fake", "--out", out)
    (tmp_path / "here").mkdir()
    for folder, html in (
        (tmp_path / "nothing", tmp_path / "here/page.html"),
        (out, tmp_path / "none/page.html"),
        (out, tmp_path / "here"),
        (out, tmp_path / "here" / f"{'n' * 300}.html"),
    ):
        done = xcfg("report", folder, "--html", html, "--json")
        assert (done.code, json.loads(done.out)["status"]) == (2, "error"), html
    assert list((tmp_path / "here").iterdir()) == []


def test_a_library_that_is_missing_is_told_with_the_line_that_mends_it(xcfg, tmp_path, monkeypatch) -> None:
    path = tmp_path / "page.html"
    real = importlib.util.find_spec
    monkeypatch.setattr("xcfg.report.html.page.find_spec", lambda name: None if name == "jinja2" else real(name))
    done = xcfg("report", tmp_path, "--html", path, "--json")
    assert done.code == 7
    assert json.loads(done.out)["errors"][0]["hint"] == 'python -m pip install "xcfg[report]"'
    assert not path.exists()


def test_a_tokenizer_gives_the_text_of_the_worst_tokens(xcfg, write, tmp_path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {f"<word {number}>": number for number in range(64)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<word 0>"))
    made.save(str(tmp_path / "tokenizer.json"))
    out, path = tmp_path / "out", tmp_path / "report.html"
    xcfg("-q", "run", write(), "--allow-fake", "--out", out)
    xcfg("report", out, "--html", path, "--tokenizer", tmp_path / "tokenizer.json")
    rows = [row for case in data(path)["cases"] for row in case["worst"]]
    assert rows and all(row[3] == f"'<word {row[2]}>'" for row in rows)
    wrong = xcfg("report", out, "--html", path, "--tokenizer", tmp_path / "none", "--json")
    assert (wrong.code, json.loads(wrong.out)["errors"][0]["where"]) == (2, str(tmp_path / "none"))
