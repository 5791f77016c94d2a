"""The commands ``judge``, which asks models, and ``judgements``, about what they said."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import click

from gradestack import ConfigError, csv_line, forward_termination, terminal_line
from gradestack.jsonio import compact, dumps


@click.command(epilog="Example: gradestack judge suite.yaml --estimate")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--rubric", metavar="FILE", help="Judge FILES by this rubric; without it FILES is a suite."
)
@click.option("--judgements", metavar="FILE", help="Where replies are kept, with --rubric.")
@click.option(
    "--base-url",
    metavar="URL",
    help="Address that speaks as OpenAI's does: https://api.openai.com/v1.",
)
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the key.")
@click.option(
    "--header-env",
    "headers",
    multiple=True,
    metavar="HEADER=NAME",
    help="Header, and variable it is from.",
)
@click.option(
    "--offline", is_flag=True, help="Ask nothing; exit code 3 if a judgement is not on record."
)
@click.option(
    "--estimate", is_flag=True, help="Print how much there is to ask and what it costs at most."
)
@click.option(
    "--max-cost", type=click.FloatRange(0), metavar="USD", help="Stop before more is spent."
)
@click.option(
    "--max-requests", type=click.IntRange(0), metavar="N", help="Stop after so many requests."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=16,
    help="Requests at a time [default: 16].",
)
@click.option(
    "--rpm",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Requests per minute at most.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    help="Seconds [default: 60].",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=6,
    help="Of a request that fails [default: 6].",
)
@click.option(
    "--backoff",
    type=click.FloatRange(0),
    default=1.0,
    help="Seconds before the first [default: 1].",
)
@click.option(
    "--repairs",
    type=click.IntRange(0, 10),
    default=1,
    help="Of a reply that is no verdict [default: 1].",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Print N samples for people to label, as CSV.",
)
@click.option(
    "--again",
    metavar="STATE,...",
    default="",
    help="Ask again where the reply on record is malformed, say.",
)
@click.option("--reader", metavar="NAME", help="Format of FILES [default: recognised by content].")
@click.option("--records", metavar="PATH", help="Path to the list of records in one JSON document.")
@click.option("--id", "ids", metavar="PLACE", help="Field or path of the task id.")
@click.option("--dataset", metavar="FILE", help="Expectations, joined by id.")
@click.option(
    "--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Set any option of a suite."
)
@click.option(
    "--allow-code", is_flag=True, help="Import the Python code that is named. Only if you trust it."
)
@click.option(
    "--allow-outside",
    is_flag=True,
    help="Open the suite's files outside its folder. Only if you trust it.",
)
def judge(files: tuple[str, ...], *, rubric: str | None, again: str, **given: Any) -> None:
    """Ask a model for the verdicts on FILES (or a suite) that are not on record yet.

    Replies are kept as they arrive: after Ctrl-C or a failure the same command goes on. `gradestack
    grade` and `gradestack run` read them and ask nobody.
    """
    import attrs  # noqa: PLC0415

    # needs what --help does not
    from gradestack_plugins.judges.asking import Asker, connection_to  # noqa: PLC0415
    from gradestack_plugins.judges.session import judge as ask_judge  # noqa: PLC0415

    def say(line: str) -> None:
        click.echo(terminal_line(line), err=True)

    address = {name: given.pop(name) for name in ("base_url", "api_key_env", "headers")}
    how = {name: given.pop(name) for name in [*given] if name in attrs.fields_dict(Asker)}
    asker = Asker(connect=partial(connection_to, **address), say=say, **how)
    if (number := given.pop("sample")) is not None:
        _print_samples(files, number, given["reader"], given["dataset"])
        return
    if rubric is None:
        if len(files) > 1 or Path(files[0]).suffix.lower() not in {"", ".yaml", ".yml", ".json"}:
            raise ConfigError(
                "--rubric FILE is missing, by which to judge result files; without it, name one "
                "suite"
            )
        for name in ("judgements", "reader", "records", "ids", "dataset"):
            if given.pop(name) is not None:
                raise ConfigError(f"--{name} goes with --rubric; of a suite use --set")
    elif given["judgements"] is None:
        raise ConfigError("--judgements FILE is missing: where replies are kept")

    given |= {
        "ask": asker,
        "say": say,
        "again": [each.strip() for each in again.split(",") if each.strip()],
    }
    with forward_termination():
        ask_judge(files[0] if rubric is None else files, rubric=rubric, **given)


def _print_samples(
    files: tuple[str, ...], number: int, reader: str | None, dataset: str | None
) -> None:
    """Print samples to label, drawn by a hash of what names them."""
    from gradestack import stream  # noqa: PLC0415 - needs what --help does not
    from gradestack_plugins.judges.grader import shown_run  # noqa: PLC0415

    drawn: list[tuple[str, list[str]]] = []
    for sample, _ in stream(files, {"id": lambda _: True}, reader=reader, dataset=dataset):
        named = [sample.id, sample.model or "", "" if sample.run is None else str(sample.run)]
        asked = sample.input if isinstance(sample.input, str) else compact(sample.input)
        answer = dumps(shown_run(sample, ("turns",))) if sample.text is None else sample.text
        drawn.append(
            (hashlib.sha256(dumps(named).encode()).hexdigest(), [*named, "", asked, answer])
        )
        drawn = sorted(drawn)[:number] if len(drawn) > 4 * number else drawn
    for row in (
        ["id", "model", "run", "label", "input", "answer"],
        *(row for _, row in sorted(drawn)[:number]),
    ):
        click.echo(csv_line(*row), nl=False)


@click.group()
def judgements() -> None:
    """Look after journals of judgements."""


@judgements.command()
@click.argument("journals", nargs=-1, required=True, metavar="JOURNAL...")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to write them as one.")
def merge(journals: tuple[str, ...], *, output: str) -> None:
    """Write the judgements of several journals as one, sorted.

    Two replies to one request are refused.
    """
    from gradestack_plugins.judges.journal import merge_judgements  # noqa: PLC0415

    number = merge_judgements([Path(each) for each in journals], Path(output))
    click.echo(terminal_line(f"{output}: {number:,} judgements"))
