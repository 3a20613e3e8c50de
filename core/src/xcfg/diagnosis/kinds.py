"""The kinds of fault: class, sub-class, what to check. In order of preference where two explain the same."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Kind:
    """``advice`` says what to check and where the evidence ends."""

    source_class: str
    subclass: str
    advice: str


_L = "logical"
_TOKENS, _PLACES, _WEIGHTS = (f"{_L}/{name}" for name in ("tokens-and-masks", "positions", "weights-and-version"))
_SAMPLING, _CACHE, _SEEN = (f"{_L}/{name}" for name in ("sampling-semantics", "cache-state", "observation"))
_TABLE = {
    "shift": (
        _TOKENS,
        "one side reports the logprob of a neighbouring token: logits at t-1 score token t; check the label shift, the "
        "slice of the response and the roll over padding",
    ),
    "duplicated-step": (
        _SEEN,
        "one side holds the same logprobs twice: check what is written when a step or row is retried, and what an "
        "index into a buffer points to",
    ),
    "pairing": (
        _TOKENS,
        "rows are paired with another row's logprobs: check the order in which batches are gathered, sorted and joined",
    ),
    "padded-zero": (_SEEN, "a logprob of exactly 0 is probability 1: check what fills places that were not scored"),
    "truncated": (
        _TOKENS,
        "values end at one place in all rows: check the length limit of the scoring pass and its fill",
    ),
    "constant-offset": (
        _SEEN,
        "the normaliser of one side is another: check the rows added to the vocabulary and how the log-softmax is "
        "taken",
    ),
    "temperature": (
        _SAMPLING,
        "check that both sides divide the logits by the same temperature, and whether the engine reports raw or "
        "processed logprobs; a scale of the logits looks the same",
    ),
    "processed": (
        _SAMPLING,
        "some token ids are moved and the rest follows: check logit bias, penalties and other processors of one side",
    ),
    "kept-mass": (
        _SAMPLING,
        "one side renormalises on the kept tokens: check top-p, top-k and min-p, and raw against processed logprobs",
    ),
    "monotone": (_SAMPLING, "order kept, distances not: check softcap and scale of the logits, and their order"),
    "proportional": (
        "arithmetic/",
        "drift in proportion to logp: check the logit scale, a fused loss and the dtype of its sums",
    ),
    "above-zero": (
        _SEEN,
        "a probability above 1: check the normaliser and what is gathered before the logprob is written",
    ),
    "low-precision-storage": (
        "representation/storage",
        "logprobs of one side were kept in fewer bits: store them in float32",
    ),
    "boundary-end": (
        _TOKENS,
        "only the last tokens: check the roll of labels over sequence boundaries in a packed batch, and the end token",
    ),
    "boundary-start": (
        _TOKENS,
        "only the first tokens: check where the response begins and what scores its first token",
    ),
    "left-padding": (_PLACES, "only padded rows: check position ids and mask of left-padded rows"),
    "packed-positions": (_PLACES, "only rows behind others: check that positions start anew at each packed sequence"),
    "rank": ("execution/", "only rows of some ranks: check placement, weights and environment of those ranks"),
    "steps-growth": (
        _WEIGHTS,
        "grows from step to step: check that weights reach the rollout at each step, and what a restart reloads",
    ),
    "length": (
        _PLACES,
        "only beyond a length: check the scaling of rotary positions, window and length limit on both sides",
    ),
    "stale-prefix": (
        _CACHE,
        "from the beginning up to a place: check that cached prefixes are dropped when weights change",
    ),
    "block": (_CACHE, "at multiples of a block: check the cache's blocks, chunked prefill and pages"),
    "stale-tail": (
        _WEIGHTS,
        "from a place on, another one in each row: check for weights that changed while a row was being generated",
    ),
    "sequences": (
        "reduction/batch",
        "only some rows, all of each: check whether results depend on the batch, its size and the place in it",
    ),
    "scoring-path": (
        _SEEN,
        "one side scores something else altogether: check what its scoring path leaves out, such as an adapter, and "
        "which prompt it scores behind",
    ),
    "stale-weights": (
        _WEIGHTS,
        "all tokens, no pattern: compare the weights of both sides, tensor by tensor, after the last synchronisation; "
        "other arithmetic looks the same when it is wrong enough",
    ),
    "floor": ("none/", "ordinary noise of this dtype: look elsewhere"),
    "unknown": ("unresolved/", "above the noise of this dtype, and no known pattern explains it"),
}


def _kind(path: str, advice: str) -> Kind:
    source_class, _, subclass = path.partition("/")
    return Kind(source_class, subclass, advice)


KINDS: Mapping[str, Kind] = {name: _kind(*entry) for name, entry in _TABLE.items()}
PREFERENCE: Mapping[str, int] = {name: number for number, name in enumerate(KINDS)}
