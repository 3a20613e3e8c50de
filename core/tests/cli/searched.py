"""The experiment that searches are tested on, and the command line in a process of its own."""

import json
import subprocess
import sys

KNOBS = {
    "rollout.kv_cache_dtype": ("float8_e4m3fn", None),
    "rollout.dtype": ("bfloat16", "float32"),
    "training.compute_dtype": ("bfloat16", "float32"),
}
PRODUCTION = {name: production for name, (production, _) in KNOBS.items()}

BASELINE = {
    **PRODUCTION, "batch.size": 1, "rollout.scoring_path": "prefill", "rollout.enforce_eager": True,
    "training.output_dtype": "float32", "training.reduce_dtype": "float32",
}  # fmt: skip
SETTINGS = {
    "baseline": BASELINE,
    "axes": {},
    "cases": [],
    "slices": {},
    "tokens": {"sample": {"prompts": "prompts.jsonl", "max_new_tokens": 16}},
}
"""Three knobs differ; of the others, those that fakes have are aligned in production already."""


def command(*arguments):
    """The document of a command in a process of its own."""
    made = [sys.executable, "-m", "xcfg.cli", "-q", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(made, capture_output=True, text=True, check=False).stdout)
