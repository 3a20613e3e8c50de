"""The Python of pages on ranks of gloo: ``ranks.py FOLDER PAGE...``. Forks, so that torch is imported once.

Prints a JSON object: what went wrong on each page, empty where nothing did.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from ranks_grpo import grpo
from snippets import ROOT, blocks

ROWS, VOCAB, PADDED = 3, 151936, 152064


def run(page: Path, number: int, names: dict[str, object]) -> dict[str, object]:
    """Run the Python block of this number on the page."""
    block = [item for item in blocks(page) if item.language == "python"][number]
    exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True), names)
    return names


def logprobs(page: Path, rank: int, world: int) -> None:
    """Logprobs and their gradient, against numpy's float64; the columns of padding are large and must not count."""
    width = PADDED if "deterministic" in page.name else VOCAB
    draws = np.random.default_rng(7)
    whole = draws.normal(0, 4, (ROWS, width)).astype(np.float32)
    whole[:, VOCAB:] = 1e4
    targets = np.array([0, VOCAB // 2 + 1, VOCAB - 1])
    own = slice(rank * width // world, (rank + 1) * width // world)
    leaf = torch.tensor(whole[:, own]).requires_grad_()
    group = dist.group.WORLD if world > 1 else None
    names = {"rank": rank, "logits": leaf, "targets": torch.tensor(targets), "tp_group": group}
    found = run(page, 0, names)["logprobs"]
    real = whole[:, :VOCAB].astype(np.float64)
    exact = real - real.max(1, keepdims=True)
    exact -= np.log(np.exp(exact).sum(1, keepdims=True))
    np.testing.assert_allclose(found.detach().numpy(), exact[range(ROWS), targets], atol=1e-5)
    found.sum().backward()
    gradient = np.zeros((ROWS, width))
    gradient[:, :VOCAB] = -np.exp(exact)
    gradient[range(ROWS), targets] += 1
    np.testing.assert_allclose(leaf.grad.numpy(), gradient[:, own], atol=1e-6)


PAGES = {
    "docs/explanation/deterministic-logprob.md": (logprobs, 2),
    "docs/explanation/grpo-loss.md": (grpo, 8),
    "kernels/xcfg-kernels/README.md": (logprobs, 2),
    "kernels/xcfg-te/README.md": (logprobs, 1),
}


def on_rank(page: str, folder: Path, rank: int) -> None:
    call, world = PAGES[page]
    if world > 1:
        store = dist.FileStore(str(folder / "store"), world)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=120))
    call(ROOT / page, rank, world)
    if world > 1:
        dist.barrier()


def on_ranks(page: str, folder: Path) -> str:
    """What went wrong on each rank that failed."""
    folder.mkdir()
    pids = []
    for rank in range(PAGES[page][1]):
        pid = os.fork()
        if pid == 0:
            said = ""
            try:
                on_rank(page, folder, rank)
            except BaseException:
                said = traceback.format_exc()
            (folder / f"{rank}.txt").write_text(said)
            os._exit(0)
        pids.append(pid)
    ended = [os.waitpid(pid, 0)[1] for pid in pids]
    told = [folder / f"{rank}.txt" for rank in range(len(pids))]
    return "".join(
        file.read_text() if file.exists() else f"ended with {end}" for file, end in zip(told, ended, strict=True)
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({page: on_ranks(page, Path(sys.argv[1]) / str(n)) for n, page in enumerate(sys.argv[2:])}))
