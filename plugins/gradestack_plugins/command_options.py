"""Options that commands of several packages share."""

from __future__ import annotations

from typing import Final

import click

set_option: Final = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set any option of the suite. VALUE is YAML.",
)
allow_code_option: Final = click.option(
    "--allow-code",
    is_flag=True,
    help="Import Python code that is named. Use it only if you trust the code.",
)
allow_outside_option: Final = click.option(
    "--allow-outside",
    is_flag=True,
    help="Let the suite name files outside its folder. Use it only if you trust the suite.",
)
