"""Every way in which a plugin can be broken, through the command line as users start it.

Whatever is wrong with one distribution is told of under its name, and takes nothing from the others.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from . import broken_site as damage
from .broken_site import Ended, Site
from .recorded_files import record
from .recorded_files import write as write_records

CODE = {
    "raises-at-import": "ValueError: the licence server does not answer",
    "exits-at-import": "SystemExit: 0",
    "ends-at-import": "Ended: no more",
    "speechless-at-import": "Speechless: (its text cannot be had: RuntimeError)",
    "imports-nothing-that-exists": "No module named 'a_package_that_is_nowhere'",
    "wrong-hook-name": "unknown hook 'xcfg_scorer', did you mean 'xcfg_scorers'?",
    "wrong-hook-argument": "an argument 'kase' that the hook does not pass; it takes case, baseline or fewer of them",
    "default-for-argument": "xcfg_reject_case gives 'case' a default, and so would never be passed it",
    "hook-raises": "xcfg_scorers raised KeyError: 'scorers'",
    "hook-ends": "xcfg_scorers raised Ended: no more",
    "recursion-in-hook": "xcfg_scorers raised RecursionError",
    "hook-gives-no-list": "xcfg_scorers must return a list or tuple of ScorerDescriptor, got dict",
    "hook-gives-texts": "xcfg_scorers must return ScorerDescriptor values, got str 'module:Scorer'",
    "number-for-id": "ScorerDescriptor 0 of xcfg_scorers: id must be str, got int 7",
    "list-for-id": "ScorerDescriptor 0 of xcfg_scorers: id must be str, got list ['a']",
    "text-for-lifecycle": "Knob 0 of xcfg_knobs: lifecycle must be Lifecycle.REQUEST, not the text 'request'",
    "object-for-summary": "summary must be str, got type <class 'object'>; domain.minimum must be float, got float nan",
    "takes-a-knob-of-core": "knob 'rollout.dtype' is under a prefix that core owns; it must begin with",
}
"""What the plugin module's code does, and what is said of it."""

FILES = {
    damage.without_version: "has no version; install it again",
    damage.without_name: "has no version; install it again",
    damage.without_metadata: "the metadata of",
    damage.metadata_in_no_encoding: "the metadata of",
    damage.garbled_requirement: "has a malformed requirement 'xcfg >>> what'",
    damage.garbled_entry_points: "its entry_points.txt cannot be read",
    damage.entry_points_in_no_encoding: "its entry_points.txt cannot be read",
    damage.entry_point_without_module: "must name a module, it is ''",
    damage.module_that_is_not_there: "No module named",
}
"""What is wrong with the files of a distribution whose code is sound."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "site").mkdir()
    return Site(tmp_path / "site")


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Every broken distribution at once, and a sound one."""
    site = Site(tmp_path_factory.mktemp("zoo"))
    for name in CODE:
        site.add(name)
    for broken in FILES:
        broken(site.add("sound", distribution=name_of(broken)))
    damage.damaged_compatibility(site.write("xcfg-damaged-compatibility", damage.MARK))
    site.add("claims-same", distribution="xcfg-one")
    site.add("claims-same", distribution="xcfg-two", requires=["xcfg>=0.1", "unmarked; os_name ~= 'x'"])
    site.add("sound", distribution="xcfg-skew", requires=["xcfg>=99", "xcfg >>> what"])
    site.add("sound")
    return site


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The sound one alone."""
    site = Site(tmp_path_factory.mktemp("bare"))
    site.add("sound")
    return site


def name_of(broken: object) -> str:
    return f"xcfg-{broken.__name__.replace('_', '-')}"


def added(document: dict, key: str, name: str = "distribution") -> dict:
    return {row[name]: row for row in document[key]}


def test_help_lists_and_doctor_import_no_plugin(zoo: Site) -> None:
    for leftover in zoo.folder.glob("*.imported"):
        leftover.unlink()
    assert zoo.xcfg("--help").code == 0
    doctor, listed = zoo.xcfg("doctor", "--json"), zoo.xcfg("plugins", "list", "--json")
    assert (doctor.code, listed.code) == (0, 0), doctor.out + listed.out
    assert zoo.imported == set()
    rows = added(listed.document, "plugins")
    for name in CODE:
        assert (rows[f"xcfg-{name}"]["state"], rows[f"xcfg-{name}"]["error"]) == ("available", "")
    for broken, text in FILES.items():
        row = rows[name_of(broken)]
        if broken is not damage.module_that_is_not_there:  # its metadata is in order
            assert row["state"] == "invalid" and text in row["error"], row
    assert rows["xcfg-two"]["state"] == "invalid" and "os_name" in rows["xcfg-two"]["error"]
    assert added(doctor.document, "plugins").keys() == rows.keys()
    damaged = added(doctor.document, "plugins")["xcfg-damaged-compatibility"]
    assert "what was tried of the engine is unreadable" in damaged["error"]


def test_leaving_all_of_them_out_is_no_error_either(zoo: Site) -> None:
    done = zoo.xcfg("--no-plugins", "doctor", "--json")
    assert done.code == 0, done.out
    states = {row["state"] for row in done.document["plugins"] if row["distribution"] != "xcfg"}
    assert states == {"disabled"}


def test_check_names_every_one_of_them(zoo: Site) -> None:
    done = zoo.xcfg("plugins", "check", "--json")
    assert (done.code, done.document["code"]) == (4, 4)
    found = added(done.document, "errors", "where")
    wanted = {f"xcfg-{name}": text for name, text in CODE.items()}
    wanted |= {name_of(broken): text for broken, text in FILES.items()}
    wanted |= {"xcfg-skew": "needs xcfg>=99", "xcfg-two": "malformed requirement"}
    assert found.keys() == wanted.keys()
    for name, text in wanted.items():
        assert text in found[name]["message"], found[name]
        assert f"-p no:{name.removeprefix('xcfg-')}" in found[name]["hint"]


@pytest.mark.parametrize("group", ["knobs", "scorers", "backends", "contracts", "importers"])
def test_lists_are_those_of_the_sound_ones(zoo: Site, bare: Site, group: str) -> None:
    whole, alone = zoo.xcfg(group, "list", "--json"), bare.xcfg(group, "list", "--json")
    assert (whole.code, alone.code) == (0, 0), whole.out
    rows = [row for row in whole.document[group] if row["distribution"] != "xcfg-one"]
    assert rows == alone.document[group]
    assert any(row["distribution"] == "xcfg-sound" for row in rows) is (group in ("knobs", "scorers"))


def test_a_comparison_is_whole(zoo: Site, tmp_path: Path) -> None:
    rollout = write_records(tmp_path / "rollout.jsonl", [record()])
    training = write_records(tmp_path / "training.jsonl", [record(logprobs=[-1.0, -2.25, -3.0])])
    done = zoo.xcfg("compare", rollout, training, "--json")
    assert (done.code, done.document["status"]) == (1, "fail"), done.out
    assert done.document["active_tokens"] == 3
    assert done.document["metrics"]["max_abs_dlogp"] == 0.25


@pytest.mark.parametrize("name", CODE)
def test_alone_with_its_code(site: Site, name: str) -> None:
    site.add(name)
    check = site.xcfg("plugins", "check", "--json")
    assert check.code == 4
    assert [item["where"] for item in check.document["errors"]] == [f"xcfg-{name}"]
    assert CODE[name] in check.said
    asked_in_vain(site, f"xcfg-{name}", CODE[name])


@pytest.mark.parametrize("broken", FILES, ids=name_of)
def test_alone_with_its_files(site: Site, broken) -> None:
    broken(site.add("sound", distribution=name_of(broken)))
    check = site.xcfg("plugins", "check", "--json")
    assert check.code == 4
    assert [item["where"] for item in check.document["errors"]] == [name_of(broken)]
    assert FILES[broken] in check.said
    asked_in_vain(site, name_of(broken), FILES[broken])
    assert site.imported == set()


def asked_in_vain(site: Site, distribution: str, text: str) -> None:
    """A scorer and a knob of the distribution are asked for."""
    short = distribution.removeprefix("xcfg-")
    for group, name in (("scorers", short), ("knobs", f"{short.replace('-', '_')}.size")):
        done = site.xcfg(group, "show", name, "--json")
        assert done.code == 4, done.out
        assert distribution in done.said and text in done.said


def test_other_peoples_broken_files_are_no_matter_of_ours(site: Site) -> None:
    for number, broken in enumerate(FILES):
        broken(site.write(f"elsewhere-{number}", damage.MARK, entry="x"))
        (next(site.folder.glob(f"elsewhere_{number}-*")) / "entry_points.txt").write_text("[other\nx")
    done = site.xcfg("plugins", "check", "--json")
    assert (done.code, done.document["failures"]) == (0, {}), done.out


def test_version_skew_is_never_imported_and_says_both_versions(site: Site) -> None:
    site.add("sound", version="2.5", requires=["xcfg>=99,<100"])
    text = f"xcfg-sound 2.5 needs xcfg<100,>=99, installed is xcfg {version('xcfg')}"
    (row,) = (row for row in site.xcfg("plugins", "list", "--json").document["plugins"] if row["name"] == "sound")
    assert (row["state"], row["error"]) == ("version-skew", text)
    assert text in site.xcfg("plugins", "check", "--json").said
    asked_in_vain(site, "xcfg-sound", text)
    assert site.imported == set()


def test_one_id_of_two_distributions_names_both(site: Site) -> None:
    site.add("claims-same", distribution="xcfg-one")
    site.add("claims-same", distribution="xcfg-two")
    text = "scorer 'same' is registered by xcfg-one and xcfg-two"
    check = site.xcfg("plugins", "check", "--json")
    assert check.code == 4
    assert {item["where"]: item["message"] for item in check.document["errors"]} == {"xcfg-one": text, "xcfg-two": text}
    asked = site.xcfg("scorers", "show", "same", "--json")
    assert asked.code == 4
    assert text in asked.said and "-p no:one or -p no:two" in asked.said
    mended = site.xcfg("-p", "no:two", "scorers", "show", "same", "--json")
    assert (mended.code, mended.document["scorer"]["distribution"]) == (0, "xcfg-one")


def test_one_command_of_two_distributions_keeps_no_other_from_working(site: Site) -> None:
    source = damage.MARK + "import click\n\n@click.command()\ndef greet():\n    print('hello')\n\nwave = greet\n"
    site.write("xcfg-one", source, commands=["greet"])
    site.write("xcfg-two", source, commands=["greet", "wave"])
    listed = site.xcfg("plugins", "list", "--json")
    rows = added(listed.document, "plugins")
    assert (rows["xcfg-one"]["commands"], rows["xcfg-two"]["commands"]) == (["greet"], ["greet", "wave"])
    assert site.imported == set()
    assert site.xcfg("wave").out == "hello\n"
    greet = site.xcfg("greet")
    assert greet.code == 4 and "xcfg-one and xcfg-two" in greet.err


def test_nothing_waits_for_a_slow_import_that_needs_none(site: Site) -> None:
    site.add("slow-import")
    assert site.xcfg("--help").code == 0
    assert site.xcfg("plugins", "list", "--json").code == 0
    assert site.xcfg("doctor", "--json").code == 0
    assert site.imported == set()
    assert site.xcfg("plugins", "check", "--json").code == 0
    assert site.imported == {"xcfg_slow_import_plugin"}


def test_an_engine_that_is_missing_is_told_of_where_it_is_run(site: Site, write, tmp_path: Path) -> None:
    site.add("needs-an-engine")
    assert site.xcfg("plugins", "check", "--json").code == 0
    (row,) = (row for row in site.xcfg("scorers", "list", "--json").document["scorers"] if "needs" in row["id"])
    assert row["distribution"] == "xcfg-needs-an-engine"
    sides = {"training": {"scorer": "needs-an-engine"}, "baseline": {"rollout.dtype": "bfloat16"}}
    experiment = write(axes={}, cases=[], slices={}, **sides)
    done = site.xcfg("-q", "run", experiment, "--allow-fake", "--out", tmp_path / "out", "--json")
    assert (done.code, done.document["status"]) == (7, "environment_error"), done.out + done.err
    assert "pip install 'xcfg-needs-an-engine[cpu]'" in done.document["cases"][0]["reason"]


def test_what_is_printed_at_import_and_in_hooks_stays_off_standard_output(site: Site, write) -> None:
    site.add("prints")
    ways = ("print", "stdout", "original stdout", "descriptor", "C", "child")
    plan = site.xcfg("plan", write(), "--allow-fake", "--json")
    for done, places in (
        (plan, ("import", "hook", "veto")),
        (site.xcfg("scorers", "show", "prints", "--json"), ("import", "hook")),
        (site.xcfg("plugins", "trace", "--json"), ("import", "hook")),
        (site.xcfg("doctor", "--json"), ()),
    ):
        assert done.code == 0, done.err
        assert done.document["status"] == "pass"
        lines = set(done.err.splitlines())
        assert {f"{way} {place}" for way in ways for place in places} <= lines
        assert not {f"{way} {place}" for way in ways for place in {"import", "hook", "veto"} - set(places)} & lines


def test_a_veto_that_fails_is_no_permission(site: Site, write) -> None:
    site.add("veto-raises")
    done = site.xcfg("plan", write(), "--allow-fake", "--json")
    assert done.code == 4
    assert "xcfg-veto-raises: xcfg_reject_case raised Ended: no more" in done.said
    assert "leave it out with -p no:veto-raises" in done.said
    assert site.xcfg("-p", "no:veto-raises", "plan", write(), "--allow-fake", "--json").code == 0


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The kit's checks of a plugin module that imports torch, or what stands in for it."""
    site, tests = Site(tmp_path_factory.mktemp("site")), tmp_path_factory.mktemp("tests")
    site.add("imports-torch")
    (site.folder / "torch.py").write_text("__version__ = 'of a stand-in'\n")
    (tests / "test_plugin.py").write_text(
        "from xcfg.testing import PluginTests\n\n\nclass TestIt(PluginTests):\n"
        "    name, distribution = 'imports-torch', 'xcfg-imports-torch'\n"
    )
    return site.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tests, tests, cwd=tests)


def test_the_kit_refuses_an_engine_in_the_plugin_module(kit: Ended) -> None:
    assert kit.code == 1, kit.out + kit.err
    assert "1 failed, 6 passed" in kit.out, kit.out
    (line,) = (line for line in kit.out.splitlines() if line.startswith("FAILED"))
    assert "test_import_is_light_and_silent" in line


def test_the_kit_names_the_engine(kit: Ended) -> None:
    (line,) = (line for line in kit.out.splitlines() if line.startswith("E       AssertionError: "))
    assert line.endswith("_plugin imports torch")


def test_objects_that_fail_are_their_distributions(site: Site, write, tmp_path: Path) -> None:
    """What is looked up by id fails under the name of who brought it, and only where it is asked for."""
    site.add("objects-fail")
    files = [write_records(tmp_path / f"{side}.jsonl", [record()]) for side in ("rollout", "training")]
    assert site.xcfg("compare", *files, "--json").code == 0
    experiment = write(axes={}, cases=[], slices={})
    asked = {
        "the importer failing failed: KeyError: 'nowhere'": ("compare", *files, "--format", "failing"),
        "the check of selected_logprob/failing failed: TypeError: unhashable": ("backends", "check", "failing"),
        "the executor failing failed: ZeroDivisionError: no machines": (
            *("run", experiment, "--allow-fake", "--out", tmp_path / "out", "--executor", "failing"),
        ),
    }
    for text, arguments in asked.items():
        done = site.xcfg(*arguments, "--json")
        assert done.code == 4, done.out + done.err
        (error,) = done.document["errors"]
        assert (error["where"], error["message"]) == ("xcfg-objects-fail", text)


def test_an_importer_that_cannot_say_what_is_its_own_is_named_where_nobody_can(site: Site, tmp_path: Path) -> None:
    site.add("objects-fail")
    files = [write_records(tmp_path / f"{side}.jsonl", [{"what": 1}]) for side in ("rollout", "training")]
    done = site.xcfg("compare", *files, "--json")
    assert done.code == 4
    assert [item["where"] for item in done.document["errors"]] == [str(files[0]), "xcfg-objects-fail"]
    assert "LookupError: no such field" in done.said
