"""Golden runs: record what gradestack prints and writes, and compare two recordings byte for byte.

A refactoring is proven by it: record before, record after, compare.

    python tests/golden/golden.py record BEFORE
    python tests/golden/golden.py record AFTER
    python tests/golden/golden.py compare BEFORE AFTER

``record`` runs the ``gradestack`` command beside the running interpreter (or ``--program``) on
every case of ``cases.yaml``. It keeps exit codes, standard output, standard error and every file
written, but for ``header.json`` (times and digests). Paths of this machine and durations are
masked. Cases on field data run where ``GRADESTACK_REFERENCE_DATA`` names its folder. ``compare``
prints the first differing line of every file and exits with 1 where there is one.

Of some cases a test compares part of the files with committed ones, those a case names under
``committed``:

    GRADESTACK_REWRITE=1 pytest -q tests/golden/test_golden.py

writes these again; ``git diff`` then shows what users see differently.
"""

import argparse
import difflib
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LEFT_OUT = {"header.json"}
MASKS = [
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms|min)\b"), "DURATION"),
    (re.compile(r"\b\d[\d,.]*/s\b"), "SPEED"),
    (re.compile(r"\bpid \d+"), "pid N"),
]
"""Patterns in console output that differ from run to run, and their replacements."""
HEADER_DIGEST = re.compile(rb"(header\.json\D{1,40})[\d,]+( bytes.{1,80}?)[0-9a-f]{64}")
"""The size and digest of header.json on a page of a graded report directory; it holds times."""
TIMEOUT_SECONDS = 300
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "TZ": "UTC"}
COMMITTED = HERE / "runs"


def read_cases(data: Path | None) -> list[dict[str, Any]]:
    """Read the cases, with one case for each field-data file a pattern names."""
    cases_path = HERE / "cases.yaml"
    text = cases_path.read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    cases = list(document["cases"])
    if data is None:
        return cases
    for group in document["reference_data"]:
        paths = data.glob(group["files"])
        for path in sorted(paths):
            if path.name in {"expected.json", "README.md"} or path.suffix in {".py", ".sh"}:
                continue
            relative_path = path.relative_to(data)
            name = "data-" + relative_path.as_posix().replace("/", "-")
            steps = [[*group["command"], str(path), "-o", "out"]]
            cases.append({"name": name, "steps": steps, "engines": ["serial"]})
    return cases


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write the made files of a case into its folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def mask(text: str, replacements: dict[str, str]) -> str:
    """Replace machine paths and durations in console output."""
    for path, word in replacements.items():
        text = text.replace(path, word)
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


Run = Callable[[list[str], Path], tuple[int, str, str]]
"""Runs the command line in a folder; gives exit code, standard output and standard error."""


def run_program(program: Path, environment: dict[str, str]) -> Run:
    """Return the function that runs a program of its own."""

    def run(words: list[str], folder: Path) -> tuple[int, str, str]:
        """Run the program in a folder; return its exit code, output and errors."""
        env = {**os.environ, **environment}
        done = subprocess.run(
            [str(program), *words],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        output, error = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
        return done.returncode, output, error

    return run


def type_step(step: list[Any], engine: str) -> list[str]:
    """Return the words of a step, with the engine where something is graded."""
    words = [str(word) for word in step]
    if words[0] not in {"run", "grade"}:
        return words
    workers = [] if engine == "serial" else ["--workers", "2"]
    return [*words, "--engine", engine, *workers]


def record_case(case: dict[str, Any], engine: str, run: Run, out: Path) -> None:
    """Run the steps of a case in an empty folder and keep everything it printed and wrote."""
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    examples_folder = ROOT / "examples"
    shutil.copytree(examples_folder, folder / "examples")
    files = case.get("files", {})
    write_files(folder, files)
    paths = folder.rglob("*")
    inputs = {path for path in paths if path.is_file()}
    replacements = {str(folder): "FOLDER", str(ROOT): "ROOT"}
    data = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if data:
        replacements[data] = "DATA"
    transcript = []
    for step in case["steps"]:
        words = type_step(step, engine)
        code, output, error = run(words, folder)
        transcript += [
            f"$ gradestack {mask(' '.join(map(str, step)), replacements)}",
            mask(output, replacements),
            "--- standard error",
            mask(error, replacements),
            f"--- exit {code}",
            "",
        ]
    target = out / case["name"]
    target.mkdir(parents=True)
    transcript_path = target / "transcript.txt"
    transcript_path.write_text("\n".join(transcript), encoding="utf-8")
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path in inputs or path.name in LEFT_OUT:
            continue
        files_folder = target / "files"
        relative_path = path.relative_to(folder)
        copy = files_folder / relative_path
        copy.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes().replace(str(folder).encode(), b"FOLDER")
        copy.write_bytes(HEADER_DIGEST.sub(rb"\1N\2DIGEST", content))
    shutil.rmtree(folder)


def record(out: Path, program: Path, names: list[str]) -> int:
    """Record every case on every engine it names; return the number of recordings."""
    data = os.environ.get("GRADESTACK_REFERENCE_DATA")
    count = 0
    for case in read_cases(Path(data) if data else None):
        if names and case["name"] not in names:
            continue
        for engine in case.get("engines", ["serial", "processes"]):
            environment = ENVIRONMENT | case.get("environment", {})
            run = run_program(program, environment)
            record_case(case, engine, run, out / engine)
            count += 1
    return count


def read_recording(folder: Path) -> dict[str, bytes]:
    """Read a recording as file contents by relative path."""
    contents_by_path = {}
    paths = folder.rglob("*")
    for path in sorted(paths):
        if path.is_file():
            contents_by_path[path.relative_to(folder).as_posix()] = path.read_bytes()
    return contents_by_path


def keep_committed(case: dict[str, Any], recording: Path) -> None:
    """Remove the files of a case's recording that are not compared with committed ones."""
    paths = recording.rglob("*")
    for path in list(paths):
        if path.is_file() and not any(fnmatch.fnmatch(path.name, n) for n in case["committed"]):
            path.unlink()


def first_difference(before: bytes, after: bytes) -> str:
    """Show the first differing lines of two files."""
    lines_before = before.decode(errors="replace").splitlines()
    lines_after = after.decode(errors="replace").splitlines()
    for line in difflib.unified_diff(lines_before, lines_after, lineterm="", n=0):
        if line.startswith(("---", "+++", "@@")):
            continue
        return line[:200]
    return "(the same lines, other line ends)"


def compare_recordings(before: Path, after: Path) -> list[str]:
    """Compare two recordings; return a sentence for each difference."""
    old = read_recording(before)
    new = read_recording(after)
    paths = sorted(old.keys() - new.keys())
    differences = [f"only in {before.name}: {path}" for path in paths]
    keys = new.keys()
    differences += [f"only in {after.name}: {path}" for path in sorted(keys - old.keys())]
    for path in sorted(old.keys() & new.keys()):
        if old[path] != new[path]:
            differences.append(f"{path}: {first_difference(old[path], new[path])}")
    return differences


def compare_engines(recording: Path) -> list[str]:
    """Compare the files (not the consoles) of each case between engines."""
    serial = recording / "serial"
    differences = []
    paths = recording.iterdir()
    for folder in sorted(paths):
        if folder == serial:
            continue
        for case in sorted(folder.iterdir()):
            files_folder = case / "files"
            pair = (serial / case.name / "files", files_folder)
            lines = compare_recordings(*pair)
            differences += [f"{case.name}: {line}" for line in lines]
    return differences


def main() -> int:
    """Record or compare."""
    description = __doc__.split("\n", 1)[0]
    parser = argparse.ArgumentParser(description=description)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run every case and keep what it wrote")
    recording.add_argument("out", type=Path)
    executable_path = Path(sys.executable)
    recording.add_argument("--program", type=Path, default=executable_path.parent / "gradestack")
    recording.add_argument("--case", action="append", default=[], help="only this case")
    comparing = commands.add_parser("compare", help="compare two recordings")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "record":
        program = options.program.absolute()
        count = record(options.out, program, options.case)
        differences = compare_engines(options.out)
        print(f"{count} recordings in {options.out}, {len(differences)} differ by engine")
    else:
        differences = compare_recordings(options.before, options.after)
        count = len(read_recording(options.before))
        print(f"{count} files compared, {len(differences)} differ")
    end = "\n" if differences else ""
    print("\n".join(differences), end=end)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
