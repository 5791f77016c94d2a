"""Packed inputs and standard input: read as what they hold, and named as they were given."""

import gzip
import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

import gradestack
from gradestack import DataError
from gradestack.copies import files as copying
from gradestack.grading.reading import shards_of
from gradestack.rundir.header import fingerprint, range_mark
from gradestack.suites.recognition import expand

RECORDS = [{"id": str(n), "expected": [], "predicted": []} for n in range(3)]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
REGISTRY = gradestack.discover(limit="")
pytestmark = pytest.mark.usefixtures("temporary")


def zstd(content):
    module = pytest.importorskip(
        "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    )
    return module.compress(content)


def graded(paths, **more):
    overrides = more.get("overrides", ())
    more["overrides"] = ("reports=[]", *overrides)
    return gradestack.grade_files(paths, registry=REGISTRY, **more)


def files(folder):
    paths = folder.rglob("*")
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def texts(out):
    return {name: (out / name).read_bytes() for name in ("results.jsonl", "summary.json")}


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_a_packed_file_gives_what_it_holds(tmp_path, temporary, pack):
    """Results are those of the plain file but for its name.

    Header.json has the packed file, and no temporary one.
    """
    (tmp_path / "runs.jsonl").write_bytes(LINES)
    runs_path = tmp_path / "runs.jsonl.gz"
    runs_path.write_bytes(pack(LINES))
    paths = tmp_path / "runs.jsonl"
    plain_folder = tmp_path / "plain"
    graded(paths, output=plain_folder)
    output = tmp_path / "packed"
    report = graded(tmp_path / "runs.jsonl.gz", output=output)
    packed_folder = tmp_path / "packed"
    for name, text in texts(packed_folder).items():
        assert text.replace(b"runs.jsonl.gz", b"runs.jsonl") == texts(tmp_path / "plain")[name]
        assert str(temporary).encode() not in text
    (file,) = report.header["inputs"]
    expected = str(tmp_path / "runs.jsonl.gz")
    assert file["path"] == expected
    status = (tmp_path / "runs.jsonl.gz").stat()
    assert file["bytes"] == status.st_size
    assert str(temporary) not in json.dumps(report.header)
    suite_name = report.header["suite_name"]
    assert suite_name == "runs"


def test_content_decides_and_not_the_name(tmp_path):
    """A packed file may be called as it likes; a plain one called .gz is read as it is."""
    a_path = tmp_path / "a.jsonl"
    compressed = gzip.compress(LINES)
    a_path.write_bytes(compressed)
    b_path = tmp_path / "b.jsonl.gz"
    b_path.write_bytes(LINES)
    for name in ("a.jsonl", "b.jsonl.gz"):
        paths = tmp_path / name
        output = tmp_path / "out"
        total = graded(paths, output=output).metrics["total"]
        assert total == 3


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("damage", ["cut off", "broken"])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, temporary, kind, damage):
    content = {"gzip": gzip.compress, "zstd": zstd}[kind](LINES * 99)
    path = tmp_path / "a.jsonl.gz"
    half = len(content) // 2
    path.write_bytes(content[:half] if damage == "cut off" else content[:10] + b"\xff" * 20)
    with pytest.raises(DataError) as caught:
        graded(path, output=tmp_path / "out")
    assert str(caught.value).startswith(f"{path}: cannot be unpacked ({kind}): ")
    assert not files(temporary)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_small_packed_file_does_not_fill_the_disk(tmp_path, temporary, monkeypatch, pack):
    monkeypatch.setattr(copying, "_LARGEST_COPY", 1 << 20)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(pack(b" " * (5 << 20)))
    with pytest.raises(DataError, match="200 times as large unpacked, or more: unpack it first"):
        graded(path, output=tmp_path / "out")
    assert not files(temporary)


def test_a_tar_archive_is_named(tmp_path):
    """Its members are not read as the lines of one file."""
    path = tmp_path / "a.jsonl"
    with tarfile.open(path, "w") as archive:
        tar_info = tarfile.TarInfo("x")
        bytes_io = io.BytesIO(b"")
        archive.addfile(tar_info, bytes_io)
    for reader in (None, "jsonl"):
        with pytest.raises(DataError, match="is a tar archive, which is not supported"):
            graded(path, reader=reader, output=tmp_path / "out")


def test_errors_name_the_packed_file(tmp_path):
    for name, content in (("odd", b"xx\n"), ("empty", b""), ("broken", b"{")):
        compressed = gzip.compress(content)
        (tmp_path / f"{name}.jsonl.gz").write_bytes(compressed)
        for reader in (None, "jsonl", "tau_bench", "letta"):
            with pytest.raises(DataError) as caught:
                graded(tmp_path / f"{name}.jsonl.gz", reader=reader, output=tmp_path / "out")
            assert "temporary" not in str(caught.value)
            expected_text = f"{name}.jsonl.gz"
            assert expected_text in str(caught.value)


def test_a_directory_is_read_with_its_packed_files_unpacked(tmp_path):
    """Files beside them are read where they are."""
    for name in ("a.jsonl", "b.jsonl"):
        logs_folder = tmp_path / "logs"
        logs_folder.mkdir(exist_ok=True)
        (tmp_path / "logs" / name).write_bytes(LINES)
    c_path = tmp_path / "logs/c.jsonl.gz"
    c_path.write_bytes(gzip.compress(LINES))
    odd_path = tmp_path / "logs/odd.gz"
    odd_path.write_bytes(gzip.compress(b"odd"))
    for name in ("a.jsonl.gz", "d.gz", "d.zst", "..gz"):
        compressed = gzip.compress(LINES)
        (tmp_path / "logs" / name).write_bytes(compressed)
    paths = tmp_path / "logs"
    output = tmp_path / "out"
    report = graded(paths, output=output)
    total = report.metrics["total"]
    assert total == 18
    names = {"a.jsonl", "a.jsonl.gz", "b.jsonl", "c.jsonl.gz", "d.gz", "d.zst"}
    rows = report.rows()
    assert {row["source"]["file"] for row in rows} == names
    warnings = report.summary["warnings"]
    assert "logs/odd.gz: not recognised, left out" in warnings


def test_a_dataset_may_be_packed(tmp_path):
    gold_path = tmp_path / "gold.jsonl.gz"
    compressed = gzip.compress(b'{"id": "0", "expected": "x", "predicted": ""}\n')
    gold_path.write_bytes(compressed)
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_bytes(b'{"id": "0", "predicted": "x"}\n')
    paths = tmp_path / "runs.jsonl"
    dataset = tmp_path / "gold.jsonl.gz"
    output = tmp_path / "out"
    report = graded(
        paths,
        dataset=dataset,
        overrides=("graders={text: {kind: exact_match}}",),
        output=output,
    )
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == 1.0
    config = report.summary["config"]
    assert config["dataset"] == "gold.jsonl.gz"


def standard_input(monkeypatch, content):
    bytes_io = io.BytesIO(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(bytes_io))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_dash_is_standard_input(tmp_path, monkeypatch, pack):
    """Made-up ids and messages call it stdin, header.json what was typed."""
    standard_input(
        monkeypatch, pack(b'{"messages": [{"role": "user", "content": "hi"}]}\nno JSON\n')
    )
    output = tmp_path / "out"
    report = graded("-", reader="openai", output=output)
    rows = report.rows()
    ids = [row["sample"]["id"] for row in rows]
    assert ids == ["stdin:0"]
    bad_records = report.summary["bad_records"]
    assert bad_records["listed"][0]["line"] == 2
    inputs = report.header["inputs"]
    path = inputs[0]["path"]
    assert path == "-"
    suite_name = report.header["suite_name"]
    assert suite_name == "stdin"


def test_empty_standard_input_is_said(tmp_path, monkeypatch):
    standard_input(monkeypatch, b"")
    with pytest.raises(DataError, match=r"^stdin: the file is empty"):
        graded("-", output=tmp_path / "out")
    monkeypatch.setattr(copying, "_read", {})
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match=r"^stdin: there is no standard input"):
        graded("-", output=tmp_path / "out")


def test_a_file_that_is_called_like_an_address_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    a_path = tmp_path / "s3:/a.jsonl"
    a_path.write_bytes(LINES)
    assert expand(["s3://a.jsonl"]) == [Path("s3:/a.jsonl")]
    run_1_path = tmp_path / "run:1.jsonl"
    run_1_path.write_bytes(LINES)
    assert expand(["run:1.jsonl", "run:*"]) == [Path("run:1.jsonl")] * 2


def test_a_run_of_a_packed_file_can_be_continued_by_another_process(tmp_path, monkeypatch):
    """The run depends on the file that was given, not on the folder of its copy."""
    path = tmp_path / "runs.jsonl.gz"
    compressed = gzip.compress(LINES)
    path.write_bytes(compressed)

    def looked_at():
        monkeypatch.setattr(copying, "_made", {})
        paths = [str(path)]
        suite = gradestack.load_suite({"target": {"paths": paths}}, registry=REGISTRY)
        shards, _ = shards_of(suite.reader.component, suite.inputs)
        return (
            suite.inputs.data[0].path,
            fingerprint(suite),
            [range_mark(shard) for shard in shards],
        )

    first, *known = looked_at()
    second, *others = looked_at()
    assert first != second
    assert known == others
