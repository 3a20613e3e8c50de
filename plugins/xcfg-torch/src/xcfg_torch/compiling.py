"""torch.compile of a model's repeated layers."""

from __future__ import annotations

from typing import Any

from xcfg.errors import UnsupportedError


def decoder_layers(model: Any) -> list[Any]:
    """The modules that the model says must stay whole, outermost first. Raises UnsupportedError where it names none.

    FSDP gives a module a class of its own, derived from the one the model names.
    """
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if names & {kind.__name__ for kind in type(module).__mro__}]
    if not layers:
        raise UnsupportedError(f"{type(model).__name__} does not say which modules are its layers (_no_split_modules)")
    return layers


def compile_layers(model: Any) -> None:
    """Compile every decoder layer in place, as training frameworks do: they share one graph, and the head stays eager.

    A layer that would be compiled anew too often raises, where torch would go on without the compiled graph. Raises
    UnsupportedError for a model that does not name its layers.
    """
    import torch

    torch._dynamo.config.fail_on_recompile_limit_hit = True
    for layer in decoder_layers(model):
        layer.compile()


def is_compiled(module: Any) -> bool:
    """Whether calls of the module go to a compiled graph."""
    return module._compiled_call_impl is not None
