from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from xcfg.plugin.inventory import PluginState, disabled_by_environment, inventory

EXPLODES = "raise RuntimeError('imported')"


def of(name, infos):
    (found,) = [info for info in infos if info.name == name]
    return found


def test_metadata_alone_is_read(install):
    module = install("xcfg-bomb", EXPLODES, version="2.5")
    info = of("bomb", inventory())
    assert (info.distribution, info.version, info.state, info.error) == (
        "xcfg-bomb",
        "2.5",
        PluginState.AVAILABLE,
        "",
    )
    assert info.target == module
    assert module not in sys.modules


def test_core_comes_first_and_then_names_in_order(install):
    install("xcfg-zeta")
    install("xcfg-alpha")
    assert [info.name for info in inventory()] == ["builtin", "testing", "alpha", "zeta"]


@pytest.mark.parametrize("name", ["bomb", "xcfg-bomb", "xcfg_bomb"])
def test_disabled_by_plugin_or_distribution_name(install, name):
    install("xcfg-bomb", EXPLODES)
    assert of("bomb", inventory([name])).state is PluginState.DISABLED


def test_no_plugins_leaves_core_alone(install):
    install("xcfg-bomb", EXPLODES)
    states = {info.name: info.state for info in inventory(plugins=False)}
    assert states == {
        "builtin": PluginState.AVAILABLE,
        "testing": PluginState.AVAILABLE,
        "bomb": PluginState.DISABLED,
    }


def test_core_cannot_be_disabled(install):
    assert of("builtin", inventory(["builtin", "xcfg"])).state is PluginState.AVAILABLE


def test_a_name_that_is_not_installed_may_be_disabled(install):
    assert len(inventory(["nothing"])) == 2


@pytest.mark.parametrize(
    ("requirement", "state"),
    [
        ("xcfg>=999", PluginState.VERSION_SKEW),
        ("xcfg<0.0.1", PluginState.VERSION_SKEW),
        ("xcfg", PluginState.AVAILABLE),
        ("XCFG>=0.0.1", PluginState.AVAILABLE),
        ("xcfg>=999; extra == 'new'", PluginState.AVAILABLE),
        ("xcfg>=999; python_version < '3'", PluginState.AVAILABLE),
        ("xcfg-torch>=999", PluginState.AVAILABLE),
        ("xcfg >> 3", PluginState.INVALID),
    ],
)
def test_the_required_range_of_core_is_checked(install, requirement, state):
    install("xcfg-plug", EXPLODES, requires=["numpy>=1", requirement])
    assert of("plug", inventory()).state is state


def test_version_skew_names_both_versions(install):
    install("xcfg-plug", EXPLODES, version="3.1", requires=["xcfg>=999"])
    installed = metadata.version("xcfg")
    assert of("plug", inventory()).error == f"xcfg-plug 3.1 needs xcfg>=999, installed is xcfg {installed}"


def test_the_entry_point_carries_the_distributions_name(install):
    install("xcfg-plug", EXPLODES, entry="other")
    info = of("other", inventory())
    assert info.state is PluginState.INVALID
    assert "'plug'" in info.error and "xcfg-plug" in info.error


def test_a_plugin_name_of_two_distributions_is_neithers(install):
    install("xcfg-twin", EXPLODES)
    install("twin", EXPLODES, module="other_twin_plugin")
    twins = [info for info in inventory() if info.name == "twin"]
    assert [info.state for info in twins] == [PluginState.INVALID, PluginState.INVALID]
    assert all("twin and xcfg-twin" in info.error for info in twins)


def test_disabling_one_twin_frees_the_other(install):
    install("xcfg-twin", EXPLODES)
    install("twin", EXPLODES, module="other_twin_plugin")
    states = {info.distribution: info.state for info in inventory(["xcfg-twin"]) if info.name == "twin"}
    assert states == {"twin": PluginState.AVAILABLE, "xcfg-twin": PluginState.DISABLED}


def test_the_variable_is_a_comma_separated_list():
    assert disabled_by_environment({"XCFG_DISABLE_PLUGINS": " vllm, fsdp,,"}) == ("vllm", "fsdp")
    assert disabled_by_environment({}) == ()


def test_core_is_found_in_the_real_environment_without_numpy():
    code = (
        "import sys; from xcfg.plugin.inventory import inventory; print([i.name for i in inventory()][:2]);"
        "print(sorted({'numpy', 'torch', 'zarr', 'rich', 'xcfg.builtin'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['builtin', 'testing']", "[]"]
