"""The cost of a case: worked out by hand from recorded phases."""

import pytest
from attrs import evolve

from xcfg.builtin.contracts import shipped_contracts
from xcfg.cli.measured import measured_documents
from xcfg.model.attempt import Measured
from xcfg.model.case import Case, SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.outcome import CaseOutcome, SideOutcome
from xcfg.model.result import Comparison
from xcfg.model.scorer import Role
from xcfg.model.status import Status


@pytest.fixture
def outcome():
    sides = [SideConfig(role=role, scorer="fake", checkpoint=Checkpoint(path="model")) for role in Role]
    return CaseOutcome(
        case=Case(id="c", rollout=sides[0], training=sides[1]),
        comparison=Comparison(status=Status.PASS, contract=shipped_contracts()[0].ref, active_tokens=300),
        rollout=SideOutcome(
            measured=Measured(
                phases={"import": 2.0, "open": 3.0, "score": 4.0}, peak_rss={"0": 7}, repeats={"count": 2}
            )
        ),
        training=SideOutcome(measured=Measured(phases={"score": 1.5}, peak_rss={"0": 5, "1": 6})),
    )


def test_costs_of_both_sides(outcome):
    found = measured_documents(outcome)
    assert found["rollout"] == {"build_s": 5.0, "score_s": 4.0, "tokens_per_s": 150.0, "peak_bytes": {"0": 7}}
    assert found["training"] == {"build_s": None, "score_s": 1.5, "tokens_per_s": 200.0, "peak_bytes": {"0": 5, "1": 6}}


def test_nothing_is_made_up_where_nothing_was_measured(outcome):
    bare = measured_documents(evolve(outcome, rollout=SideOutcome()))["rollout"]
    assert bare == {"build_s": None, "score_s": None, "tokens_per_s": None, "peak_bytes": {}}
