"""What is computed at all."""

from __future__ import annotations

from xcfg.builtin.domains import choice, count, switch
from xcfg.builtin.knobs.declare import BOTH_ENGINE, BOTH_REQUEST, ROLLOUT_ENGINE, ROLLOUT_REQUEST, declare
from xcfg.model.knob import Domain, Kind, SourceClass

LOGICAL = (
    declare(
        "sampling.logprobs_mode",
        "Whether the rollout engine reports logprobs before or after its logits processors",
        SourceClass.LOGICAL,
        ROLLOUT_ENGINE,
        choice("raw_logprobs", "processed_logprobs"),
        "raw_logprobs",
        (0, 0, 0),
        {"sampling.logprobs_mode": "raw_logprobs"},
    ),
    declare(
        "sampling.temperature",
        "Temperature of the scored distribution; the domain starts where 1/temperature is still harmless in float32",
        SourceClass.LOGICAL,
        ROLLOUT_REQUEST,
        Domain(kind=Kind.FLOAT, minimum=0.01),
        1.0,
        (0, 0, 0),
        {"sampling.temperature": 1.0},
    ),
    declare(
        "layout.padding_side",
        "Side on which rows of a collated batch are padded",
        SourceClass.LOGICAL,
        BOTH_REQUEST,
        choice("left", "right"),
        "right",
        (0, 0, 0),
        {"layout.padding_side": "right"},
    ),
    declare(
        "sampling.top_p",
        "Share of probability that the scored distribution keeps, likeliest tokens first; 1 keeps all",
        SourceClass.LOGICAL,
        ROLLOUT_REQUEST,
        Domain(kind=Kind.FLOAT, minimum=0.01, maximum=1.0),
        1.0,
        (0, 0, 0),
        {"sampling.top_p": 1.0},
    ),
    declare(
        "sampling.top_k",
        "Likeliest tokens that the scored distribution keeps; 0 keeps all",
        SourceClass.LOGICAL,
        ROLLOUT_REQUEST,
        Domain(kind=Kind.INT, minimum=0),
        0,
        (0, 0, 0),
        {"sampling.top_k": 0},
    ),
    declare(
        "layout.packing",
        "Lay several sequences end to end in one row instead of padding each in a row of its own",
        SourceClass.LOGICAL,
        BOTH_REQUEST,
        switch(),
        False,
        (0, 1, 1),
        {"layout.packing": False},
    ),
    declare(
        "layout.position_ids",
        "Where positions count from: the first token of a sequence, or the first column of its padded row",
        SourceClass.LOGICAL,
        BOTH_REQUEST,
        choice("sequential", "padded"),
        "sequential",
        (0, 0, 0),
        {"layout.position_ids": "sequential"},
    ),
    declare(
        "layout.vocab_padding",
        "Multiple to which the rows of the output head are padded; 1 adds none",
        SourceClass.LOGICAL,
        BOTH_ENGINE,
        count(),
        1,
        (1, 1, 1),
        {"layout.vocab_padding": 1},
    ),
)
"""Knobs of the source class ``logical``."""
