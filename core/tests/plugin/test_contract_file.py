from __future__ import annotations

import copy
import hashlib
import json

import pytest

from xcfg.errors import InvalidInput
from xcfg.plugin.registry import load_registry
from xcfg.plugin.tolerance import load_contract

GOOD = {
    "schema": "xcfg.tolerance/1",
    "id": "house",
    "version": "3",
    "dlogp": {
        "primary": "max_abs_dlogp",
        "rule": "value <= threshold",
        "clip_interval": [0.5, 2],
        "max_abs_dlogp": {"float32": 0.25, "bfloat16": 1},
        "approx_kl0": {"float32": 0.125},
        "clipfrac0": {},
    },
}


def written(tmp_path, data):
    path = tmp_path / "house.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def changed(change):
    data = copy.deepcopy(GOOD)
    change(data)
    return data


def test_a_file_is_read_as_it_stands(tmp_path):
    contract = load_contract(written(tmp_path, GOOD))
    canonical = json.dumps(GOOD, sort_keys=True, separators=(",", ":"))
    assert contract.ref.digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert (contract.ref.id, contract.ref.version) == ("house", "3")
    assert contract.clip_interval == (0.5, 2.0)
    assert contract.max_abs_dlogp == {"float32": 0.25, "bfloat16": 1.0}
    assert contract.approx_kl0 == {"float32": 0.125}
    assert contract.clipfrac0 == {}


def test_the_registry_takes_an_id_or_a_path(tmp_path):
    written(tmp_path, GOOD)
    registry = load_registry(plugins=False)
    assert registry.contract("ws1").ref.id == "ws1"
    assert registry.contract("house.json", root=tmp_path).ref.id == "house"
    assert registry.contract(str(tmp_path / "house.json")).ref.id == "house"


@pytest.mark.parametrize(
    ("change", "where", "text"),
    [
        (lambda data: data.pop("version"), "version", "required"),
        (lambda data: data.update(schema="xcfg.tolerance/9"), "schema", "xcfg.tolerance/1"),
        (lambda data: data.update(id=" "), "id", "empty"),
        (lambda data: data.update(extra=1), "extra", "unknown field"),
        (lambda data: data["dlogp"].update(primary="approx_kl0"), "dlogp.primary", "max_abs_dlogp"),
        (lambda data: data["dlogp"].update(rule="value < threshold"), "dlogp.rule", "value <= threshold"),
        (lambda data: data["dlogp"].update(clip_interval=[1.5, 2]), "dlogp.clip_interval", "must hold 1"),
        (lambda data: data["dlogp"].update(clip_interval=[0.5]), "dlogp.clip_interval", "expected 2 values"),
        (lambda data: data["dlogp"].update(max_abs_dlogp={}), "dlogp.max_abs_dlogp", "at least one row"),
        (lambda data: data["dlogp"]["max_abs_dlogp"].update(float32=-1), "dlogp.max_abs_dlogp.float32", "at least 0"),
        (lambda data: data["dlogp"]["max_abs_dlogp"].update(float32=True), "dlogp.max_abs_dlogp.float32", "bool"),
        (lambda data: data["dlogp"]["max_abs_dlogp"].update(int8=1), "dlogp.max_abs_dlogp.int8", "not one of"),
    ],
)
def test_each_fault_is_named_with_file_and_path(tmp_path, change, where, text):
    path = written(tmp_path, changed(change))
    with pytest.raises(InvalidInput) as caught:
        load_contract(path)
    (fault,) = caught.value.faults
    assert fault.where == f"{path}: {where}"
    assert text in fault.message


def test_all_faults_come_at_once(tmp_path):
    def spoil(data):
        data.update(id="", schema="x")
        data["dlogp"]["clipfrac0"] = {"float8": -1}

    with pytest.raises(InvalidInput) as caught:
        load_contract(written(tmp_path, changed(spoil)))
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize("text", ["{", '{"id": 1, "id": 2}', '{"dlogp": NaN}', '{"dlogp": 1e999}'])
def test_what_is_not_strict_json_is_refused(tmp_path, text):
    with pytest.raises(InvalidInput, match=r"house\.json"):
        load_contract(written(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"none\.json"):
        load_registry(plugins=False).contract("none.json", root=tmp_path)
