"""The commands ``judge``, which asks models, and ``judgements``, about what they said."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import click

from gradestack import ConfigError, csv_line, forward_termination, terminal_line
from gradestack.jsonio import compact, dumps
from gradestack_plugins.command_options import (
    allow_code_option,
    allow_outside_option,
    set_option,
)


@click.command(epilog="Example: gradestack judge suite.yaml --estimate")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--rubric", metavar="FILE", help="Judge FILES by this rubric. Without it FILES is a suite."
)
@click.option("--judgements", metavar="FILE", help="File for the model's replies, with --rubric.")
@click.option(
    "--base-url",
    metavar="URL",
    help="Address of an API like OpenAI's: https://api.openai.com/v1.",
)
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@click.option(
    "--header-env",
    "headers",
    multiple=True,
    metavar="HEADER=NAME",
    help="HTTP header, and the environment variable with its value.",
)
@click.option(
    "--offline", is_flag=True, help="Do not ask. Exit code 3 if a run has no stored verdict."
)
@click.option(
    "--estimate", is_flag=True, help="Print how many requests there are and what they cost at most."
)
@click.option(
    "--max-cost", type=click.FloatRange(0), metavar="USD", help="Stop before the cost exceeds this."
)
@click.option("--max-requests", type=click.IntRange(0), metavar="N", help="Stop after N requests.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=16,
    help="Number of requests at a time [default: 16].",
)
@click.option(
    "--rpm",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Most requests per minute.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    help="Seconds to wait for a reply [default: 60].",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=6,
    help="Number of times to repeat a failed request [default: 6].",
)
@click.option(
    "--backoff",
    type=click.FloatRange(0),
    default=1.0,
    help="Seconds before the first repetition [default: 1].",
)
@click.option(
    "--repairs",
    type=click.IntRange(0, 10),
    default=1,
    help="Number of times to ask again after a malformed reply [default: 1].",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Print N runs for people to label, as CSV.",
)
@click.option(
    "--again",
    metavar="STATE,...",
    default="",
    help="Ask again for runs whose stored reply is STATE (malformed, refused, ...).",
)
@click.option("--reader", metavar="NAME", help="Format of FILES [default: recognised by content].")
@click.option("--records", metavar="PATH", help="Path to the list of records in one JSON document.")
@click.option("--id", "ids", metavar="PLACE", help="Field or path of the task id.")
@click.option("--dataset", metavar="FILE", help="File of expectations, matched to runs by id.")
@set_option
@allow_code_option
@allow_outside_option
def judge(files: tuple[str, ...], *, rubric: str | None, again: str, **options: Any) -> None:
    """Ask a model to judge the runs in FILES, or of a suite, that have no stored verdict.

    Replies are stored as they arrive. After Ctrl-C or a failure, run the same command again.
    `gradestack grade` and `gradestack run` read the stored replies and ask no model.
    """
    import attrs  # noqa: PLC0415

    # needs what --help does not
    from gradestack_plugins.judges.asking import Asker, connection_to  # noqa: PLC0415
    from gradestack_plugins.judges.session import judge as ask_judge  # noqa: PLC0415

    def echo(line: str) -> None:
        click.echo(terminal_line(line), err=True)

    address = {name: options.pop(name) for name in ("base_url", "api_key_env", "headers")}
    of_asker = [name for name in options if name in attrs.fields_dict(Asker)]
    how = {name: options.pop(name) for name in of_asker}
    asker = Asker(connect=partial(connection_to, **address), echo=echo, **how)
    number = options.pop("sample")
    if number is not None:
        _print_samples(files, number, options["reader"], options["dataset"])
        return
    if rubric is None:
        _refuse_options_of_rubrics(files, options)
    elif options["judgements"] is None:
        raise ConfigError("--judgements FILE is missing: where replies are kept")
    states = [state.strip() for state in again.split(",")]
    options |= {"ask": asker, "echo": echo, "again": list(filter(None, states))}
    with forward_termination():
        ask_judge(files[0] if rubric is None else files, rubric=rubric, **options)


def _refuse_options_of_rubrics(files: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse result files, and options of them, without a rubric; take these options out."""
    first_file_path = Path(files[0])
    is_suite = first_file_path.suffix.lower() in {"", ".yaml", ".yml", ".json"}
    if len(files) > 1 or not is_suite:
        problem = "--rubric FILE is missing, by which to judge result files"
        raise ConfigError(f"{problem}; without it, name one suite")
    for name in ("judgements", "reader", "records", "ids", "dataset"):
        if options.pop(name) is not None:
            raise ConfigError(f"--{name} goes with --rubric; of a suite use --set")


_COLUMNS = ("id", "model", "run", "label", "input", "answer")


def _print_samples(
    files: tuple[str, ...], number: int, reader: str | None, dataset: str | None
) -> None:
    """Print samples to label, drawn by a hash of their id, model and run."""
    from gradestack import stream  # noqa: PLC0415 - needs what --help does not
    from gradestack_plugins.judges.grader import shown_run  # noqa: PLC0415

    sampled: list[tuple[str, list[str]]] = []
    for sample, _ in stream(files, {"id": lambda _: True}, reader=reader, dataset=dataset):
        key = [sample.id, sample.model or "", "" if sample.run is None else str(sample.run)]
        if isinstance(sample.input, str):
            question = sample.input
        else:
            question = compact(sample.input)
        if sample.text is None:
            text = dumps(shown_run(sample, ("turns",)))
        else:
            text = sample.text
        digest = hashlib.sha256(dumps(key).encode()).hexdigest()
        sampled.append((digest, [*key, "", question, text]))
        if len(sampled) > 4 * number:
            sampled = sorted(sampled)[:number]
    rows = [row for _, row in sorted(sampled)[:number]]
    for row in (_COLUMNS, *rows):
        click.echo(csv_line(*row), nl=False)


@click.group()
def judgements() -> None:
    """Manage files of stored replies."""


@judgements.command()
@click.argument("journals", nargs=-1, required=True, metavar="JOURNAL...")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write.")
def merge(journals: tuple[str, ...], *, output: str) -> None:
    """Join several files of stored replies into one, sorted.

    Two different replies to one request are refused.
    """
    from gradestack_plugins.judges.journal import merge_judgements  # noqa: PLC0415

    paths = [Path(journal_path) for journal_path in journals]
    number = merge_judgements(paths, Path(output))
    text = f"{output}: {number:,} judgements"
    click.echo(terminal_line(text))
