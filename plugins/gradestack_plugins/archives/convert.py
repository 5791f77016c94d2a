"""The command ``convert``.

Samples of any format as lines of the ``jsonl`` form, or as ATIF trajectories.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from gradestack import (
    BadRecord,
    ConfigError,
    DataError,
    Status,
    forward_termination,
    stream,
    terminal_line,
)


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--to", "form", type=click.Choice(["jsonl", "atif"]), required=True, help="Format to write."
)
@click.option("-o", "--output", required=True, metavar="OUT", help="FILE.jsonl, or FILE.jsonl.gz.")
@click.option(
    "--plain", is_flag=True, help="Write ATIF without extra.gradestack. Lost fields are counted."
)
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@click.option(
    "--reader", metavar="NAME", help="Format of the files [default: recognised by content]."
)
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Tell which column or path holds a field: id=$.log.id.",
)
@click.option(
    "--records",
    metavar="PATH",
    help="Path to the list of records in one JSON document: $.data.runs.",
)
@click.option(
    "--id", "ids", metavar="PLACE", help="Field or path of the task id. `input` groups by question."
)
@click.option("--no-merge", is_flag=True, help="Keep each logged model call separate.")
@click.option("--dataset", metavar="FILE", help="File of expectations, matched to runs by id.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set an option of the reader. VALUE is YAML.",
)
def convert(
    files: tuple[str, ...], *, form: str, output: str, plain: bool, force: bool, **reading: Any
) -> None:
    """Write FILES of any format that gradestack reads in another format.

    The exit code is 3 if no record could be read. OUT is not written then.
    """
    if plain and form != "atif":
        raise ConfigError("--plain goes with --to atif")
    out = Path(output)
    if out.suffix in {".zst", ".zip", ".bz2", ".xz"}:
        raise ConfigError(f"{output}: only .gz is compressed here; name a file .jsonl or .jsonl.gz")
    if out.exists() and not force:
        raise ConfigError(
            f"{output}: is there already; name another place, or replace it with --force"
        )
    if out.is_symlink() or (
        out.exists() and not out.is_file()
    ):  # replacing a device, pipe or link takes it away
        raise ConfigError(f"{output}: is there already and not a file; name another place")
    with forward_termination():
        _convert(files, form, out, plain=plain, reading=reading)


def _convert(
    files: tuple[str, ...], form: str, out: Path, *, plain: bool, reading: dict[str, Any]
) -> None:
    """Write the samples of files as JSONL or ATIF, and report bad records and lost fields."""
    # needs what --help does not
    from gradestack_plugins.archives.forms import as_atif, as_jsonl  # noqa: PLC0415

    count = 0
    lost_fields = Counter[str]()
    skipped = Counter[str]()

    def echo_warning(line: str) -> None:
        click.echo(terminal_line(line), err=True)

    def unusable(record: BadRecord) -> None:
        skipped["bad records"] += 1
        if skipped["bad records"] <= 10:  # the others are counted
            echo_warning(f"warning: {record.source}: {record.reason}")

    with _file(out) as file:
        for sample, _ in stream(files, {"any": lambda _: True}, bad=unusable, **reading):
            if sample.status is Status.MISSING:
                skipped["rows of the dataset without a run"] += 1
                continue
            try:
                data, lost_names = (
                    as_jsonl(sample) if form == "jsonl" else as_atif(sample, plain=plain)
                )
            except (ValueError, TypeError, RecursionError) as error:
                why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                unusable(
                    BadRecord(
                        source=sample.source,  # type: ignore[arg-type]
                        reason=f"cannot be written as {form}: {why}",
                    )
                )
                continue
            file.write(data + b"\n")
            count += 1
            lost_fields.update(set(lost_names))
        if not count:
            raise DataError(f"{out}: not written, no record could be used")
    for what, times in skipped.items():
        echo_warning(f"warning: left out: {what}: {times:,}")
    if lost_fields:
        fields = ", ".join(f"{name} of {times:,}" for name, times in sorted(lost_fields.items()))
        echo_warning(f"warning: not kept, {form} has no place for it: {fields}")
    text = f"{out}: {count:,} {'sample' if count == 1 else 'samples'}"
    click.echo(terminal_line(text))


@contextmanager
def _file(out: Path) -> Iterator[Any]:
    """Open a part file that replaces ``out`` once it is complete, compressed for ``.gz``."""
    part = out.with_name(f"{out.name}.{os.urandom(4).hex()}.part")  # of ours alone
    try:
        with (
            part.open("xb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if out.suffix == ".gz" else raw as file,
        ):
            yield file
        part.replace(out)
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink()
