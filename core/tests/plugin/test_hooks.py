from __future__ import annotations

import pytest

from xcfg.errors import PluginError
from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.scorer import Role
from xcfg.plugin.registry import load_registry

HEAD = "from xcfg.plugin import hookimpl\nfrom xcfg.model.case import Rejection\n@hookimpl\n"
SIDES = {
    role: SideConfig(role=role, scorer="fake", checkpoint=Checkpoint(path="model"))
    for role in (Role.ROLLOUT, Role.TRAINING)
}
CASE = Case(id="0" * 16, rollout=SIDES[Role.ROLLOUT], training=SIDES[Role.TRAINING])


def test_a_veto_comes_with_its_reason(install):
    install(
        "xcfg-veto",
        HEAD + "def xcfg_reject_case(case, baseline):\n    return Rejection(kind='veto', reason='too wide')",
    )
    assert load_registry().reject_case(CASE, CASE) == Rejection(kind="veto", reason="too wide")


def test_vetoes_are_joined_in_order_of_name_and_arguments_are_optional(install):
    install("xcfg-b", HEAD + "def xcfg_reject_case(case):\n    return Rejection(kind='veto', reason='b')")
    install("xcfg-a", HEAD + "def xcfg_reject_case():\n    return Rejection(kind='veto', reason='a')")
    assert load_registry().reject_case(CASE, CASE).reason == "a; b"


def test_no_veto_is_none(install):
    install("xcfg-veto", HEAD + "def xcfg_reject_case(case):\n    return None")
    assert load_registry().reject_case(CASE, CASE) is None


@pytest.mark.parametrize("body", ["raise KeyError('x')", "return 'no'"])
def test_a_broken_veto_is_an_error_and_no_permission(install, body):
    install("xcfg-veto", HEAD + f"def xcfg_reject_case(case):\n    {body}")
    with pytest.raises(PluginError, match="xcfg-veto: xcfg_reject_case"):
        load_registry().reject_case(CASE, CASE)


def test_variables_are_merged(install):
    install("xcfg-a", HEAD + "def xcfg_process_environment(side):\n    return {'A': side.scorer, 'C': '1'}")
    install("xcfg-b", HEAD + "def xcfg_process_environment(side):\n    return {'B': '2', 'C': '1'}")
    assert load_registry().process_environment(CASE.rollout) == {"A": "fake", "B": "2", "C": "1"}


def test_two_plugins_that_disagree_on_a_variable_are_an_error(install):
    install("xcfg-a", HEAD + "def xcfg_process_environment(side):\n    return {'C': '1'}")
    install("xcfg-b", HEAD + "def xcfg_process_environment(side):\n    return {'C': '2'}")
    with pytest.raises(PluginError, match="xcfg-a sets C to '1', xcfg-b to '2'"):
        load_registry().process_environment(CASE.rollout)


@pytest.mark.parametrize("value", ["{'C': 1}", "['C']", "None"])
def test_variables_must_be_texts(install, value):
    install("xcfg-a", HEAD + f"def xcfg_process_environment(side):\n    return {value}")
    with pytest.raises(PluginError, match="xcfg-a: xcfg_process_environment must return texts"):
        load_registry().process_environment(CASE.rollout)


def test_facts_decide_nothing_so_a_failure_is_a_fact(install):
    install("xcfg-good", HEAD + "def xcfg_environment_facts(role):\n    return {'role': role}")
    install("xcfg-raises", HEAD + "def xcfg_environment_facts(role):\n    raise OSError('gone')")
    install("xcfg-odd", HEAD + "def xcfg_environment_facts(role):\n    return {'nan': float('nan')}")
    facts = load_registry().environment_facts("training")
    assert facts["good"] == {"role": "training"}
    assert facts["raises"] == {"error": "OSError: gone"}
    assert facts["odd"]["error"].startswith("not JSON")


def test_a_failing_observer_is_told_of_and_the_others_hear_all(install, capfd):
    install("xcfg-a", HEAD + "def xcfg_cube_committed(path):\n    raise ValueError('no network')")
    install("xcfg-b", HEAD + "def xcfg_cube_committed(path):\n    print('heard', path)")
    told = load_registry().notify("xcfg_cube_committed", path="runs/x/cube.zarr")
    assert told == ("xcfg-a: xcfg_cube_committed raised ValueError: no network",)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "heard runs/x/cube.zarr\n"
