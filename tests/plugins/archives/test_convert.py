"""Files written by `gradestack convert` give the same samples when they are read.

The law, for every reader and example.
"""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from gradestack import GradestackError, Inputs, Sample, Source, Status, testing
from gradestack.cli.commands import main
from gradestack.jsonio import loads
from gradestack.suites.recognition import expand, name_inputs, recognise
from gradestack.testing.case_files import _file_text
from gradestack_plugins.archives.forms import as_atif, as_jsonl
from tests.conftest import THOROUGH
from tests.core.outcomes import data, some_of
from tests.plugins.test_published_forms import REGISTRY

ROOT = Path(__file__).parents[3]
CASES = [
    case
    for case in testing.cases(ROOT / "tests/cases")
    if isinstance(case.data.get("reader", "jsonl"), str)
]
DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")
FILES = [
    path
    for root in (ROOT / "examples", *([Path(DATA)] if DATA else []))
    for path in sorted(root.rglob("*"))
    if path.is_file()
    and path.name not in {"expected.json", "README.md"}
    and path.stat().st_size < 10_000_000
]
MOST = 60 if THOROUGH else 6
"""Samples of a file that are looked at."""


def read(paths, reader=None):
    texts = list(map(str, paths))
    recognised = recognise(expand(texts), REGISTRY, reader)
    component = REGISTRY.load("reader", recognised.reader)()
    inputs = Inputs(data=name_inputs(recognised.paths))
    index = component.index(inputs)
    shards = component.plan(inputs, index)
    return [record for shard in shards for record in component.read(shard, index)]


def convertible_parts(sample):
    """Return the parts of a sample that conversion keeps; undecoded arguments are text.

    JSON lacks NaN and infinities: they are given back as text.
    """
    calls = []
    for call in sample.calls or ():
        calls.append(
            (
                call.name,
                call.raw_arguments if call.arguments is None else call.arguments,
                call.turn,
                call.requestor,
            )
        )
    results = [(call.result, call.status, call.error) for call in sample.calls or ()]
    known = [
        sample.id,
        sample.run,
        sample.model,
        sample.text,
        sample.label,
        sample.input,
        sample.status,
        sample.recorded,
    ]
    text = repr([calls, results, sample.calls is None, sample.usage, sample.expected, known])
    for number, word in (("nan", "'NaN'"), ("-inf", "'-Infinity'"), ("inf", "'Infinity'")):
        text = re.sub(rf"(?<![\w'-]){number}\b", word, text)
    return text


def are_named(lost_fields, sample):
    """Return whether the fields that are not given back may be lost: with NaN any may."""
    match = re.search(r"'NaN'|'-?Infinity'", convertible_parts(sample))
    is_finite = match is None
    return not is_finite or set(lost_fields) <= {"turns", "error"}


def check_law(samples):
    atif, jsonl = (REGISTRY.load("reader", name)() for name in ("atif", "jsonl"))
    for sample in samples[:MOST]:
        if not isinstance(sample, Sample) or sample.status is Status.MISSING:
            continue
        line, lost_fields = as_jsonl(sample)
        assert convertible_parts(jsonl.sample(loads(line), Source(file=""))) == convertible_parts(
            sample
        )
        assert are_named(lost_fields, sample)
        document, lost_fields = as_atif(sample)
        record = loads(document)
        source = Source(file="")
        samples_of_record = atif.samples_of_record(record, source, "")
        assert convertible_parts(next(samples_of_record)) == convertible_parts(sample)
        assert are_named(lost_fields, sample)


MANY = [path for path in FILES if "orchestrationbench" in path.parts]


@pytest.mark.parametrize(
    "path",
    [*(file for file in FILES if file not in MANY), *some_of(MANY, 20)],
    ids=lambda path: path.name,
)
def test_what_is_read_of_a_file_is_what_is_read_of_its_conversion(path):
    try:
        samples = read([path])
    except GradestackError:  # a suite, a data set, a script: no samples to convert
        samples = []
    check_law(samples)


@pytest.mark.proof
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_read_of_a_case_is_what_is_read_of_its_conversion(case, tmp_path):
    files = dict(case.data.get("files") or {"records.jsonl": case.data.get("records")})
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        file_text = _file_text(name, content)
        (tmp_path / name).write_text(file_text, encoding="utf-8")
    try:
        paths = [tmp_path / name for name in files]
        reader = case.data.get("reader", "jsonl")
        samples = read(paths, reader)
    except GradestackError:  # of a refusal
        samples = []
    check_law(samples)


LOG = [
    {"id": "a", "expected": "x", "predicted": "x", "run": 1},
    {"id": "b", "predicted": [{"name": "f"}]},
]


@pytest.fixture
def convert(tmp_path, monkeypatch, capsys):
    """Call the command in a folder with LOG, a broken line among it.

    Return exit code, what it said, and its output.
    """
    text = json.dumps(LOG[0])
    lines = [text, "{", json.dumps(LOG[1])]
    log_path = tmp_path / "log.jsonl"
    log_path.write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "none.jsonl").write_text('{"id": 1, "predicted": 7}\n', encoding="utf-8")
    (tmp_path / "full").mkdir()
    pipe_folder = tmp_path / "pipe"
    os.mkfifo(pipe_folder)
    link_folder = tmp_path / "link"
    link_folder.symlink_to("log.jsonl")

    def _convert(arguments):
        monkeypatch.chdir(tmp_path)
        code = 0
        try:
            main(["convert", *arguments.split()])
        except SystemExit as done:
            code = done.code
        paths = tmp_path.glob("*.part")
        assert not list(paths)
        return code, "".join(capsys.readouterr())

    return _convert


@pytest.mark.parametrize(
    ("arguments", "code", "message"), some_of(data(__file__, "convert.yaml")["refused_or_said"], 2)
)
def test_what_cannot_be_converted_is_said(convert, arguments, code, message):
    exit_code, output = convert(arguments)
    assert (exit_code, message in output) == (code, True), output


@pytest.mark.parametrize("form", ["jsonl", "atif"])
def test_what_is_written_is_valid_json(tmp_path, monkeypatch, capsys, form):
    """NaN and infinities become texts, and the command names the fields that changed by it."""
    monkeypatch.chdir(tmp_path)
    call = '[{"name": "f", "arguments": {"x": NaN, "y": -Infinity}}]'
    record = f'{{"id": "a", "expected": {call}, "predicted": {call}}}\n'
    log_path = tmp_path / "log.jsonl"
    log_path.write_text(record)
    main(["convert", "log.jsonl", "--to", form, "-o", "out.jsonl"])
    out_path = tmp_path / "out.jsonl"
    written = out_path.read_text()
    json.loads(written, parse_constant=pytest.fail)
    assert '"x":"NaN","y":"-Infinity"' in written
    expected_text = f"not kept, {form} has no place for it: calls of 1"
    assert expected_text in capsys.readouterr().err


def test_what_is_written_is_whole(convert, tmp_path):
    """Packed lines are equal bytes each time; what is there is replaced if asked."""
    assert convert("log.jsonl --to jsonl -o out.jsonl.gz")[0] == 0
    first = (tmp_path / "out.jsonl.gz").read_bytes()
    decompressed = gzip.decompress(first)
    lines = decompressed.splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert ids == ["a", "b"]
    assert convert("log.jsonl --to jsonl -o out.jsonl.gz --force")[0] == 0
    out_path = tmp_path / "out.jsonl.gz"
    assert out_path.read_bytes() == first


@pytest.mark.parametrize("form", ["jsonl", "atif"])
@pytest.mark.parametrize("put", [Path.touch, os.mkfifo, lambda path: path.symlink_to("victim")])
def test_convert_touches_nothing_but_its_output(tmp_path, monkeypatch, put, form):
    """A foreign file beside the output stays, even under a name like that of unfinished output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").write_text("mine")
    log_path = tmp_path / "log.jsonl"
    log_path.write_text('{"id": "a", "predicted": "x", "expected": "x"}\n')
    put(tmp_path / "out.jsonl.part")
    out_path = tmp_path / "out.jsonl.part"
    before = os.lstat(out_path)
    main(["convert", "log.jsonl", "--to", form, "-o", "out.jsonl"])
    after = os.lstat(tmp_path / "out.jsonl.part")
    assert before.st_ino == after.st_ino
    assert before.st_size == after.st_size
    victim_folder = tmp_path / "victim"
    text = victim_folder.read_text()
    assert text == "mine"
    names = {"victim", "log.jsonl", "out.jsonl", "out.jsonl.part"}
    paths = tmp_path.iterdir()
    assert {path.name for path in paths} == names


@pytest.mark.parametrize("kind", ["pipe", "device", "link that leads nowhere", "loop", "memory"])
def test_convert_ends_at_what_is_no_file(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        targets = {"device": "/dev/zero", "link that leads nowhere": "none", "loop": "log.jsonl"}
        path.symlink_to(targets.get(kind, "/proc/self/mem"))
    with pytest.raises(SystemExit) as ended:
        main(["convert", "log.jsonl", "--to", "jsonl", "-o", "out.jsonl"])
    error_output = capsys.readouterr().err
    assert ended.value.code == 3
    assert error_output.startswith("error: log.jsonl: ")
    assert "did you mean" not in error_output
    assert error_output.count("\n") == 1
    out_path = tmp_path / "out.jsonl"
    assert not out_path.exists()
