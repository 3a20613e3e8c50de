"""The semantic knobs that every engine shares, under the prefixes core owns, one module a source class.

Source classes follow the taxonomy of the measurement contract:

- ``arithmetic``: how one operation is computed (compute dtype, attention kernel, graph compilation, logprob kernel);
- ``reduction``: in which order and over which shards sums are taken (parallel degrees, sharding, batch shape);
- ``representation``: what a tensor is stored in between operations (weights, KV cache, logits);
- ``execution``: by which route a result is reached (decode or prefill, caches, scheduling, threads);
- ``logical``: what is computed at all (logprob semantics, layout of padding, rows and positions).

Defaults are those that every scorer can apply or, with None, those that the engine chooses itself and that are only
observed. The prefix cache is off unless asked for: a warm cache makes a side run depend on the one before it.
"""

from __future__ import annotations

from xcfg.builtin.knobs.arithmetic import ARITHMETIC
from xcfg.builtin.knobs.execution import EXECUTION
from xcfg.builtin.knobs.logical import LOGICAL
from xcfg.builtin.knobs.reduction import REDUCTION
from xcfg.builtin.knobs.representation import REPRESENTATION

KNOBS = (*ARITHMETIC, *REDUCTION, *REPRESENTATION, *EXECUTION, *LOGICAL)
"""Every knob core owns."""
