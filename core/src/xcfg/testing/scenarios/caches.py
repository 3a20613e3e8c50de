"""A cache, its blocks, chunks and pages."""

from __future__ import annotations

import numpy as np

from xcfg.testing.scenarios.draft import Draft
from xcfg.testing.scenarios.layout import Wants
from xcfg.testing.scenarios.magnitude import NARROW, disturbance
from xcfg.testing.scenarios.scenario import scenario

EITHER = ("block", "stale-prefix")
"""Both speak of blocks of a cache; where a region starts at one, honest experts use either name."""


def _absolute(draft: Draft) -> np.ndarray:
    absolute: np.ndarray = draft.position + draft.column("prompt_length")[draft.row]
    return absolute


@scenario("stale-prefix-edge", "stale-prefix", cause=("C2",), keep=("prompt_length",), wants=Wants(turns=False))
def prefix_edge(draft: Draft) -> None:
    """Rows drift from their start up to a multiple of the block size: blocks cached under the old weights."""
    block = int(draft.pick(16, 32))
    absolute, prompt = _absolute(draft), draft.column("prompt_length")
    most = draft.generator.integers(2, 5, draft.shape.rows)
    edge = (prompt // block + np.minimum(most, np.maximum(1, draft.rows.length // block // 2))) * block
    hit = draft.generator.random(draft.shape.rows) < draft.pick(0.6, 1.0)
    hit[np.argmax(draft.rows.length)] = True
    draft.facts.update(block=block, edge=edge)
    draft.disturb(draft.rollout, (absolute < edge[draft.row]) & hit[draft.row], 2 * disturbance(draft))


@scenario("stale-prefix-common", "stale-prefix", cause=("C2",), wants=Wants(turns=False), accept=("block",))
def prefix_common(draft: Draft) -> None:
    """All rows drift up to one block edge of the response: answers that were prefilled from a cached draft."""
    edge = 16 * int(draft.pick(1, 2))
    draft.facts["edge"] = edge
    draft.disturb(draft.rollout, draft.position < edge, 2 * disturbance(draft))


@scenario("stale-prefix-group", "stale-prefix", accept=("sequences", "boundary-start", "unknown"))
def prefix_group(draft: Draft) -> None:
    """Rows that share a prompt drift, most at the start, then less and less: only their prefix was cached.

    Without an edge to see it is some rows, all of each, or their starts.
    """
    prompt = draft.column("prompt_length")
    groups = np.unique(prompt)
    hit = np.isin(prompt, draft.generator.permutation(groups)[: max(1, len(groups) // 3)])
    fade = np.exp(-draft.position / draft.between(30, 80))
    draft.disturb(draft.rollout, fade * hit[draft.row], 4 * disturbance(draft))


@scenario("block-pages", "block", cause=("C1",), keep=("prompt_length",), accept=EITHER, wants=Wants(turns=False))
def pages(draft: Draft) -> None:
    """Here and there the tokens of one page of the cache drift, and the next page is fine."""
    size = int(draft.pick(16, 32))
    page = _absolute(draft) // size
    key = draft.row * (page.max() + 1) + page
    known = np.unique(key)
    hit = known[draft.generator.random(len(known)) < 0.3]
    draft.facts["size"] = size
    draft.disturb(draft.rollout, np.isin(key, hit), 2 * disturbance(draft))


@scenario("block-draft", "block", cause=("C1",), wants=Wants(turns=False))
def draft_tokens(draft: Draft) -> None:
    """Every k-th token drifts: a speculative draft's first token is scored from a stale state."""
    every = int(draft.pick(4, 5, 8))
    draft.facts["every"] = every
    draft.disturb(draft.rollout, draft.position % every == 0, 2 * disturbance(draft))


@scenario("block-restart", "block", cause=("C3",), accept=EITHER, wants=Wants(turns=False))
def restart(draft: Draft) -> None:
    """After each multiple of the chunk drift sets in and fades: a recurrent state that starts again there."""
    most = draft.position.max() // 2
    chunk = int(draft.pick(16, *(size for size in (32, 64, 128) if size <= most)))
    fade = np.exp(-(draft.position % chunk) / (chunk / 6)) * (draft.position >= chunk)
    draft.facts["chunk"] = chunk
    draft.disturb(draft.training, np.where(fade > 0.05, fade, 0), 2 * disturbance(draft, NARROW))


@scenario(
    "block-chunk", "block", keep=("prompt_length",), wants=Wants(turns=False, equal=True), accept=(*EITHER, "length")
)
def chunk_edge(draft: Draft) -> None:
    """Fine up to 128, 256 or 512 tokens of context, then drift: chunked prefill hands over a stale state.

    Once a single edge is all there is to see, a limit of length looks the same.
    """
    absolute = _absolute(draft)
    edges = [edge for edge in (64, 128, 256, 512) if 0.2 < np.mean(absolute >= edge) < 0.8]
    edge = int(draft.generator.choice(edges)) if edges else int(np.median(absolute)) // 16 * 16
    draft.facts["edge"] = edge
    draft.disturb(draft.rollout, absolute >= edge, 2 * disturbance(draft))
