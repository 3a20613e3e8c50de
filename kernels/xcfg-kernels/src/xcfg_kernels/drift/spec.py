"""What a sweep measures: topologies, dtypes, the size of the inputs, and the reduction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from xcfg.errors import Fault, InvalidInput
from xcfg.model.json import Json, tupled
from xcfg_kernels.descriptors import DTYPES
from xcfg_kernels.reduction import ReductionSpec, check_reduction
from xcfg_kernels.sharding import ShardingSpec, even_shards

SCALE = 4.0
"""Standard deviation of the logits, near that of a trained language model's."""


@frozen(kw_only=True)
class Topology:
    """A grid of ranks: tensor parallel neighbours share the vocabulary, context parallel ranks the rows."""

    tp: int
    cp: int

    @property
    def world(self) -> int:
        """Ranks in all."""
        return self.tp * self.cp

    def place(self, rank: int) -> tuple[int, int]:
        """(tp_rank, cp_rank) of a rank."""
        return rank % self.tp, rank // self.tp

    def rows(self, cp_rank: int, rows: int) -> tuple[int, int]:
        """The first row of a context parallel rank, and the one behind its last."""
        share = rows // self.cp
        return cp_rank * share, (cp_rank + 1) * share


@frozen(kw_only=True)
class DriftSpec:
    """One sweep. Raises InvalidInput naming every topology that the vocabulary or the rows do not allow."""

    tp: tuple[int, ...] = field(default=(1, 2, 4), converter=tupled)
    cp: tuple[int, ...] = field(default=(1, 2), converter=tupled)
    dtypes: tuple[str, ...] = field(default=("bfloat16", "float32"), converter=tupled)
    vocab_size: int = 151936
    rows: int = 64
    seed: int = 0
    reduction: ReductionSpec = field(factory=ReductionSpec)
    implementation: str = "eager"

    def __attrs_post_init__(self) -> None:
        """Raises InvalidInput."""
        if faults := tuple(_faults(self)):
            raise InvalidInput(faults=faults)

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """Every tensor parallel degree with the first context parallel one, then with the next."""
        return tuple(Topology(tp=tp, cp=cp) for cp in self.cp for tp in self.tp)

    def sharding(self, topology: Topology, tp_rank: int) -> ShardingSpec:
        """The columns of a tensor parallel rank."""
        vocab = self.vocab_size
        return even_shards(vocab_size=vocab, padded_vocab_size=vocab, tp_world=topology.tp, tp_rank=tp_rank)

    def record(self) -> Mapping[str, Json]:
        """What is reduced and how, for the report."""
        return {
            **self.reduction.record(self.vocab_size),
            "implementation": self.implementation,
            "context_parallel": "splits the rows, which are never merged",
        }


def _faults(spec: DriftSpec) -> Iterator[Fault]:
    for name, values in (("tp", spec.tp), ("cp", spec.cp)):
        if not values or min(values) < 1 or len(set(values)) < len(values):
            yield Fault(message=f"degrees are whole numbers from 1, each once, not {list(values)}", where=f"--{name}")
    if not spec.dtypes or len(set(spec.dtypes)) < len(spec.dtypes) or set(spec.dtypes) - set(DTYPES):
        yield Fault(message=f"each of {', '.join(DTYPES)} at most once, not {list(spec.dtypes)}", where="--dtype")
    if spec.rows < 1:
        yield Fault(message=f"there is nothing to score in {spec.rows} rows", where="--rows")
    if spec.seed < 0:
        yield Fault(message=f"a seed is at least 0, not {spec.seed}", where="--seed")
    for cp in spec.cp:
        if cp >= 1 and spec.rows % cp:
            message = f"{spec.rows} rows do not split evenly over {cp} context parallel ranks"
            yield Fault(message=message, where="--rows", hint="give a multiple")
    for tp in spec.tp:
        yield from _sharding_faults(spec, tp)


def _sharding_faults(spec: DriftSpec, tp: int) -> Iterator[Fault]:
    if tp < 1:
        return
    try:
        check_reduction(spec.reduction, spec.sharding(Topology(tp=tp, cp=1), 0))
    except InvalidInput as refused:
        for fault in refused.faults:
            yield Fault(message=f"at tensor parallel degree {tp}: {fault.message}", where=fault.where, hint=fault.hint)
