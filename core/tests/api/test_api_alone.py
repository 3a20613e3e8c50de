"""The call reads no file, loads no module, changes nothing that it is given, and needs little memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from xcfg import compare_logprobs

ALONE = """
import sys
import numpy as np
import numpy.ma  # a part of itself that numpy loads at the first np.unique
from xcfg import compare_logprobs

rng = np.random.default_rng(0)
rollout = -rng.exponential(1, (8, 64)).astype(np.float32) - np.float32(0.1)
training = np.minimum(rollout + rng.normal(0, 0.5, rollout.shape).astype(np.float32), 0)
mask = rng.random(rollout.shape) < 0.9
opened, seen = [], set()

def hook(event, arguments):
    if watching and event.split(".")[0] in {"open", "import", "os", "socket", "subprocess", "exec", "compile"}:
        opened.append((event, arguments))

watching = False
sys.addaudithook(hook)
before, watching = set(sys.modules), True
cases = [
    compare_logprobs(rollout, training, mask=mask, dtype="bf16"),
    compare_logprobs(list(rollout), list(training), dtype="bf16", token_ids=list(mask.astype(int)), clip_range=(0, 2)),
    compare_logprobs(rollout.ravel(), rollout.ravel() + 0, lengths=[512], dtype="float8", sequence_ids=["a"]),
    compare_logprobs(np.zeros((4, 0)), np.zeros((4, 0)), dtype="bf16"),
    compare_logprobs(rollout, rollout, dtype="bf16"),
    compare_logprobs(rollout, training * np.nan, dtype="bf16"),
]
watching = False
print([case.status.value for case in cases])
print("opened", opened)
print("loaded", sorted(set(sys.modules) - before))
print("plugins", sorted(name for name in sys.modules if name.split(".")[0] in {"pluggy", "torch", "xcfg_torch"}))
print("host", sorted(name for name in sys.modules if name.startswith(("xcfg.plugin.host", "xcfg.plugin.registry"))))
"""


def test_no_file_is_opened_and_no_module_loaded():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    statuses = "['fail', 'fail', 'no_threshold', 'zero_active_tokens', 'invalid_artifact', 'non_finite']"
    assert done.stdout.splitlines() == [statuses, "opened []", "loaded []", "plugins []", "host []"]
    assert not done.stderr


def test_nothing_that_is_given_is_changed(contract, ragged, padded):
    rollout, training, masks = ragged(drift=0.5)
    given = {
        "rollout": padded(rollout, np.nan),
        "training": padded(training, 1.0),
        "mask": padded(masks, False).astype(np.float32),
        "token_ids": np.arange(350).reshape(7, 50),
    }
    before = {name: values.tobytes() for name, values in given.items()}
    for values in given.values():
        values.flags.writeable = False
    names = [f"s{7 - row}" for row in range(7)]
    compare_logprobs(**given, sequence_ids=names, dtype="bf16", contract=contract)
    assert {name: values.tobytes() for name, values in given.items()} == before
    assert names == ["s7", "s6", "s5", "s4", "s3", "s2", "s1"]


MEMORY = """
import sys
import numpy as np
from xcfg import compare_logprobs

def kilobytes(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))

layout, kind = sys.argv[1:]
compare_logprobs(np.full(9, -1.0), np.full(9, -2.0), dtype="bf16")
rng = np.random.default_rng(0)
rows, width = 2500, 2000
sides = [np.empty((rows, width), kind) for _ in range(2)]
for row in range(rows):
    sides[0][row] = -rng.exponential(1, width) - 0.5
    sides[1][row] = sides[0][row] + rng.normal(0, 0.01, width)
options = {}
if layout == "padded":
    options = {"mask": rng.random((rows, width), np.float32) < 0.8, "token_ids": np.ones((rows, width), np.int64)}
elif layout == "ragged":
    lengths = rng.multinomial(rows * width - 600, [1 / 600] * 600) + 1
    sides, options = [side.reshape(-1) for side in sides], {"lengths": lengths}
elif layout == "sliced":
    sides = [side[:, 200:] for side in sides]
elif layout == "list":
    sides = [[row.copy() for row in side] for side in sides]
given = sum(side.nbytes for side in sides) if layout != "list" else sum(row.nbytes for side in sides for row in side)
given += sum(value.nbytes for value in options.values())
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before = kilobytes("VmRSS")
found = compare_logprobs(*sides, dtype="bf16", **options)
print((kilobytes("VmHWM") - before) * 1024 / given + 1, found.active_tokens)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("layout", "kind", "times"),
    [("padded", "f4", 1.5), ("sliced", "f4", 2.5), ("list", "f4", 2.5), ("ragged", "f2", 2)],
)
def test_five_million_tokens_stay_below_three_times_the_input(layout, kind, times):
    done = subprocess.run([sys.executable, "-c", MEMORY, layout, kind], capture_output=True, text=True, check=True)
    measured, active = done.stdout.split()
    assert int(active) >= 3_900_000
    assert float(measured) < times < 3
