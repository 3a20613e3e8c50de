from __future__ import annotations

import hashlib
import json
from importlib.resources import files

from xcfg.builtin.contracts import shipped_contracts
from xcfg.testing import PluginTests

DATA = files("xcfg.builtin") / "data" / "tolerance-ws1.json"


def test_the_contract_is_the_files():
    read = json.loads(DATA.read_text(encoding="utf-8"))
    (contract,) = shipped_contracts()
    assert (contract.ref.id, contract.ref.version) == ("ws1", read["version"])
    assert list(contract.clip_interval) == read["dlogp"]["clip_interval"]
    for metric in ("max_abs_dlogp", "approx_kl0", "clipfrac0"):
        assert getattr(contract, metric) == read["dlogp"][metric]


def test_the_digest_does_not_depend_on_layout_or_order():
    # Every key of the file is ASCII and every number prints alike in Python and in RFC 8785 but for 1.0 and 1e-05.
    text = DATA.read_text(encoding="utf-8")
    canonical = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    for ours, theirs in ((":0.0,", ":0,"), (":0.0}", ":0}"), ("1e-05", "0.00001")):
        canonical = canonical.replace(ours, theirs)
    (contract,) = shipped_contracts()
    assert contract.ref.digest == hashlib.sha256(canonical.encode()).hexdigest()


class TestBuiltinPlugin(PluginTests):
    name = "builtin"
    distribution = "xcfg"
    engines = ("torch", "numpy", "zarr", "rich", "vllm")
