"""Executors and interpreters as the command line takes them."""

import sys

import pytest

AXES = {"rollout.dtype": ["bfloat16", "float32"]}


@pytest.fixture
def run(xcfg, write):
    experiment = write(axes=AXES, cases=[], slices={})

    def call(*extra, out="out"):
        return xcfg("-q", "run", experiment, "--allow-fake", "--json", "--out", experiment.parent / out, *extra)

    return call


def verdicts(done):
    return [(case["id"], case["status"], case["metrics"]["max_abs_dlogp"]) for case in done.document["cases"]]


def test_a_side_may_have_an_interpreter_of_its_own(run, other_python):
    here = run("--executor", "local")
    there = run("--rollout-python", other_python, out="there")
    assert (here.code, there.code) == (0, 0), there.out + there.err
    assert verdicts(there) == verdicts(here)
    again = run("--training-python", other_python, out="there")
    # the same versions in either interpreter: nothing has to be executed again
    assert again.document["engines"]["constructed"] == 0


def test_an_interpreter_without_the_plugins_is_refused_before_anything_runs(run, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    done = run("--rollout-python", bare)
    assert done.code == 7
    [error] = done.document["errors"]
    assert error["where"] == str(bare) and "fails in this interpreter" in error["message"]
    assert "xcfg and the plugins" in error["hint"]
    assert not (tmp_path / "out").exists()


def test_an_interpreter_that_declares_other_things_is_version_skew(run, tmp_path):
    other = tmp_path / "python"
    other.write_text(f"""#!/bin/sh
case "$*" in
*xcfg.plugin.describe*) {sys.executable} "$@" | sed 's/testing.fakes:FakeScorer/testing.other:FakeScorer/' ;;
*) exec {sys.executable} "$@" ;;
esac
""")
    other.chmod(0o755)
    done = run("--rollout-python", other)
    assert done.code == 4, done.out
    [error] = done.document["errors"]
    assert "declares other scorers" in error["message"] and error["where"] == str(other)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--executor", "ray2"), 4, "ray2"),
        (("--executor-option", "speed=high"), 2, "the executor local has no option speed"),
        (("--executor-option", "speed"), 2, "'speed' is not NAME=VALUE"),
        (("--rollout-python", "/no/such/python"), 2, "/no/such/python"),
        (("--start-timeout", "0"), 2, "--start-timeout"),
    ],
)
def test_what_cannot_be_is_refused(run, tmp_path, arguments, code, words):
    done = run(*arguments)
    assert done.code == code
    assert words in done.out + done.err
    assert not (tmp_path / "out").exists()
