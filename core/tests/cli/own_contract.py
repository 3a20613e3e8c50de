"""A tolerance contract of our own, with one limit for every dtype."""

import json

from xcfg.builtin.contracts import shipped_contracts


def write_contract(folder, limit):
    """Write it beside the experiment; its name there."""
    dtypes = shipped_contracts()[0].max_abs_dlogp
    dlogp = {
        "primary": "max_abs_dlogp",
        "rule": "value <= threshold",
        "clip_interval": [0.5, 2.0],
        "max_abs_dlogp": dict.fromkeys(dtypes, limit),
    }
    content = {"schema": "xcfg.tolerance/1", "id": "made-up", "version": "1", "dlogp": dlogp}
    (folder / "contract.json").write_text(json.dumps(content))
    return "contract.json"
