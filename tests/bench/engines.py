"""What the framework costs a training engine: scoring against a bare pass of the same ranks, in pairs of one run.

``python tests/bench/engines.py [NAME ...]`` prints one row an engine: seconds to import and to open it, tokens a second
of the scorer and of the bare pass, and the median ratio of their times. The bare pass goes through the same wrapped
model, then a log-softmax and a gather; the hooks of the model run in both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODEL = Path(__file__).parents[2] / "docs/examples/qwen3-tiny"
ROWS, PROMPT, RESPONSE, BATCH, TURNS = 32, 48, 80, 8, 12
FULL, WHOLE = {"training.sharding": "full_shard"}, {"training.sharding": "unsharded"}
PLAYS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "torch": ("xcfg_torch.testing.cases:torch_play", 1, {}),
    "fsdp": ("xcfg_fsdp.testing.cases:fsdp_play", 2, FULL),
    "fsdp-tp2": ("xcfg_fsdp.testing.cases:fsdp_play", 2, {**WHOLE, "training.tensor_parallel_size": 2}),
    "fsdp1": ("xcfg_fsdp.testing.cases:fsdp1_play", 2, FULL),
    "deepspeed-zero3": ("xcfg_deepspeed.testing.cases:deepspeed_play", 2, FULL),
    "deepspeed-tp2": (
        "xcfg_deepspeed.testing.cases:deepspeed_play",
        2,
        {**WHOLE, "training.tensor_parallel_size": 2, "deepspeed.init_inference": True},
    ),
    "megatron-tp2": ("xcfg_megatron.testing.cases:megatron_play", 2, {"training.tensor_parallel_size": 2}),
}


def batch() -> Any:
    """Rows of one length, so that nothing is padded."""
    import numpy as np

    from xcfg.model.sample import TokenBatch

    drawn = np.random.default_rng(0).integers(5, 1000, (ROWS, PROMPT + RESPONSE)).tolist()
    return TokenBatch(
        ids=[f"s{row}" for row in range(ROWS)],
        prompts=[row[:PROMPT] for row in drawn],
        responses=[row[PROMPT:] for row in drawn],
        action_masks=[[True] * RESPONSE] * ROWS,
    )


def bare(live: Any, tokens: Any, share: tuple[int, int]) -> None:
    """The forward passes of this rank's rows, ``share`` of (place, number), and their logprobs."""
    import torch

    place, number = share
    ids = torch.tensor(
        [[*prompt, *response] for prompt, response in zip(tokens.prompts, tokens.responses, strict=True)]
    )
    with torch.no_grad():
        for start in range(place * BATCH, ROWS, number * BATCH):
            rows = ids[start : start + BATCH]
            positions = torch.arange(rows.shape[1]).expand(rows.shape)
            mask = torch.ones_like(rows)
            output = live.model(input_ids=rows, attention_mask=mask, position_ids=positions, use_cache=False)
            logits = output.logits[:, PROMPT - 1 : -1]
            places = rows[:, PROMPT:, None] % logits.shape[-1]
            torch.log_softmax(logits.float(), dim=-1).gather(-1, places)


def rank(name: str) -> None:
    """One rank: opens the engine and times pairs."""
    began = time.perf_counter()
    import torch.distributed as dist

    from xcfg.model.scorer import Role
    from xcfg.plugin import ScoreRequest, ScorerSpec, Settings
    from xcfg_torch.testing.play import load

    make, ranks, knobs = PLAYS[name]
    play = load(make)(MODEL, {"training.world_size": ranks, **knobs, "batch.size": BATCH})
    settings, materializer, scorer = Settings(), load(play.materializer)(), load(play.scorer)()
    for knob, value in play.knobs.items():
        materializer.apply(knob, value, settings)
    imported = time.perf_counter()
    own = int(os.environ.get("RANK", 0))
    scorer.open(
        ScorerSpec(
            role=Role.TRAINING, checkpoint=MODEL, trust_remote_code=False, rank=own, world_size=ranks,
            engine=settings.engine,
        )
    )  # fmt: skip
    opened = time.perf_counter()
    tokens, live = batch(), scorer.live
    peers = max(int(play.knobs.get("training.tensor_parallel_size") or 1), 1)
    share = (own // peers, ranks // peers)
    wait = dist.barrier if ranks > 1 else (lambda: None)
    ours, theirs = [], []
    with load(play.backend)().bind(scorer.kernel_request("selected_logprob", {})) as bound:
        request = ScoreRequest(settings=settings.request, operators={"selected_logprob": bound})
        for turn in range(TURNS):
            times = []
            for work in (lambda: scorer.score(tokens, request), lambda: bare(live, tokens, share)):
                wait()
                start = time.perf_counter()
                work()
                wait()
                times.append(time.perf_counter() - start)
            if turn > 1:
                ours.append(times[0])
                theirs.append(times[1])
    if own == 0:
        count = ROWS * (PROMPT + RESPONSE)
        ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
        speeds = [count / statistics.median(times) for times in (ours, theirs)]
        seconds = f"import {imported - began:.1f} s, open {opened - imported:.1f} s"
        print(
            f"{name}: {seconds}; scorer {speeds[0]:.0f}, bare {speeds[1]:.0f} tokens/s, ratio {ratio:.2f}", flush=True
        )
    wait()
    os._exit(0)


def main(names: list[str]) -> None:
    """Launches the ranks of every engine in turn."""
    for name in names or list(PLAYS):
        ranks = PLAYS[name][1]
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu"}
        environment["LOCAL_SIZE"] = str(ranks)
        subprocess.run([sys.executable, *launch, __file__, "--rank", name], check=True, env=environment)


if __name__ == "__main__":
    if "--rank" in sys.argv:
        rank(sys.argv[-1])
    main(sys.argv[1:])
