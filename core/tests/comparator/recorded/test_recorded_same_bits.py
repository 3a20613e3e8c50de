"""Two files that hold the very same numbers: a finding beside the verdict, from 16 active tokens on."""

from __future__ import annotations

import math

import pytest

from xcfg.model.status import Status

ROW = [-0.5 - place / 7 for place in range(16)]


def test_equal_in_every_bit(judge, record):
    result = judge([record("a", ROW[:9]), record("b", ROW[9:])], [record("a", ROW[:9]), record("b", ROW[9:])])
    (finding,) = result.findings
    assert (finding.source_class, finding.subclass, finding.rule) == ("logical", "observation", "bitwise_equal")
    assert (dict(finding.evidence), finding.confidence) == ({"active_tokens": 16, "frac_unequal": 0.0}, "low")
    assert result.status is Status.PASS


@pytest.mark.parametrize("row", [ROW[:15], [*ROW[:15], -0.5]])
def test_too_few_tokens_or_one_that_differs_are_no_finding(judge, record, row):
    other = row if len(row) < 16 else [*row[:15], math.nextafter(row[15], 0.0)]
    result = judge([record("a", row, wide=True)], [record("a", other, wide=True)])
    assert (result.status, result.findings) == (Status.PASS, ())
