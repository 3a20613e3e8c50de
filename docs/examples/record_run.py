"""Write both sides of the production case of an executed run as recorded logprobs, one JSON record a line.

``python docs/examples/record_run.py RUN_FOLDER OUT_FOLDER`` made the two files of ``docs/examples/recorded``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from xcfg.model.attempt import SideResult
from xcfg.runner.artifacts import load_plan, load_run


def records(result: SideResult) -> list[dict[str, object]]:
    """One record a (sequence, rank), with every value as it was measured."""
    samples, semantics = result.samples, result.identity.semantics
    dtypes = {info.rank: info.compute_dtype for info in result.ranks}
    found = []
    for row in range(samples.rows):
        tokens, response = samples.input_slice(row), samples.response_slice(row)
        prompt = int(samples.prompt_length[row])
        ids = samples.input_ids[tokens].tolist()
        rank = int(samples.rank[row])
        found.append(
            {
                "id": result.sequence_ids[int(samples.sequence[row])],
                "rank": rank,
                "dtype": dtypes[rank],
                "weight_version": result.identity.checkpoint_digest[:12],
                "temperature": semantics.temperature,
                "top_p": semantics.top_p,
                "top_k": semantics.top_k,
                "logprobs_mode": f"{semantics.mode}_logprobs",
                "prompt_ids": ids[:prompt],
                "response_ids": ids[prompt:],
                "mask": samples.action_mask[response].tolist(),
                "position_ids": samples.position_ids[tokens].tolist(),
                "logprobs": samples.logprobs[response].tolist(),
            }
        )
    return found


def main() -> None:
    """Write ``rollout.jsonl`` and ``training.jsonl``."""
    run_folder, out = map(Path, sys.argv[1:])
    plan = load_plan(run_folder)
    run = load_run(run_folder, plan)
    case = plan.case(plan.baseline)
    out.mkdir(parents=True, exist_ok=True)
    for config in (case.rollout, case.training):
        side = run.sides[config.digest()]
        if side.result is None:
            raise SystemExit(f"{config.role.value} has no result")
        lines = [json.dumps(record) + "\n" for record in records(side.result)]
        (out / f"{config.role.value}.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
