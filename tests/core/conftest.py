"""A registry that has the toy components, and ways to run suites and commands over them."""

import errno
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import gradestack
from gradestack import DataError, Registry, load_suite
from gradestack.cli import commands
from gradestack.grading import worker
from gradestack.rows.packed import PACKED_ROWS, ROWS
from gradestack.rundir.place import GrowingFile
from tests.core import toy_components
from tests.core.code_samples import SHAPES
from tests.core.toy_components import ROOT, make_registry

pytest.register_assert_rewrite("tests.core.block_samples", "tests.core.row_reference")
sys.modules["gradestack_toys"] = toy_components  # what the targets of the toys are imported from


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for name in ("GRADESTACK_PLUGINS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def registry():
    """The sound built-in plugins and the toys; look-ups only."""
    return make_registry()


@pytest.fixture(scope="session")
def make_registry_():
    """The function that makes a registry with further components."""
    return make_registry


@pytest.fixture(scope="session")
def toys():
    """The module of the toys: their classes and the makers of plugins."""
    return toy_components


@pytest.fixture(scope="session")
def with_echo(toys):
    component = toys.component("exporter", "echo", "Echo")
    return toys.make_registry(component)


@pytest.fixture
def write_lines(tmp_path):
    """Return a function that writes records (or raw lines) to a jsonl file."""

    def write(records: Iterable[Any], name: str = "runs.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in records]
        path.write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogatepass"
        )
        return path

    return write


@pytest.fixture
def record():
    """Return a function that makes one jsonl record the toy grader understands."""

    def make(identifier: Any, score: Any = None, **fields: Any) -> dict[str, Any]:
        recorded = {} if score is None else {"score": score}
        return {"id": identifier, "predicted": "x", "recorded": recorded} | fields

    return make


@pytest.fixture
def run_lines(tmp_path, write_lines, registry):
    """Return a function that grades records by a suite of toys, and returns the report."""

    def run(
        records: Iterable[Any],
        *,
        output: str = "out",
        strict: bool = False,
        using: Any = None,
        **suite: Any,
    ) -> Any:
        if not isinstance(records, Path):
            path = write_lines(records)
        else:
            path = records
        content = {
            "name": "toys",
            "graders": {"quality": "toy"},
            "reports": [],
            "reader": "jsonl",
        } | suite
        paths = [str(path)]
        content.setdefault("target", {"paths": paths})
        return gradestack.run(
            content, output=tmp_path / output, strict=strict, registry=using or registry
        )

    return run


@pytest.fixture
def small_shards(monkeypatch):
    """Return a function that has files cut into ranges of a size."""
    return lambda size: monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", size)


@pytest.fixture
def full_disk(monkeypatch):
    """Return a function that makes a run, whose disk is full from the n-th piece of rows on, and
    gives its error.
    """

    def stopped(pieces: int, run: Callable[[], object]) -> DataError:
        write_ahead, accept = GrowingFile.write_ahead, GrowingFile.accept
        left = pieces

        def write_until_full(self: GrowingFile, written: Iterable[bytes | memoryview]) -> None:
            if self.path.name in (ROWS, PACKED_ROWS) and not left:
                os.write(self._to, b"".join(written)[:50])  # what still fitted
                raise OSError(errno.ENOSPC, "No space left on device", "results.jsonl")
            write_ahead(self, written)

        def accept_and_count(self: GrowingFile) -> int:
            nonlocal left
            left -= self.path.name in (ROWS, PACKED_ROWS)
            return accept(self)

        with monkeypatch.context() as disk:
            disk.setattr(GrowingFile, "write_ahead", write_until_full)
            disk.setattr(GrowingFile, "accept", accept_and_count)
            with pytest.raises(DataError, match="No space left on device") as caught:
                run()
        return caught.value

    return stopped


@pytest.fixture
def load(tmp_path, write_lines, record, registry):
    """Return a function that writes a suite and loads it with the toys installed."""
    write_lines([record("a", 1.0)])

    def call(text, *overrides, using=None):
        path = tmp_path / "suite.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_suite(path, overrides=overrides, registry=using or registry)

    return call


@pytest.fixture
def quick(monkeypatch):
    """Let blocks grow whatever they take, up to a size that can be changed."""
    monkeypatch.setattr(worker, "QUICK_BLOCK", 1e9)
    return lambda size: monkeypatch.setattr(worker, "LARGEST_BLOCK", size)


@pytest.fixture
def make_worker(tmp_path):
    """Return a function that makes a worker with graders and metrics of several kinds."""
    from tests.core.block_samples import worker_maker

    return worker_maker(tmp_path)


@pytest.fixture
def here(tmp_path, monkeypatch, write_lines, record):
    """Enter a folder with three records, one of them broken, a suite and a file of numbers."""
    monkeypatch.chdir(tmp_path)
    write_lines([record("a", 1.0), record("b", 0.5), "broken"])
    (tmp_path / "suite.yaml").write_text(
        "name: airline\ntarget: {paths: [runs.jsonl]}\ngraders: {quality: toy}\nreports: []\n"
        "gate: {metric_key: quality, op: gte, value: 0.75}\n"
    )
    (tmp_path / "x.numbers").write_text("numbers\n1\n0.25\n")
    return tmp_path


@pytest.fixture
def shapes(here):
    """The working directory, with a file of code that has something of every shape."""
    (here / "shapes.py").write_text(SHAPES)
    return here


@attrs.frozen
class Said:
    """The exit code of a command and the text it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(monkeypatch, capsys, registry):
    """Return a function that runs the command line in this process, with the toys installed."""
    context = {"registry": registry}

    def use(chosen: Registry) -> None:
        context["registry"] = chosen

    monkeypatch.setattr("gradestack.registry.discover", lambda *_, **__: context["registry"])
    monkeypatch.setattr("gradestack.python_api.discover", lambda *_, **__: context["registry"])

    def call(*arguments: Any) -> Said:
        capsys.readouterr()
        code = 0
        try:
            commands.main([str(argument) for argument in arguments])
        except SystemExit as done:
            code = 0
            if isinstance(done.code, int):
                code = done.code
        out, err = capsys.readouterr()
        return Said(code, out, err)

    call.use = use
    return call


@pytest.fixture
def spawn(tmp_path):
    """Return a function that runs the command line in a process of its own."""

    def run(
        *arguments: Any,
        paths: Iterable[Path] = (),
        cwd: Path | None = None,
        program: Sequence[str] = ("-m", "gradestack.cli"),
        **variables: str,
    ) -> Said:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GRADESTACK", "COV_"))
        }
        places = [
            *map(str, paths),
            *(str(ROOT / part) for part in ("core", "plugins", "templates")),
        ]
        pythonpath = os.pathsep.join(places)
        environment |= {"PYTHONPATH": pythonpath, "COLUMNS": "120"} | variables
        done = subprocess.run(
            [sys.executable, *program, *map(str, arguments)],
            cwd=cwd or tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def distribution(tmp_path):
    """Return a function that writes an installed distribution by hand and returns its folder, for
    PYTHONPATH.
    """

    def write(
        name: str, entry_points: Mapping[str, str], modules: Mapping[str, str], version: str = "1.0"
    ) -> Path:
        site = tmp_path / f"site-{name}"
        dist_info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        dist_info.mkdir(parents=True)
        metadata_folder = dist_info / "METADATA"
        metadata_folder.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [f"{key} = {value}" for key, value in entry_points.items()]
        entry_points_path = dist_info / "entry_points.txt"
        entry_points_path.write_text("\n".join(["[gradestack]", *lines, ""]))
        for module, text in modules.items():
            (site / f"{module}.py").write_text(text)
        return site

    return write
