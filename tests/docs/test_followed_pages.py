"""Pages on writing a distribution, followed from ``xcfg init`` to what the distribution is for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xcfg.testing import KernelBackendTests, PluginTests

from .followed import Followed, give_checkpoint
from .merged import merged
from .snippets import ROOT

HOW_TO = ROOT / "docs/how-to"
pytestmark = pytest.mark.timeout(900)


def passed(output: str) -> int:
    """How many tests a run of pytest passed, with none that was skipped."""
    assert "skipped" not in output and "failed" not in output
    return int(output.rpartition(" passed")[0].split()[-1])


def checks(*kit: type) -> int:
    """The checks of classes of the kit, none of which has parameters."""
    return sum(name.startswith("test_") for cls in kit for name in vars(cls))


@pytest.fixture
def followed(request: pytest.FixtureRequest, tmp_path: Path) -> Followed:
    pytest.importorskip("hatchling", reason="nothing builds a distribution here")
    return Followed(HOW_TO / request.param, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("followed", ["write-a-kernel.md"], indirect=True)
def test_a_kernel_is_written_measured_and_used(followed: Followed) -> None:
    pytest.importorskip("xcfg_kernels")
    give_checkpoint(followed.here)
    followed.follow()
    done = followed.done
    wanted = checks(PluginTests) + 2 * checks(KernelBackendTests) + 1
    assert passed(done["pytest xcfg-my-kernel"]) == passed(done["TRITON_INTERPRET=1 pytest xcfg-my-kernel"]) == wanted
    assert "my-kernel" in done["xcfg backends list"]
    (interpreted,) = [told for line, told in done.items() if line.startswith("TRITON_INTERPRET=1 xcfg backends check")]
    for told, kernel in ((done["xcfg backends check my-kernel"], "Kernel"), (interpreted, "Kernel (interpreted)")):
        assert f"xcfg_my_kernel.backend.MyKernel{kernel}, xcfg-my-kernel 0.1.0" in told
        assert "selected_logprob/my-kernel: pass" in told
    observed = [json.loads(path.read_text()) for path in followed.here.glob("runs/my-kernel/sides/*/*/observed.json")]
    bound = [found["operators"]["selected_logprob"]["backend"] for found in observed]
    assert sorted(bound) == ["my-kernel", "my-kernel", "reference", "reference"]


@pytest.mark.full
@pytest.mark.parametrize("followed", ["write-an-executor.md"], indirect=True)
def test_an_executor_is_written_and_passes_the_kit(followed: Followed) -> None:
    followed.follow()
    assert passed(followed.done["pytest xcfg-my-cluster"]) > checks(PluginTests)


def test_code_is_put_where_a_reader_puts_it() -> None:
    original = "from a import b\nX = 1\n\nclass C:\n    y = 2\n\n    def f(self):\n        return X\n"
    shown = "import c\nX = 3\nZ = 4\n\nclass C(B):\n    def f(self):\n        return Z\n\ndef g(): ...\n"
    assert merged(original, shown).split("\n") == [
        "import c", "from a import b", "X = 3", "Z = 4", "",
        "class C(B):", "    y = 2", "", "    def f(self):", "        return Z", "",
        "def g():", "    ...", "",
    ]  # fmt: skip
