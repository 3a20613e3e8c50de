"""The group ``xcfg kernels`` and its command ``drift``. Importing it imports click and nothing heavier."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from xcfg_kernels.drift.spec import DriftSpec

ALIASES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
PASS, DRIFT = 0, 1


@click.group()
def kernels() -> None:
    """Measure the kernels of xcfg-kernels."""


@kernels.command()
@click.option("--tp", default="1,2,4", show_default=True, metavar="N,...", help="Tensor parallel degrees.")
@click.option("--cp", default="1,2", show_default=True, metavar="N,...", help="Context parallel degrees.")
@click.option(
    "--dtype", "dtypes", default="bf16,fp32", show_default=True, metavar="D,...", help="Dtypes of the logits."
)
@click.option("--vocab", default=151936, show_default=True, help="Columns of the logits.")
@click.option("--rows", default=64, show_default=True, help="Rows, split over the context parallel ranks.")
@click.option("--seed", default=0, show_default=True, help="Seed of logits and targets.")
@click.option("--scheme", default="canonical_blocks", show_default=True, help="Or order_free.")
@click.option("--block", type=int, default=None, help="Columns of a canonical block (default: by the vocabulary).")
@click.option("--implementation", default="eager", show_default=True, help="Or compiled, or triton.")
@click.option("--timeout", default=600.0, show_default=True, help="Seconds for the ranks of one topology.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
@click.pass_context
def drift(ctx: click.Context, /, tp: str, cp: str, dtypes: str, timeout: float, as_json: bool, **asked: Any) -> int:
    """Measure the drift of topologies and dtypes on real ranks.

    Each is compared with float64 and float32.

    Exits 0 where every topology has the bits of the first and stays within the contract's float32 row, 1 where one
    does not, 2 for options that contradict each other, 7 where ranks fail.
    """
    from xcfg.model.tolerance import DEFAULT_CONTRACT
    from xcfg.plugin.registry import load_registry
    from xcfg_kernels.drift.sweep import sweep

    spec = _spec(tp, cp, dtypes, **asked)
    session = ctx.find_root().obj
    quiet = bool(getattr(session, "quiet", False))
    tell = (lambda text: None) if quiet else (lambda text: click.echo(text, err=True))
    found = {**sweep(spec, load_registry().contract(DEFAULT_CONTRACT), timeout, tell), "command": _command(ctx)}
    if as_json:
        click.echo(json.dumps(found, allow_nan=False, ensure_ascii=False))
    else:
        from xcfg_kernels.drift.table import show

        show(_console(getattr(session, "color", None)), found)
    return PASS if found["status"] == "pass" else DRIFT


def _spec(tp: str, cp: str, dtypes: str, **asked: Any) -> DriftSpec:
    """Raises InvalidInput."""
    from xcfg.errors import InvalidInput
    from xcfg_kernels.drift.spec import DriftSpec
    from xcfg_kernels.reduction import ReductionSpec, Scheme

    if asked["scheme"] not in list(Scheme):
        raise InvalidInput(f"a scheme is one of {', '.join(Scheme)}, not {asked['scheme']!r}", where="--scheme")
    implementations = ("eager", "compiled", "triton")
    if asked["implementation"] not in implementations:
        message = f"an implementation is one of {', '.join(implementations)}, not {asked['implementation']!r}"
        raise InvalidInput(message, where="--implementation")
    return DriftSpec(
        tp=_degrees(tp, "--tp"),
        cp=_degrees(cp, "--cp"),
        dtypes=[ALIASES.get(name.strip(), name.strip()) for name in dtypes.split(",")],
        vocab_size=asked["vocab"],
        rows=asked["rows"],
        seed=asked["seed"],
        reduction=ReductionSpec(scheme=Scheme(asked["scheme"]), block=asked["block"]),
        implementation=asked["implementation"],
    )


def _degrees(text: str, option: str) -> list[int]:
    from xcfg.errors import InvalidInput

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"whole numbers between commas are needed, not {text!r}", where=option) from None


def _command(ctx: click.Context) -> list[str]:
    """What runs this sweep again, every option written out."""
    given: Mapping[str, Any] = ctx.params
    options = [item for item in ctx.command.params if isinstance(item, click.Option) and item.name != "as_json"]
    words = [[item.opts[0], str(given[item.name])] for item in options if item.name and given[item.name] is not None]
    return ["xcfg", "kernels", "drift", *(word for pair in words for word in pair)]


def _console(color: bool | None) -> Console:
    import sys

    from rich.console import Console

    return Console(
        width=None if sys.stdout.isatty() else 132,
        force_terminal=True if color else None,
        no_color=True if color is False else None,
        highlight=False,
        soft_wrap=True,
    )
