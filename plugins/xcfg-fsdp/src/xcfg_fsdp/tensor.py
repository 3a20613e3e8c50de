"""Tensor parallelism: the linear layers of each decoder layer, the embedding and the output head split over ranks.

Megatron's scheme (Shoeybi et al. 2019, arXiv:1909.08053) as DTensor styles: the first projections of attention and MLP
by columns, the last by rows, so that each of the two ends in one sum over ranks; embedding and head by vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcfg_fsdp.tensor_limits import COLUMNS, ROWS, check_layers, check_sizes
from xcfg_torch.compiling import decoder_layers
from xcfg_torch.head import FULL_VOCABULARY, HeadShare
from xcfg_torch.semantics import vocab_size

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


def split_model(model: Any, mesh: DeviceMesh) -> None:
    """Split ``model`` in place over the one dimension of ``mesh``. The logits are then this rank's columns.

    Raises UnsupportedError for a model whose layers are built otherwise or do not divide by the ranks.
    """
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    check_sizes(model, mesh.size())
    check_layers(model)
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    tied = embedding.weight is head.weight
    for layer in decoder_layers(model):
        plan = {**{name: ColwiseParallel() for name in COLUMNS}, **{name: RowwiseParallel() for name in ROWS}}
        parallelize_module(layer, mesh, plan)
    parallelize_module(embedding, mesh, RowwiseParallel(input_layouts=Replicate()))
    parallelize_module(head, mesh, ColwiseParallel(output_layouts=Shard(-1)))
    if tied:  # each was replaced by a part of its own
        head.weight = embedding.weight


def head_share(model: Any, mesh: DeviceMesh, layout: str | None) -> HeadShare:
    """The columns of the output head on this rank of ``mesh``, of equal size on all ranks."""
    columns = vocab_size(model)
    each = columns // mesh.size()
    return HeadShare(
        group=mesh.get_group(),
        rank=mesh.get_local_rank(),
        bounds=tuple((rank * each, (rank + 1) * each) for rank in range(mesh.size())),
        vocab_size=columns,
        layout=layout or FULL_VOCABULARY,
    )
