from __future__ import annotations

import sys

import pytest

from xcfg.errors import InvalidInput, PluginError
from xcfg.exitcodes import ExitCode
from xcfg.plugin.inventory import PluginState
from xcfg.plugin.registry import load_registry

HEAD = """
from xcfg.plugin import hookimpl
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, Role, ScorerDescriptor

def knob(name, default=1, domain=Domain(kind=Kind.INT)):
    return Knob(name=name, summary="a knob", source_class=SourceClass.EXECUTION, lifecycle=Lifecycle.ENGINE,
                targets=Target.ROLLOUT, domain=domain, default=default)

def scorer(id, target="some_engine.scorer:Scorer"):
    return ScorerDescriptor(id=id, summary="a scorer", target=target, roles=(Role.ROLLOUT,))

def materializer(knob, scorer, **more):
    fixed = {"lifecycle": Lifecycle.ENGINE, "target": "some_engine.m:M"}
    return MaterializerDescriptor(knob=knob, scorer=scorer, **fixed, **more)

def backend(id):
    return KernelBackendDescriptor(operator="selected_logprob", id=id, summary="a kernel", target="k.m:K",
                                   roles=(Role.TRAINING,))
"""
GOOD = (
    HEAD
    + """
@hookimpl
def xcfg_knobs():
    return [knob("good.size")]
@hookimpl
def xcfg_scorers():
    return (scorer("good"),)
@hookimpl
def xcfg_materializers():
    return [materializer("good.size", "good"), materializer("rollout.dtype", "good", values=("float32",))]
@hookimpl
def xcfg_kernel_backends():
    return [backend("good_kernel")]
"""
)


def hook(name, body, arguments="", decorator="@hookimpl"):
    return f"{HEAD}\n{decorator}\ndef {name}({arguments}):\n    {body}\n"


BROKEN = {
    "import error": ("import a_module_that_is_not_there", "No module named 'a_module_that_is_not_there'"),
    "syntax error": ("def (", "SyntaxError"),
    "exit while importing": ("raise SystemExit(9)", "SystemExit: 9"),
    "unknown hook": (hook("xcfg_nobs", "return []"), "unknown hook 'xcfg_nobs', did you mean 'xcfg_knobs'?"),
    "undecorated hook": (hook("xcfg_knobs", "return []", decorator=""), "xcfg_knobs lacks the decorator @hookimpl"),
    "wrong argument": (hook("xcfg_reject_case", "return None", "kase"), "kase"),
    "wrapper": (hook("xcfg_knobs", "return (yield)", decorator="@hookimpl(wrapper=True)"), "hook wrapper"),
    "hook raises": (hook("xcfg_knobs", "return 1 / 0"), "xcfg_knobs raised ZeroDivisionError"),
    "not a descriptor": (hook("xcfg_knobs", "return ['bad.size']"), "got str 'bad.size'"),
    "not a list": (hook("xcfg_knobs", "return knob('bad.size')"), "got Knob"),
    "core's prefix": (hook("xcfg_knobs", "return [knob('rollout.size')]"), "a prefix that core owns"),
    "another's prefix": (hook("xcfg_knobs", "return [knob('vllm.size')]"), "must begin with 'bad.'"),
    "no prefix": (hook("xcfg_knobs", "return [knob('bad')]"), "needs a prefix and a name"),
    "default outside": (hook("xcfg_knobs", "return [knob('bad.size', 'x')]"), "'x' is not accepted"),
    "default not normal": (
        hook("xcfg_knobs", "return [knob('bad.size', 'y', Domain(kind=Kind.STR, values=('x',), aliases={'y': 'x'}))]"),
        "is 'y', its normal form is 'x'",
    ),
    "same id twice": (hook("xcfg_scorers", "return [scorer('s'), scorer('s')]"), "declared 2 times"),
    "no import string": (hook("xcfg_scorers", "return [scorer('s', 'a module')]"), "not an import string"),
}


def load(**options):
    return load_registry(**options)


def message(call, *arguments):
    with pytest.raises(PluginError) as caught:
        call(*arguments)
    assert caught.value.exit_code is ExitCode.PLUGIN
    return str(caught.value)


def test_descriptors_are_found_by_id_with_their_owner(install):
    install("xcfg-good", GOOD)
    registry = load()
    assert registry.failures == {}
    assert registry.knob("good.size").default == 1
    assert registry.scorer("good").target == "some_engine.scorer:Scorer"
    assert registry.backend("selected_logprob", "good_kernel").summary == "a kernel"
    assert list(registry.materializers("good")) == ["good.size", "rollout.dtype", "rollout.weights"]
    assert registry.materializer("rollout.dtype", "good").values == ("float32",)
    assert registry.materializer("batch.size", "good") is None
    for kind, name in (
        ("knob", "good.size"),
        ("scorer", "good"),
        ("backend", ("selected_logprob", "good_kernel")),
        ("materializer", ("rollout.dtype", "good")),
    ):
        assert registry.owner(kind, name) == "xcfg-good"
    assert registry.owner("knob", "rollout.dtype") == "xcfg"
    assert registry.owner("contract", "ws1") == "xcfg"


@pytest.mark.parametrize(("source", "text"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_plugin_is_kept_and_takes_nobody_down(install, source, text):
    install("xcfg-bad", source)
    install("xcfg-good", GOOD)
    registry = load()
    assert list(registry.failures) == ["xcfg-bad"]
    assert text in registry.failures["xcfg-bad"]
    assert registry.scorer("good")
    states = {info.name: info.state for info in registry.plugins}
    assert states["bad"] is PluginState.FAILED
    assert states["good"] is PluginState.LOADED
    for call in (registry.scorer, registry.knob):
        said = message(call, "bad" if call == registry.scorer else "bad.size")
        assert "xcfg-bad" in said and text in said


def test_ids_read_before_the_failure_are_remembered(install):
    install(
        "xcfg-bad",
        GOOD.replace('"good', '"bad') + "\n@hookimpl\ndef xcfg_tolerance_contracts():\n    raise OSError('disk')",
    )
    registry = load()
    assert "bad" not in registry.scorers()
    assert "xcfg-bad: xcfg_tolerance_contracts raised OSError: disk" in message(registry.scorer, "bad")
    assert "xcfg-bad" in message(registry.materializer, "rollout.dtype", "bad")
    assert "xcfg-bad" in message(registry.backend, "selected_logprob", "bad_kernel")


def test_an_id_of_two_distributions_names_both_and_is_nobodys(install):
    install("xcfg-one", hook("xcfg_scorers", "return [scorer('both'), scorer('first')]"))
    install("xcfg-two", hook("xcfg_scorers", "return [scorer('both')]"))
    registry = load()
    said = message(registry.scorer, "both")
    assert "registered by xcfg-one and xcfg-two" in said
    assert "-p no:one" in said and "-p no:two" in said
    assert registry.scorer("first")
    assert set(registry.failures) == {"xcfg-one", "xcfg-two"}
    assert load(disabled=["two"]).scorer("both")


def test_a_skewed_plugin_is_not_imported_and_says_so(install):
    module = install("xcfg-good", GOOD, requires=["xcfg>=999"])
    registry = load()
    assert module not in sys.modules
    assert "needs xcfg>=999" in message(registry.scorer, "good")
    assert "needs xcfg>=999" in message(registry.knob, "good.size")
    assert {info.name: info.state for info in registry.plugins}["good"] is PluginState.VERSION_SKEW


def test_a_disabled_plugin_is_not_imported_and_says_so(install):
    module = install("xcfg-good", GOOD)
    registry = load(plugins=False)
    assert module not in sys.modules
    assert "xcfg-good, which brings it, is disabled" in message(registry.scorer, "good")
    assert registry.failures == {}


@pytest.mark.parametrize(
    ("kind", "arguments", "distribution"),
    [
        ("scorer", ("vllm",), "xcfg-vllm"),
        ("scorer", ("fsdp",), "xcfg-fsdp"),
        ("scorer", ("torch",), "xcfg-torch"),
        ("scorer", ("megatron",), "xcfg-megatron"),
        ("scorer", ("deepspeed",), "xcfg-deepspeed"),
        ("backend", ("selected_logprob", "production"), "xcfg-kernels"),
        ("scorer", ("torch-tp",), "xcfg-torch"),
        ("scorer", ("fsdp1",), "xcfg-fsdp"),
        ("backend", ("selected_logprob", "reference"), "xcfg-kernels"),
        ("backend", ("selected_logprob", "deterministic"), "xcfg-kernels"),
        ("backend", ("selected_logprob", "te"), "xcfg-te"),
        ("backend", ("selected_logprob", "megatron"), "xcfg-megatron"),
        ("knob", ("vllm.seed",), "xcfg-vllm"),
    ],
)
def test_a_missing_id_names_the_distribution_with_its_pip_line(install, kind, arguments, distribution):
    said = message(getattr(load(), kind), *arguments)
    assert f"python -m pip install {distribution}" in said


def test_the_nearest_known_name_is_given(install):
    install("xcfg-good", GOOD)
    registry = load()
    assert "did you mean 'good'?" in message(registry.scorer, "goood")
    assert "did you mean 'ws1'?" in message(registry.contract, "ws2")
    with pytest.raises(InvalidInput, match=r"unknown knob 'rolout.dtype', did you mean 'rollout.dtype'\?") as caught:
        registry.knob("rolout.dtype")
    assert caught.value.exit_code is ExitCode.USAGE


def test_an_unknown_id_mentions_what_could_not_be_loaded(install):
    install("xcfg-bad", "import a_module_that_is_not_there")
    assert "not loaded: xcfg-bad (ModuleNotFoundError" in message(load().scorer, "elsewhere")


def test_fakes_are_listed_and_refused_unless_allowed(install):
    registry = load()
    assert registry.scorers()["fake"].fake
    for call in (lambda: registry.scorer("fake"), lambda: registry.backend("selected_logprob", "fake_exact")):
        with pytest.raises(InvalidInput, match="--allow-fake"):
            call()
    allowed = load(allow_fake=True)
    assert allowed.scorer("fake").fake
    assert allowed.backend("selected_logprob", "fake_exact").fake


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("materializer('rollout.dtipe', 'bad')", "unknown knob 'rollout.dtipe', did you mean 'rollout.dtype'?"),
        ("materializer('bad.size', 'bad')", "unknown knob 'bad.size'"),
        ("materializer('rollout.dtype', 'bad', values=('int3',))", "'int3' is not accepted"),
        ("materializer('rollout.dtype', 'bad', values=('bf16',))", "'bf16' is normally 'bfloat16'"),
    ],
)
def test_a_materializer_that_could_never_work_is_a_fault(install, declared, text):
    install("xcfg-bad", HEAD + f"@hookimpl\ndef xcfg_materializers():\n    return [{declared}]")
    registry = load()
    assert text in registry.failures["xcfg-bad"]
    assert registry.materializers("bad") == {}


def test_a_materializer_of_an_absent_plugins_knob_waits(install):
    install("xcfg-good", hook("xcfg_materializers", "return [materializer('other.size', 'good')]"))
    registry = load()
    assert registry.failures == {}
    assert registry.materializer("other.size", "good") is not None


def test_a_new_knob_for_an_existing_scorer_needs_no_change_of_core(install):
    install(
        "xcfg-extra",
        HEAD
        + "@hookimpl\ndef xcfg_knobs():\n    return [knob('extra.block')]\n"
        + "@hookimpl\ndef xcfg_materializers():\n    return [materializer('extra.block', 'fake')]",
    )
    registry = load()
    assert registry.failures == {}
    assert registry.materializers("fake")["extra.block"].target == "some_engine.m:M"


def test_what_a_plugin_prints_goes_to_standard_error(install, capfd):
    install(
        "xcfg-good",
        "import os, subprocess, sys\nprint('python')\nos.write(1, b'process\\n')\n"
        "subprocess.run([sys.executable, '-c', 'print(\"child\")'])\n"
        + GOOD.replace('return [knob("good.size")]', 'print("hook"); return [knob("good.size")]'),
    )
    registry = load()
    print("ours")
    out, err = capfd.readouterr()
    assert registry.failures == {}
    assert out == "ours\n"
    assert sorted(err.split()) == ["child", "hook", "process", "python"]
