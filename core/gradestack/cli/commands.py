"""The command line. Only click is imported here; everything else when a command runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from gradestack._version import __version__
from gradestack.errors import (
    EXIT_INTERRUPTED,
    ConfigError,
    DataError,
    GradestackError,
    PluginError,
    written_text,
)
from gradestack.output import coloured, terminal_line, traceback_text

if TYPE_CHECKING:
    from gradestack.report import Report
    from gradestack.suites.spec import RunOptions, Suite

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_code_option = click.option(
    "--allow-code",
    is_flag=True,
    help="Import Python code that is named. Use it only if you trust the code.",
)
_PART_OPTIONS = (
    click.option(
        "--filter",
        metavar="EXPR",
        help="Use only runs for which EXPR is true: 'facet.domain == \"air\"'.",
    ),
    click.option(
        "--tasks", metavar="FILE", help="Use only tasks whose ids FILE lists, one per line."
    ),
    click.option(
        "--limit", type=click.IntRange(1), metavar="N", help="Use only the first N of these tasks."
    ),
)
_RUN_OPTIONS = (
    click.option(
        "--profile",
        type=click.Choice(["documented", "upstream"]),
        help="Compute rules as documented [default], or also run the original program.",
    ),
    *_PART_OPTIONS,
    click.option(
        "-o",
        "--output",
        metavar="DIR",
        help="Report directory [default: gradestack-runs/NAME/TIME].",
    ),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="PATH=VALUE",
        help="Set any option of the suite. VALUE is YAML.",
    ),
    _code_option,
    click.option(
        "--rows",
        type=click.Choice(["full", "compressed", "none"]),
        help="Write results.jsonl [default], results.jsonl.zst, or none.",
    ),
    click.option(
        "--no-rows", is_flag=True, help="Do not write results.jsonl: the same as --rows none."
    ),
    click.option(
        "--export",
        "exporters",
        multiple=True,
        metavar="NAME",
        help="Also write result files in a benchmark's own format.",
    ),
    click.option(
        "--tables",
        type=click.Choice(["parquet", "csv", "json"]),
        help="Also write tables: samples, grades, ...",
    ),
    click.option(
        "--engine",
        metavar="NAME",
        help="Where the work is done: auto [default], serial, processes or dask.",
    ),
    click.option("--workers", type=click.IntRange(1), metavar="N", help="Number of workers."),
    click.option(
        "--resume", is_flag=True, help="Continue an unfinished evaluation in the report directory."
    ),
    click.option(
        "--num-runs",
        type=click.IntRange(1),
        metavar="N",
        help="Group N recorded runs of each task (trials).",
    ),
    click.option(
        "--compare-previous",
        is_flag=True,
        help="Compare with the run before beside it whose gates passed: OUTPUT/comparison.",
    ),
    click.option(
        "--report-url", metavar="URL", help="Address of that comparison.html, for its links."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print only the gates' verdict."),
    click.option(
        "--allow-all-failed",
        is_flag=True,
        help="Do not exit 3 if no run could be graded.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Stop at the first bad record (exit 3) or grader that raises (exit 4).",
    ),
    click.option("--no-plugins", is_flag=True, help="Do not load installed plugins."),
)


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


_GROUPS = {
    "What is read": "--reader --map --records --id --no-merge --dataset --cached --num-runs "
    "--filter --tasks --limit",
    "What is computed": "--grader --add-grader --stack --rubric --judgements --labels --profile "
    "--set",
    "What is written": "--output --rows --no-rows --tables --export --compare-previous "
    "--report-url --quiet",
    "How it runs": "--engine --workers --resume --strict --allow-all-failed --allow-code "
    "--allow-outside --allow-remote --no-plugins",
    "Grade": "grade run validate judge judgements",
    "Look at results": "show view report query compare index",
    "Extend": "new convert formats plugins stacks schema",
}


class _Grouped(click.Command):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        rows = {option.opts[-1]: option.get_help_record(ctx) or ("", "") for option in options}
        _write_groups(rows, formatter)


def _write_groups(rows: dict[str, tuple[str, str]], formatter: click.HelpFormatter) -> None:
    """Write the help of options or commands, by what they are for."""
    names_of_groups = " ".join(_GROUPS.values())
    grouped = set(names_of_groups.split())
    others = sorted(rows.keys() - grouped)
    for title, names in {**_GROUPS, "Other": " ".join(others)}.items():
        group = [rows[name] for name in names.split() if name in rows]
        if group:
            with formatter.section(title):
                formatter.write_dl(group)


class _Commands(click.Group):
    """Our own commands, and those of plugins.

    Of these ``--help`` needs names and summaries alone.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        commands = super().list_commands(ctx)
        return sorted({*commands, *_plugin_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; one of a plugin is imported now."""
        built_in = super().get_command(ctx, cmd_name)
        if built_in is not None or cmd_name not in _plugin_commands(ctx):
            return built_in
        command: click.Command = _find_plugins(ctx).load("command", cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        summaries = _plugin_commands(ctx)
        for name, command in self.commands.items():
            summaries[name] = command.get_short_help_str(90)
        _write_groups({name: (name, text) for name, text in summaries.items()}, formatter)


def _plugin_commands(context: click.Context) -> dict[str, str]:
    """Return the summary of each command of a plugin, by name."""
    components = [component for component, _ in _find_plugins(context).components()]
    return {command.name: command.summary for command in components if command.kind == "command"}


@click.group(
    context_settings=CONTEXT, cls=_Commands, epilog="Example: gradestack grade log.jsonl -o out"
)
@click.version_option(__version__, prog_name="gradestack")
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show tracebacks. Works in any place."
)
def cli() -> None:
    """Grade recorded runs of tool-calling LLM agents.

    Exit codes: 0 passed, 1 a gate failed, 2 wrong option or suite, 3 unusable input or nothing
    graded, 4 a broken plugin, 130 interrupted.
    """


def _print_report(report: Report, *, quiet: bool) -> None:
    """Print the results and the verdict of a run, and what went wrong."""
    from gradestack.cli.progress import print_lines  # noqa: PLC0415 - not needed for --help
    from gradestack.cli.results import verdict  # noqa: PLC0415

    if not quiet:
        _print_results(report)
    if report.passed is not None or report.program_verdict is not None:
        print_lines(verdict(report))
    if report.all_failed:
        _print_error(f"error: {report.all_failed}")
    for line in _quiet_lines(report) if quiet else ():
        _print_error(line)
    if "incomplete" in report.summary:
        _print_error(_interrupted_text(report))


def _print_results(report: Report) -> None:
    from gradestack.cli.progress import print_lines  # noqa: PLC0415 - not needed for --help
    from gradestack.cli.results import files, results  # noqa: PLC0415

    print_lines(f"{results(report)}\n\n{files(report)}")


def _quiet_lines(report: Report) -> Iterator[str]:
    """Yield the lines that --quiet prints as well: warnings about gates, and pages not written."""
    from gradestack.gates.texts import quiet_warnings  # noqa: PLC0415 - not for --help

    for gate in report.gates:
        yield from (f"warning: {text}" for text in quiet_warnings(gate))
    for state, problem in (("broken", "is broken"), ("refused", "has written no page")):
        for name, text in sorted(report.summary.get(state, {}).items()):
            yield f"error: {name} {problem}: {text}"


def _interrupted_text(report: Report) -> str:
    """Return a line about an interrupted run: the results it has, and the command that goes on."""
    from gradestack.outcome.pages import PAGES_MISSING  # noqa: PLC0415 - only here
    from gradestack.rundir.place import can_continue  # noqa: PLC0415

    is_graded = report.summary["incomplete"] == PAGES_MISSING
    is_resumable = report.path is not None and can_continue(report.path)
    if is_graded:
        by_command = f"`gradestack report {report.path}` writes the pages"
        rest = "--resume writes the pages" if is_resumable else by_command
        return f"interrupted: results were kept, pages are missing; {rest}"
    has_samples = bool(report.metrics["total"])
    results = "partial results were kept" if has_samples else "nothing was graded yet"
    advice = "; --resume grades the rest" if is_resumable else ""
    return f"interrupted: {results}{advice}"


def _find_plugins(context: click.Context | None = None, *, no_plugins: bool = False) -> Any:
    """Return the registry of a command, found once."""
    from gradestack.registry import discover  # noqa: PLC0415 - not needed for --version

    meta = (context or click.get_current_context()).meta
    key = f"gradestack.registry {no_plugins}"
    if key not in meta:
        limit = "" if no_plugins else None
        meta[key] = registry = discover(limit=limit)
        for name in registry.unknown:
            from gradestack.python_api import unknown_plugin  # noqa: PLC0415 - rarely needed

            _print_error(f"warning: {unknown_plugin(name)}")
    return meta[key]


def _print_error(line: str) -> None:
    click.echo(coloured(terminal_line(line), sys.stderr), err=True)


def _overrides_of_part(options: dict[str, Any]) -> list[str]:
    """Take --filter, --tasks and --limit out of options; return them as overrides of a suite."""
    import json  # noqa: PLC0415 - not needed for --help
    from pathlib import Path  # noqa: PLC0415

    expression = options.pop("filter")
    tasks = options.pop("tasks")
    limit = options.pop("limit")
    overrides = []
    if expression is not None:
        overrides.append(f"filter={json.dumps(expression)}")
    if tasks is not None:
        path = str(Path(tasks).absolute())
        overrides.append(f"tasks={json.dumps(path)}")
    if limit is not None:
        overrides.append(f"max_samples={limit}")
    return overrides


def _execute(make: Callable[[RunOptions], Suite], shared: dict[str, Any]) -> None:
    """Make a suite, run it, print its results, and exit."""
    import msgspec  # noqa: PLC0415 - not needed for --help

    from gradestack.cli.progress import output_to_stderr, show_progress  # noqa: PLC0415
    from gradestack.cli.signals import forward_termination  # noqa: PLC0415
    from gradestack.python_api import run_options  # noqa: PLC0415
    from gradestack.rundir.place import check_place  # noqa: PLC0415
    from gradestack.runner import run_suite  # noqa: PLC0415

    quiet = shared.pop("quiet")
    is_compared = shared.pop("compare_previous")
    url = shared.pop("report_url")
    if url is not None and not is_compared:
        raise click.UsageError("--report-url goes with --compare-previous")
    for name in ("num_runs", "profile", "allow_all_failed", "tables"):
        value = shared.pop(name)
        if value:
            shared["overrides"] += (f"{name}={value}",)
    shared["overrides"] += (*_overrides_of_part(shared),)
    if shared.pop("no_rows"):
        if shared["rows"] not in {None, "none"}:
            rows = f"--no-rows and --rows {shared['rows']}"
            raise click.UsageError(f"{rows} contradict each other; give one of them")
        shared["rows"] = "none"
    registry = _find_plugins(no_plugins=shared.pop("no_plugins"))
    debug = click.get_current_context().obj == "debug"
    options = run_options(registry=registry, **shared, echo=_print_error, debug=debug)
    if options.output is not None:
        check_place(options.output)  # before any work is done
    with forward_termination():
        with output_to_stderr():
            suite = make(options)
        with show_progress(suite.name, quiet=quiet) as progress, output_to_stderr():
            report = run_suite(suite, msgspec.structs.replace(options, progress=progress))
        _print_report(report, quiet=quiet)
        if is_compared:
            _compare_with_previous(report, url)
        sys.exit(report.exit_code)


def _compare_with_previous(report: Report, url: str | None) -> None:
    """Compare a run with the one before, and write the comparison into its directory."""
    from gradestack.python_compare import compare  # noqa: PLC0415 - for this option alone

    assert report.path is not None  # noqa: S101 - of a command that writes it
    out = report.path / "comparison"
    try:
        comparison = compare(report.path, previous=True, report_url=url, output=out)
    except GradestackError as error:
        _print_error(f"not compared: {error.args[0]}")
        return
    click.echo(terminal_line(comparison.sentence))
    click.echo(terminal_line(f"Comparison: {out}"))


@cli.command(cls=_Grouped, epilog="Example: gradestack run suite.yaml -o out")
@click.argument("suite")
@click.option(
    "--cached",
    metavar="DIR",
    help="Grade this recorded report directory instead of the suite's target.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Open URLs that the suite names. Use it only if you trust the suite.",
)
@click.option(
    "--allow-outside",
    is_flag=True,
    help="Let the suite name files outside its folder. Use it only if you trust the suite.",
)
@_run_options
def run(suite: str, *, cached: str | None, **shared: Any) -> None:
    """Grade what the suite file SUITE names, apply its gates and write the report."""
    from gradestack.python_api import read_suite  # noqa: PLC0415

    _execute(lambda options: read_suite(suite, options, cached), shared)


@cli.command(
    cls=_Grouped, epilog="Example: gradestack grade log.jsonl --dataset expected.jsonl -o out"
)
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--grader",
    "graders",
    multiple=True,
    metavar="NAME",
    help="Grader, or FILE.py:NAME. Replaces the stack.",
)
@click.option(
    "--add-grader",
    "add_graders",
    multiple=True,
    metavar="NAME",
    help="Add a grader to a finished run: FILES is its directory. --filter: on these runs only.",
)
@click.option(
    "--stack",
    metavar="NAME",
    help="Stack of graders [default: the format's, or chosen by the reference data].",
)
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
@click.option("--no-merge", is_flag=True, help="Grade each logged model call separately.")
@click.option("--dataset", metavar="FILE", help="File of expectations, matched to runs by id.")
@click.option(
    "--rubric",
    metavar="FILE",
    help="Grade by a model's verdicts on this rubric. Reads --judgements.",
)
@click.option(
    "--judgements", metavar="FILE", help="Stored verdicts: the file that `gradestack judge` wrote."
)
@click.option(
    "--labels", metavar="FILE", help="Verdicts of people by id. They correct the judge's pass rate."
)
@_run_options
def grade(
    files: tuple[str, ...],
    *,
    graders: tuple[str, ...],
    add_graders: tuple[str, ...],
    columns: tuple[str, ...],
    **shared: Any,
) -> None:
    """Grade FILES, which are result files or directories."""
    from gradestack.python_api import files_suite  # noqa: PLC0415

    judged = {key: shared.pop(key) for key in ("rubric", "judgements", "labels")}
    if not judged["rubric"] and any(judged.values()):
        raise ConfigError("--judgements and --labels go with --rubric")
    names = ("stack", "reader", "ids", "dataset", "records", "no_merge")
    inputs = {name: shared.pop(name) for name in names}
    inputs |= {"graders": graders, "columns": columns}
    inputs["judged"] = judged if judged["rubric"] else None
    if add_graders:
        _add_graders(files, add_graders, inputs, shared)
        return
    _execute(lambda options: files_suite(files, options, guess=True, **inputs), shared)


def _add_graders(
    files: Sequence[str], graders: Sequence[str], inputs: dict[str, Any], shared: dict[str, Any]
) -> None:
    """Add graders to a finished run, in its directory unless another is named."""
    from pathlib import Path  # noqa: PLC0415 - not needed for --help

    from gradestack.python_add import extended_suite  # noqa: PLC0415

    if len(files) > 1 or Path(files[0]).is_file():
        raise click.UsageError("--add-grader is for one finished run: name its directory alone")
    others = [name for name, value in inputs.items() if value]
    others += [name for name in ("tasks", "limit", "profile", "num_runs") if shared[name]]
    if others:
        raise click.UsageError(
            f"--add-grader keeps how the run was made; leave out {others[0].replace('_', '-')}"
        )
    run = files[0]
    text = shared["filter"]
    shared["filter"] = None
    shared["output"] = shared["output"] or run
    _execute(lambda options: extended_suite(run, options, graders, text), shared)


@cli.command(epilog="Example: gradestack report out --format csv")
@click.argument("run_dir")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="NAME",
    help="Reporter, such as html or junit [default: those of the evaluation].",
)
@click.option("-o", "--output", metavar="DIR", help="Where to write the pages [default: RUN_DIR].")
@_PART_OPTIONS[0]
@_PART_OPTIONS[1]
@_PART_OPTIONS[2]
@click.option(
    "--plugin",
    "files",
    multiple=True,
    metavar="FILE",
    help="Python file with panels or reporters of your own.",
)
@click.option(
    "--redact",
    "rules",
    multiple=True,
    metavar="RULE",
    help="Write a copy into DIR without secrets: emails, keys, field:NAME or a pattern.",
)
@_code_option
def report(
    run_dir: str,
    *,
    formats: tuple[str, ...],
    output: str | None,
    files: tuple[str, ...],
    rules: tuple[str, ...],
    allow_code: bool,
    **part: Any,
) -> None:
    """Write the report pages of RUN_DIR again, from its result files.

    With --filter, --tasks or --limit, that part of its runs is graded again into DIR. With
    --redact, DIR gets a copy of rows, summary and pages without secrets.
    """
    from pathlib import Path  # noqa: PLC0415

    from gradestack.cli.signals import forward_termination  # noqa: PLC0415
    from gradestack.outcome.pages import rewrite_pages  # noqa: PLC0415
    from gradestack.report import load_report  # noqa: PLC0415
    from gradestack.suites.code import with_files  # noqa: PLC0415

    registry = with_files(_find_plugins(), files, allow_code=allow_code)
    finished = load_report(Path(run_dir))
    overrides = _overrides_of_part(part)
    if rules:
        finished = _write_redacted(finished, rules, output, has_part=bool(overrides))
    if not overrides:
        out = Path(output or run_dir)
        with forward_termination():
            for page in rewrite_pages(finished, registry, formats, out, _print_error):
                click.echo(terminal_line(f"Report: {page}"))
        return
    if output is None:
        what = "--filter, --tasks and --limit write a run of their own"
        raise click.UsageError(f"{what}: name its directory, -o DIR")
    from gradestack.python_api import run as run_again  # noqa: PLC0415

    if formats:
        overrides.append(f"reports=[{', '.join(formats)}]")
    options: Any = {"allow_code": allow_code, "registry": registry}
    with forward_termination():
        regraded = run_again(finished, output=Path(output), overrides=overrides, **options)
    _print_results(regraded)


def _write_redacted(
    finished: Report, rules: tuple[str, ...], output: str | None, *, has_part: bool
) -> Report:
    """Write a copy of a run without secrets, and load it."""
    from pathlib import Path  # noqa: PLC0415

    from gradestack.outcome.redaction import write_redacted  # noqa: PLC0415
    from gradestack.report import load_report  # noqa: PLC0415

    if output is None:
        raise click.UsageError("--redact writes a copy of the run: name its directory, -o DIR")
    if has_part:
        what = "--redact copies a whole run"
        raise click.UsageError(f"{what}; leave out --filter, --tasks and --limit")
    for rule in write_redacted(finished, rules, Path(output)):
        _print_error(f"warning: --redact {rule}: nothing was replaced by this rule")
    return load_report(Path(output))


def _explain(error: BaseException, *, debug: bool) -> int:
    """Print an error; return the exit code of its kind."""
    if debug:
        click.echo(traceback_text(error, error.__traceback__), err=True)
    if isinstance(error, GradestackError):
        _print_error(f"error: {error.args[0]}")
        for problem in error.problems:
            _print_error(f"  - {problem}")
        return error.exit_code
    if isinstance(error, OSError):
        name = error.filename or "output"
        _print_error(f"error: {name}: {error.strerror or error}")
        return DataError.exit_code
    bug = "this is a bug of gradestack or a plugin, run again with --debug for the traceback"
    advice = "" if debug else f"; {bug}"
    kind = type(error).__name__
    _print_error(f"error: unexpected {kind}: {written_text(error)}{advice}")
    return PluginError.exit_code


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; the one place where errors become messages and exit codes."""
    is_program = arguments is None
    for stream in (sys.stdout, sys.stderr):
        # A mark that the terminal cannot show is no crash; in the locale C, which knows ASCII
        # alone, Python's own way is "surrogateescape".
        if getattr(stream, "errors", None) in {"strict", "surrogateescape"}:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        if is_program:
            from gradestack.cli.signals import install_excepthooks  # noqa: PLC0415 - here alone

            install_excepthooks()
        code = _run_command(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # one more, while the first was dealt with
        code = EXIT_INTERRUPTED
    except OSError:  # the error cannot be written either
        code = DataError.exit_code
    if is_program:
        from gradestack.cli.signals import ignore_sigint_at_exit  # noqa: PLC0415 - likewise

        ignore_sigint_at_exit()
        # what lives now goes with the process: looking through it once more takes a tenth of a
        # short run
        gc.freeze()
    if code is not None:
        sys.exit(code)


def _run_command(arguments: list[str]) -> int | str | None:
    """Run a command of the command line, and return its exit code; None for success."""
    output = sys.stdout
    args = [argument for argument in arguments if argument != "--debug"]  # every command takes it
    debug = len(args) < len(arguments)
    try:
        cli.main(args, "gradestack", standalone_mode=False, obj="debug" if debug else None)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _show_usage(error)
    except (KeyboardInterrupt, click.Abort):
        return _say_interrupted()
    except SystemExit as done:
        # with 1 by click, which replaces an output that nobody reads any more
        if sys.stdout is output:
            return done.code
        return None
    # the one catch site: no traceback without --debug
    except BaseException as error:  # noqa: BLE001
        # within a lock's own code, which then has nothing to release
        if isinstance(error, RuntimeError) and isinstance(error.__context__, KeyboardInterrupt):
            return _say_interrupted()
        return _explain(error, debug=debug)
    return None


def _say_interrupted() -> int:
    click.echo("interrupted", err=True)
    return EXIT_INTERRUPTED


def _show_usage(error: click.ClickException) -> int:
    """Print what is wrong with a command line."""
    shows_help = getattr(click.exceptions, "NoArgsIsHelpError", ())  # an error since click 8.2
    if isinstance(error, shows_help):
        error.show()
    else:
        words = error.format_message().split()
        message = terminal_line(" ".join(words))
        click.UsageError(message, getattr(error, "ctx", None)).show()
    return ConfigError.exit_code
