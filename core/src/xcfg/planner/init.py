"""A first experiment for a checkpoint: commented, and it runs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from xcfg.errors import Fault, InvalidInput
from xcfg.planner.check_files import checkpoint_problems

_PROMPTS = (
    "The capital of France is",
    "Once upon a time there was a small town by the sea, and",
    "def fibonacci(n):\n    ",
    "12 + 30 = 42. 15 + 27 =",
    "To install the package, first open a terminal and",
    "The three laws of thermodynamics can be stated as follows:",
    "Dear Sir or Madam,\n\nI am writing to",
    "Question: Why is the sky blue?\nAnswer:",
)

_EXPERIMENT = """\
# What is compared. How it is executed (time-outs, resuming, processes) is given to `xcfg run` as options.
#
#   xcfg plan {file}      which cases there are, without starting an engine
#   xcfg run {file}       run them and print the verdict
schema: xcfg.experiment/1
name: {name}

# A Hugging Face model directory. Relative paths start from the folder of this file.
checkpoint:
  path: {checkpoint}

# Whose limits judge the logprobs. Limits are never set here: a contract is cited by id or path.
contract: ws1

# Who samples and reports logprobs, and who recomputes them. `xcfg scorers list` shows all.
rollout:
  scorer: vllm
training:
  scorer: fsdp

# The rollout side samples these prompts once; every configuration then scores the same tokens.
tokens:
  sample:
    prompts: {prompts}
    max_new_tokens: 32
    temperature: 1.0
    seed: 0

# Your production settings. `xcfg knobs list` shows every knob with its default, `xcfg knobs show NAME` its values.
baseline:
  rollout.tensor_parallel_size: 1
  rollout.dtype: bfloat16
  rollout.enforce_eager: true
  training.world_size: 1
  training.compute_dtype: bfloat16

# one_at_a_time changes one knob of the baseline a case, two_at_a_time every two knobs besides. In pairwise every two
# values meet in few cases; product tries every combination.
mode: one_at_a_time
axes:
  rollout.dtype: [bfloat16, float32]
  rollout.scoring_path: [forced_decode, prefill]
  training.compute_dtype: [bfloat16, float32]
  batch.size: [8, 1]

# Cases that change several knobs together.
cases:
  - name: fp32-both
    set:
      rollout.dtype: float32
      training.compute_dtype: float32

# Named selections: `xcfg run {file} --slice quick`.
slices:
  quick:
    baseline: true
    cases: [fp32-both]
"""


def init_experiment(checkpoint: Path, destination: Path) -> dict[Path, str]:
    """Path to text of the experiment at ``destination`` and of the prompts beside it. Writes nothing.

    Raises InvalidInput where ``checkpoint`` is no model directory.
    """
    if problems := list(checkpoint_problems((), checkpoint)):
        raise InvalidInput(faults=[Fault(message=item.message, where=str(checkpoint)) for item in problems])
    prompts_name = f"{destination.stem}-prompts.jsonl"
    text = _EXPERIMENT.format(
        file=destination.name,
        name=_quoted(_name(checkpoint)),
        checkpoint=_quoted(_relative(checkpoint, destination)),
        prompts=_quoted(prompts_name),
    )
    lines = [json.dumps({"id": f"p{index}", "text": prompt}) for index, prompt in enumerate(_PROMPTS)]
    return {destination: text, destination.with_name(prompts_name): "".join(f"{line}\n" for line in lines)}


def _relative(checkpoint: Path, destination: Path) -> str:
    """From the experiment's folder to the checkpoint; absolute where there is no way (another drive)."""
    try:
        return Path(os.path.relpath(checkpoint.resolve(), destination.resolve().parent)).as_posix()
    except ValueError:
        return checkpoint.resolve().as_posix()


def _name(checkpoint: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", checkpoint.resolve().name) or "experiment"


def _quoted(text: str) -> str:
    """A YAML scalar: JSON text is YAML text."""
    return text if re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text) else json.dumps(text)
