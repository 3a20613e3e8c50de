"""The plugin as the host sees it, and the environment it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from xcfg.model.case import SideConfig
from xcfg.model.experiment import Checkpoint
from xcfg.model.kernel import OperatorChoice
from xcfg.model.scorer import Role
from xcfg.testing.plugin_tests import PluginTests
from xcfg_te import plugin

INTERPRETED = {"TRITON_INTERPRET": "1"}


class TestTransformerEnginePlugin(PluginTests):
    name = "te"
    distribution = "xcfg-te"
    engines = ("torch", "numpy", "triton", "transformer_engine")


def environment(backend: str, **knobs: str):
    side = SideConfig(
        role=Role.TRAINING,
        scorer="torch",
        checkpoint=Checkpoint(path="model"),
        knobs=knobs,
        operators={"selected_logprob": OperatorChoice(backend=backend)},
    )
    return plugin.xcfg_process_environment(side=side)


@pytest.mark.parametrize("driver", [True, False])
def test_a_side_that_computes_on_a_cpu_is_interpreted(driver, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(plugin, "CUDA_DRIVER", tmp_path if driver else Path("/no/driver"))
    assert environment("te") == ({} if driver else INTERPRETED)
    assert environment("te", **{"torch.device": "cpu"}) == INTERPRETED
    assert environment("te", **{"torch.device": "cuda"}) == {}
    assert environment("reference", **{"torch.device": "cpu"}) == {}
