"""What ``xcfg init plugin|kernel|importer`` writes, and what it refuses: nothing is half-written."""

from __future__ import annotations

import ast
import errno
import tomllib
from pathlib import Path

import pytest

KINDS = ("plugin", "kernel", "importer")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is where the process is."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_distribution_is_written_whole(xcfg, here: Path, kind: str) -> None:
    done = xcfg("init", kind, "my-thing", "--json")
    assert done.code == 0, done.err
    written = sorted(str(path.relative_to(here)) for path in here.rglob("*") if path.is_file())
    assert sorted(done.document["files"]) == written
    assert {"xcfg-my-thing/pyproject.toml", "xcfg-my-thing/README.md", "xcfg-my-thing/docs/index.md"} <= set(written)
    project = tomllib.loads((here / "xcfg-my-thing/pyproject.toml").read_text())["project"]
    assert project["name"] == "xcfg-my-thing"
    assert project["entry-points"] == {"xcfg": {"my-thing": "xcfg_my_thing.plugin"}}
    assert project["dependencies"][0] == "xcfg>=0.1,<0.2"
    for path in here.rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert "$" not in text and "__package__" not in text, path
            assert max(map(len, text.splitlines()), default=0) <= 120, path
        if path.suffix == ".py":
            ast.parse(text)


def test_it_is_written_where_it_is_told_to(xcfg, here: Path) -> None:
    assert xcfg("init", "kernel", "my-thing", "-o", "elsewhere").code == 0
    assert [path.name for path in here.iterdir()] == ["elsewhere"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_word_is_no_model_directory(xcfg, here: Path, kind: str) -> None:
    """A directory of that name is given as ./plugin."""
    model = here / kind
    model.mkdir()
    (model / "config.json").write_text('{"vocab_size": 64}')
    (model / "tokenizer.json").write_text("{}")
    done = xcfg("init", kind)
    assert done.code == 2 and f"./{kind}" in done.err and "NAME" in done.err
    assert sorted(path.name for path in here.iterdir()) == [kind]
    done = xcfg("init", f"./{kind}")
    assert done.code == 0, done.err
    assert (here / "experiment.yaml").is_file()


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("plugin", "My Engine", "lower-case letters"),
        ("plugin", "my_engine", "lower-case letters"),
        ("plugin", "-engine", "No such option"),
        ("plugin", "my--engine", "lower-case letters"),
        ("plugin", "../escape", "lower-case letters"),
        ("plugin", "1st", "lower-case letters"),
        ("plugin", "x" * 51, "at most 50"),
        ("plugin", "", "lower-case letters"),
        ("plugin", "xcfg-mine", '"hint": "mine"'),
        ("plugin", "rollout", "a word of xcfg itself"),
        ("kernel", "testing", "a word of xcfg itself"),
        ("kernel", "importer", "a word of xcfg itself"),
        ("plugin", "vllm", "a distribution of this project"),
        ("kernel", "te", "a distribution of this project"),
        ("kernel", "reference", "belongs to xcfg-kernels"),
        ("importer", "verl", "importer 'verl' belongs to xcfg"),
        ("plugin", "fake", "scorer 'fake' belongs to xcfg"),
    ],
)
def test_a_name_that_cannot_be_had_is_refused(xcfg, here: Path, kind: str, name: str, words: str) -> None:
    done = xcfg("init", kind, name, "--json")
    assert done.code == 2 and words in done.out
    assert done.document["schema"] == "xcfg.error/1"
    assert list(here.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(xcfg, here: Path) -> None:
    (here / "xcfg-mine").mkdir()
    for arguments in (("init", "kernel", "mine"), ("init", "kernel", "mine", "--force")):
        done = xcfg(*arguments)
        assert done.code == 2 and "--output" in done.err
    assert [path.name for path in here.rglob("*")] == ["xcfg-mine"]
    (here / "xcfg-mine").rmdir()
    (here / "xcfg-mine").symlink_to("nowhere")
    assert xcfg("init", "kernel", "mine").code == 2


def test_a_folder_nobody_made_is_named(xcfg, here: Path) -> None:
    done = xcfg("init", "importer", "mine", "-o", "no/such/folder")
    assert done.code == 2 and "no folder" in done.err
    assert list(here.iterdir()) == []


def test_nothing_is_left_of_one_that_could_not_be_written(xcfg, here: Path, monkeypatch) -> None:
    real, calls = Path.write_text, []

    def full(self, *arguments, **options):
        calls.append(self)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    done = xcfg("init", "plugin", "mine")
    assert done.code == 7 and "space left" in done.err
    assert list(here.iterdir()) == []


def test_a_name_that_is_installed_is_refused(xcfg, here: Path, tmp_path: Path, monkeypatch) -> None:
    from xcfg.testing.distributions import write_distribution

    write_distribution(tmp_path / "site", "xcfg-mine", "")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    done = xcfg("init", "plugin", "mine")
    assert done.code == 2 and "xcfg-mine is installed already" in done.err
    (tmp_path / "site/xcfg_yours").mkdir()
    (tmp_path / "site/xcfg_yours/__init__.py").touch()
    done = xcfg("init", "plugin", "yours")
    assert done.code == 2 and "a package xcfg_yours already" in done.err
    assert list(here.iterdir()) == []


def test_another_word_with_a_name_is_refused(xcfg, here: Path) -> None:
    done = xcfg("init", "kernels", "mine")
    assert done.code == 2 and "plugin, kernel, importer" in done.err
