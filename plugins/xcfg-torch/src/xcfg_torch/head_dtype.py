"""An output head computed in a dtype of its own."""

from __future__ import annotations

from typing import Any

from xcfg.errors import UnsupportedError
from xcfg_torch.dtypes import torch_dtype


def compute_head_in(model: Any, dtype: str) -> None:
    """Make the output head compute in ``dtype``: its input is cast, and it gets a copy of its weights in that dtype.

    Of tied weights the embedding keeps its own. Must come before :func:`xcfg_torch.observe.observe`, which then sees
    the cast input. Raises UnsupportedError for a model without a linear output head.
    """
    import torch

    head = model.get_output_embeddings()
    if not isinstance(head, torch.nn.Linear):
        raise UnsupportedError(
            f"the output head of {type(model).__name__} is a {type(head).__name__}, not a linear layer",
            where="torch.head_dtype",
        )
    wanted = torch_dtype(dtype)
    for name, parameter in list(head.named_parameters(recurse=False)):
        copied = torch.nn.Parameter(parameter.detach().to(wanted), requires_grad=parameter.requires_grad)
        head.register_parameter(name, copied)

    def cast(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (args[0].to(wanted), *args[1:])

    head.register_forward_pre_hook(cast)
