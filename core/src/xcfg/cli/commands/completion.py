"""``xcfg completion``."""

from __future__ import annotations

import click

from xcfg.cli.output import document, emit, json_option
from xcfg.cli.session import Session


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_obj
def completion(session: Session, shell: str, as_json: bool) -> None:
    """Print the lines that complete xcfg's commands and options in SHELL.

    \b
    bash:  eval "$(xcfg completion bash)"      in ~/.bashrc
    zsh:   eval "$(xcfg completion zsh)"       in ~/.zshrc
    fish:  xcfg completion fish | source       in ~/.config/fish/config.fish
    """  # noqa: D301  click keeps the lines of a paragraph that starts with a backspace
    from click.shell_completion import get_completion_class

    from xcfg.cli.main import COMPLETE, cli

    made = get_completion_class(shell)
    assert made is not None  # the shells above are click's own
    text = made(cli, {}, "xcfg", COMPLETE).source()
    emit(
        session,
        as_json,
        document("completion", shell=shell, script=text),
        lambda out: out.print(text, markup=False, soft_wrap=True),
    )
