"""``xcfg report`` as files for CI systems, read by another parser."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from .own_contract import write_contract


@pytest.fixture
def ran(xcfg, write, tmp_path):
    """The output folder of a run on fakes and its document."""
    out = tmp_path / "out"
    experiment = write(contract=write_contract(tmp_path, 1e-6))  # bf16 against fp32 drifts, fp32 against itself not
    done = xcfg("-q", "run", experiment, "--allow-fake", "--out", out, "--json")
    return out, done.document


def test_each_case_is_a_test_case(xcfg, ran, tmp_path) -> None:
    out, document = ran
    junit, markdown = tmp_path / "report.xml", tmp_path / "report.md"
    done = xcfg("report", out, "--junit", junit, "--markdown", markdown)
    suite = ElementTree.fromstring(junit.read_bytes()).find("testsuite")
    assert int(suite.get("tests")) == len(document["cases"]) > 2
    assert int(suite.get("failures")) == document["counts"].get("fail", 0) > 0
    failed = {item.get("name").split()[0] for item in suite.findall("testcase") if item.find("failure") is not None}
    assert failed == {case["id"] for case in document["cases"] if case["status"] == "fail"}
    assert done.code == 1
    assert sum(line.startswith("| ❌") for line in markdown.read_text().splitlines()) == len(failed)
    assert "fake scorers" in markdown.read_text()


def test_a_run_writes_what_the_report_of_its_folder_writes(xcfg, write, tmp_path) -> None:
    out, junit, markdown = tmp_path / "out", tmp_path / "run.xml", tmp_path / "run.md"
    experiment = write(contract=write_contract(tmp_path, 1e-6))
    ran = xcfg("-q", "run", experiment, "--allow-fake", "--out", out, "--junit", junit, "--markdown", markdown)
    assert ran.code == 1
    again = [tmp_path / "report.xml", tmp_path / "report.md"]
    xcfg("report", out, "--junit", again[0], "--markdown", again[1])
    assert [junit.read_text(), markdown.read_text()] == [path.read_text() for path in again]


def test_a_report_of_what_is_not_executed_is_refused(xcfg, write, tmp_path) -> None:
    junit = tmp_path / "run.xml"
    done = xcfg("run", write(), "--allow-fake", "--out", tmp_path / "out", "--dry-run", "--junit", junit, "--json")
    assert done.code == 2
    assert json.loads(done.out)["errors"][0]["where"] == "--junit"
    done = xcfg("run", write(), "--allow-fake", "--out", tmp_path / "out", "--junit", tmp_path / "no/run.xml")
    assert done.code == 2 and not (tmp_path / "out").exists()


def test_a_folder_that_is_not_there_is_told_before_anything(xcfg, ran, tmp_path) -> None:
    out, _ = ran
    done = xcfg("report", out, "--junit", tmp_path / "no/report.xml", "--json")
    assert done.code == 2
    assert json.loads(done.out)["errors"][0]["where"] == "--junit"


def test_a_report_replaces_an_older_one_whole(xcfg, ran, tmp_path) -> None:
    out, _ = ran
    path = tmp_path / "report.xml"
    path.write_text("x" * 1_000_000)
    xcfg("report", out, "--junit", path)
    ElementTree.fromstring(path.read_bytes())
    assert [item.name for item in tmp_path.iterdir() if "partial" in item.name] == []


def test_a_name_may_be_as_long_as_the_file_system_lets_it(xcfg, ran, tmp_path) -> None:
    """255 bytes on Linux; the file it is written by way of must not need more."""
    out, _ = ran
    longest, longer = tmp_path / ("x" * 251 + ".xml"), tmp_path / ("x" * 252 + ".xml")
    assert xcfg("report", out, "--junit", longest).code == 1
    ElementTree.fromstring(longest.read_bytes())
    done = xcfg("report", out, "--junit", longer, "--json")
    assert done.code == 2 and json.loads(done.out)["errors"][0]["where"] == str(longer)
    table = tmp_path / ("x" * 251 + ".csv")
    assert xcfg("cube", "export", out, table).code == 0 and table.exists()
