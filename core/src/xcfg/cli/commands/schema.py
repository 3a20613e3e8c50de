"""``xcfg schema``."""

from __future__ import annotations

import json

import click

from xcfg.cli.output import json_option, print_out
from xcfg.cli.session import Session


@click.command()
@json_option
@click.pass_obj
def schema(session: Session, as_json: bool) -> None:
    """Print the JSON Schema of experiment files, with the domains of the installed knobs."""
    from xcfg.planner.schema import experiment_schema

    del as_json  # the schema is JSON either way
    content = {"schema": "xcfg.schema/1", "status": "pass", **experiment_schema(session.registry())}
    print_out(json.dumps(content, indent=2, ensure_ascii=False))
