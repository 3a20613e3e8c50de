"""JUnit XML, as CI systems read it: a suite a document, a test case a case."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from xml.etree import ElementTree

from xcfg.model.json import Json
from xcfg.report.entries import Entry, entries

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write (https://www.w3.org/TR/xml/#charsets)."""
_TAGS = {"failed": "failure", "broken": "error", "skipped": "skipped"}


def junit_xml(content: Mapping[str, Json]) -> bytes:
    """A ``run``, ``report`` or ``gate`` document as one suite. Cases that drift are failures, broken ones errors."""
    found = entries(content)
    counts = Counter(entry.outcome for entry in found)
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=_text(f"xcfg {content['name']}"),
        tests=str(len(found)),
        failures=str(counts["failed"]),
        errors=str(counts["broken"]),
        skipped=str(counts["skipped"]),
    )
    for entry in found:
        _case(suite, content["name"], entry)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _case(suite: ElementTree.Element, group: str, entry: Entry) -> None:
    case = ElementTree.SubElement(suite, "testcase", name=_text(entry.name), classname=_text(f"xcfg.{group}"))
    if entry.seconds is not None:
        case.set("time", f"{entry.seconds:.3f}")
    tag = _TAGS.get(entry.outcome)
    if tag is None:
        ElementTree.SubElement(case, "system-out").text = _text(entry.message)
    else:
        ElementTree.SubElement(case, tag, type=entry.kind, message=_text(entry.message)).text = _text(entry.detail)


def _text(value: str) -> str:
    return _FORBIDDEN.sub("\ufffd", value)
