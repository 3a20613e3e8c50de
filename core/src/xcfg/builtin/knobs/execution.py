"""By which route a result is reached."""

from __future__ import annotations

from xcfg.builtin.domains import choice, count, switch
from xcfg.builtin.knobs.declare import BOTH_PROCESS, ROLLOUT_ENGINE, ROLLOUT_REQUEST, declare
from xcfg.model.knob import SourceClass

EXECUTION = (
    declare(
        "rollout.scoring_path",
        "Route on which fixed tokens are scored: decoding with the next token forced, or one prefill",
        SourceClass.EXECUTION,
        ROLLOUT_REQUEST,
        choice("forced_decode", "prefill"),
        "forced_decode",
        (1, 1, 1),
        {"rollout.scoring_path": "prefill"},
    ),
    declare(
        "execution.prefix_cache",
        "Reuse of keys and values of prompts seen before",
        SourceClass.EXECUTION,
        ROLLOUT_ENGINE,
        switch(optional=True),
        False,
        (1, 0, 0),
        {"execution.prefix_cache": False},
    ),
    declare(
        "execution.threads",
        "CPU threads of each process",
        SourceClass.EXECUTION,
        BOTH_PROCESS,
        count(),
        1,
        (1, 0, 0),
        {"execution.threads": 1},
    ),
    declare(
        "rollout.chunked_prefill",
        "Let the rollout engine prefill a prompt in several steps",
        SourceClass.EXECUTION,
        ROLLOUT_ENGINE,
        switch(optional=True),
        None,
        (1, 0, 0),
        {"rollout.chunked_prefill": None},
    ),
    declare(
        "execution.max_num_seqs",
        "Most sequences the rollout engine runs in one step",
        SourceClass.EXECUTION,
        ROLLOUT_ENGINE,
        count(optional=True),
        None,
        (1, 0, 0),
        {"execution.max_num_seqs": None},
    ),
)
"""Knobs of the source class ``execution``."""
