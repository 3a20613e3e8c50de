"""JUnit XML and Markdown of documents written by hand, read by other parsers."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from xcfg.report.junit import junit_xml
from xcfg.report.markdown import MOST, markdown

NASTY = "a|b`c`<img src=x onerror=alert(1)>\x00\x1b[31m @someone &amp; [x](http://y)\nnext"


def case(name="", status="pass", **more):
    return {
        "id": f"{name or 'x'}-id",
        "name": name,
        "status": status,
        "reason": "",
        "changed": [],
        "axes": {},
        "threshold": 0.02,
        "metrics": {"max_abs_dlogp": 0.0123},
        "worst": None,
        "measured": {"rollout": {"score_s": 1.25}, "training": {"score_s": None}},
        **more,
    }


def document(*cases, status="fail", **more):
    counts: dict[str, int] = {}
    for item in cases:
        counts[item["status"]] = counts.get(item["status"], 0) + 1
    return {"name": "one", "status": status, "counts": counts, "cases": list(cases), "fake": False, **more}


WORST = {"token": 7, "sequence": NASTY, "position": 3, "rollout_logp": -1.5, "train_logp": -1.25}
FOUR = document(
    case("good"),
    case("bad", "fail", worst=WORST),
    case("gone", "launch_error", reason=NASTY, metrics={}, measured={"rollout": {"score_s": None}}),
    case("never", "unsupported", reason="no such kernel", metrics={}),
)


def test_junit_counts_each_kind_and_keeps_the_text() -> None:
    suite = ElementTree.fromstring(junit_xml(FOUR)).find("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    good, bad, gone, never = suite.findall("testcase")
    assert good.find("failure") is None and good.find("error") is None and good.get("time") == "1.250"
    assert bad.find("failure").get("type") == "fail"
    assert "max |d| 0.0123 nats, limit 0.02" in bad.find("failure").get("message")
    assert "position 3: rollout -1.5, training -1.25" in bad.find("failure").text
    assert gone.find("error").get("type") == "launch_error" and "time" not in gone.attrib
    told = gone.find("error").get("message")
    assert "<img src=x onerror=alert(1)>" in told and "\x00" not in told and "\x1b" not in told
    assert never.find("skipped").get("message") == "no such kernel"


def test_junit_is_what_its_schema_allows() -> None:
    """The xunit schema that CI systems share: one child of failure, error, skipped or system-out, known attributes."""
    suite = ElementTree.fromstring(junit_xml(FOUR)).find("testsuite")
    for item in suite.findall("testcase"):
        assert set(item.attrib) <= {"name", "classname", "time"}
        assert len(item) == 1 and item[0].tag in {"failure", "error", "skipped", "system-out"}
        assert item.get("classname") == "xcfg.one"


def cells(row):
    """Cells of a table row by GitHub's rule: a pipe ends one unless a backslash stands before it."""
    found, cell, escaped = [], "", False
    for letter in row.strip()[1:]:
        if letter == "|" and not escaped:
            found.append(cell.strip())
            cell = ""
        else:
            cell += letter
        escaped = letter == "\\" and not escaped
    return found


def test_markdown_puts_failures_first_and_escapes_text() -> None:
    lines = markdown(FOUR).splitlines()
    assert lines[0].startswith("### xcfg one: FAIL: 1 passed, 1 failed of 2 judged")
    rows = [line for line in lines if line.startswith("| ") and "---" not in line][1:]
    assert [cells(row)[2].replace("\\", "") for row in rows] == ["fail", "launch_error", "pass", "unsupported"]
    assert all(len(cells(row)) == 4 for row in rows)
    whole = "\n".join(lines)
    for plain in ("<img", "@someone", "[x", "](", "`c", "&amp;"):
        assert not re.search(rf"(?<!\\){re.escape(plain)}", whole), plain
    assert "\\@" not in whole


def test_markdown_fits_a_comment_and_tells_what_it_left_out() -> None:
    long = document(*(case(f"n{index}", "fail", reason="r" * 300) for index in range(1000)))
    text = markdown(long)
    shown = sum(line.startswith("| ❌") for line in text.splitlines())
    assert len(text) <= 65_536 and len(text) > MOST - 2000
    assert f"{1000 - shown} more cases are not shown." in text


@pytest.mark.parametrize(("field", "words"), [({"fake": True}, "fake scorers"), ({"limited": 5}, "limited to 5")])
def test_markdown_says_what_the_numbers_are_worth(field, words) -> None:
    assert words in markdown(document(case("good"), **field))
    assert words not in markdown(document(case("good")))


def test_a_gate_is_reported_by_its_checks() -> None:
    check = {
        "case": "abcd",
        "role": "part",
        "aligned": ["rollout.dtype"],
        "expected": False,
        "held": False,
        "status": "fail",
        "max_abs_dlogp": 0.001,
        "threshold": 0.02,
        "advice": "search again",
    }
    content = {**document(status="fail"), "checks": [check, {**check, "held": True, "status": "pass", "advice": ""}]}
    suite = ElementTree.fromstring(junit_xml(content)).find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite[0].find("failure").text == "search again"
    assert "1 of 2 pinned cases held" in markdown(content)
    assert "outside the production row" in markdown(content)
