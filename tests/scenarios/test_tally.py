"""The counting of the scenario run, on answers made up here."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from xcfg.testing.scenarios import SCENARIOS, Shape


def load(name):
    """The module of that name beside this file, which is in no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tally = load("tally")
run = load("run")


def answer(name, *named):
    return tally.Answer(SCENARIOS[name], Shape(), 0, named, False, 0.5)


def test_wilson_agrees_with_values_worked_out_by_hand():
    # 8 of 10 at z = 1.96: middle 0.7167, reach 0.2265; 0 of 100: (0, 3.8416 / 103.8416).
    assert tally.wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert tally.wilson(0, 100) == pytest.approx((0.0, 0.036995), abs=1e-6)
    assert tally.wilson(0, 0) == (0.0, 1.0)


def test_what_counts_as_right():
    assert answer("temperature-rollout", "temperature", "rank").right
    assert not answer("temperature-rollout", "rank", "temperature").right
    assert answer("rank-offset", "constant-offset").right
    assert answer("clean", "floor").right and not answer("clean", "unknown").right
    assert answer("rank-training+boundary-end-roll", "boundary-end").right
    assert not answer("rank-training+boundary-end-roll", "unknown").right


def test_rates_that_are_missed_are_named():
    good = [answer("temperature-rollout", "temperature")] * 95 + [answer("temperature-rollout", "rank")] * 5
    clean = [answer("clean", "floor")] * 199
    assert tally.Tally(good + clean + [answer("clean", "rank")]).faults() == []
    missed = tally.Tally([*good, answer("temperature-rollout", "rank"), *clean[:98], answer("clean", "rank")]).faults()
    assert len(missed) == 2 and "one fault" in missed[0] and "95/101" in missed[0] and "1/99" in missed[1]
    assert tally.Tally([answer("packed-all+boundary-end-roll", "rank")]).faults()[0].startswith("two faults")


def test_figures_and_tables_name_what_was_wrong():
    counted = tally.Tally([answer("temperature-rollout", "rank"), answer("clean", "floor")])
    figures = counted.figures()
    assert figures["groups"]["one_fault"] == {"drawn": 1, "right": 0, "first": {"rank": 1}}
    assert [wrong["scenario"] for wrong in figures["wrong"]] == ["temperature-rollout"]
    assert "rank 1" in counted.matrix() and "temperature-rollout" in counted.scenarios()
    assert "0/1 = 0.0%" in counted.summary()


@pytest.fixture
def always_temperature(monkeypatch):
    """A diagnosis that names a temperature whatever it sees; the recordings that it saw."""
    seen = []

    def diagnose(observed):
        seen.append(observed)
        return SimpleNamespace(signatures=[SimpleNamespace(kind="temperature")], too_few=False)

    module = ModuleType("xcfg.diagnosis.diagnose")
    module.diagnose = diagnose
    monkeypatch.setitem(sys.modules, "xcfg.diagnosis.diagnose", module)
    return seen


def test_the_command_draws_what_it_is_told_and_exits_by_the_rates(always_temperature, tmp_path, capsys):
    sizes = ["--rows", "8", "--tokens", "320", "--dtype", "float32", "--seed", "3"]
    chosen = ["--seeds", "2", "--scenario", "temperature-r?*s", "--scenario", "temperature-rollout"]
    assert run.main([*chosen, *sizes, "--json", str(tmp_path / "rates.json")]) == 0
    assert [len(observed.rows.length) for observed in always_temperature] == [8] * 4
    assert all(300 < len(observed.d) <= 320 for observed in always_temperature)
    written = json.loads((tmp_path / "rates.json").read_text())
    assert written["seed"] == 3 and written["groups"]["one_fault"]["right"] == 4 and written["wrong"] == []
    assert run.main(["--seeds", "1", "--scenario", "clean", *sizes]) == 1
    assert "clean controls given a fault: 10/10" in capsys.readouterr().out


def test_a_seed_repeats_a_run_and_others_differ(always_temperature):
    for seed in ("5", "5", "6"):
        run.main(["--seeds", "1", "--scenario", "shift-flat", "--seed", seed])
    first, again, other = (observed.d for observed in always_temperature)
    assert first.tolist() == again.tolist() and first.tolist() != other.tolist()


def test_an_unknown_scenario_is_refused_with_the_list(capsys):
    with pytest.raises(SystemExit):
        run.main(["--scenario", "nonesuch"])
    assert "no scenario is called nonesuch; there are:" in capsys.readouterr().err
