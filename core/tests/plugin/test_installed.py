"""What an interpreter says it has, asked from another one."""

import hashlib
import platform
import sys
from importlib import metadata

import pytest

from xcfg.errors import EnvironmentFault
from xcfg.plugin.installed import Asked, ask_interpreter, installed


def test_versions_and_source_are_those_of_the_installation(tmp_path, monkeypatch):
    package = tmp_path / "some_engine"
    package.mkdir()
    (package / "__init__.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = installed(Asked(distributions=["xcfg", "no-such"], engines=["attrs", "no_such"], packages=["some_engine"]))
    assert found.python == platform.python_version()
    assert found.distributions == {"xcfg": metadata.version("xcfg"), "no-such": ""}
    assert found.engine == {"attrs": f"attrs {metadata.version('attrs')}", "no_such": ""}
    assert found.code == {"some_engine": hashlib.sha256(b"__init__.py\0VALUE = 1\n").hexdigest()}


def test_another_interpreter_answers_the_same_question():
    asked = Asked(distributions=["xcfg"], engines=["numpy"], packages=["xcfg.testing"])
    assert installed(asked, sys.executable) == installed(asked)


@pytest.mark.parametrize(
    ("interpreter", "words"),
    [("/no/such/python", "does not answer"), ("/bin/false", "fails in this interpreter"), ("/", "does not answer")],
)
def test_what_does_not_answer_is_named(interpreter, words):
    with pytest.raises(EnvironmentFault, match=words) as caught:
        installed(Asked(), interpreter)
    assert interpreter in str(caught.value) and "xcfg and the plugins" in str(caught.value)


def test_a_question_that_is_none_is_refused():
    with pytest.raises(EnvironmentFault, match="fails"):
        ask_interpreter(sys.executable, "xcfg.plugin.installed", '{"words": []}')
