"""Records that are too long, and paths that are followed for too long.

Bad records on every engine, never the end.
"""

import json
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import until
from tests.core.outcomes import data, some_of

DATA = data(__file__, "limits.yaml")
MIB = 1024 * 1024
EXAMPLES = Path(__file__).parents[3] / "examples"
GOOD = {"predicted": "x", "expected": "x"}


def grade(folder, *arguments, memory=None):
    """Run the command; ``memory``: bytes of address space it has."""
    executable_path = Path(sys.executable)
    path = executable_path.with_name("gradestack")
    program = str(path)
    command = [program, "grade", *map(str, arguments), "-o", "out", "--set", "reports=[]"]

    def limit_memory():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    limit = None if memory is None else limit_memory
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, preexec_fn=limit, check=False
    )


def ids(folder):
    results_path = folder / "out/results.jsonl"
    text = results_path.read_text()
    lines = text.splitlines()
    return [json.loads(line)["sample"]["id"] for line in lines]


def long_line(size, file, text, *, listed=False):
    """Write three records, the second of which is so long by a text, piece by piece.

    As a list on request.
    """
    with file.open("w") as to:
        for number in range(3):
            head, tail = json.dumps({"id": f"t{number}", **GOOD, "input": "?"})[:-1].split("?")
            to.write(("[" if number == 0 else ",") * listed + head)
            for _ in range(size // MIB if number == 1 else 0):
                to.write('\\"[' * (MIB // 3))
            to.write(tail + "}" + ("]" if number == 2 else "") * listed + "\n")


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize(
    ("reader", "engine"), [("jsonl", "serial"), ("records", "processes"), ("list", "serial")]
)
def test_a_line_that_would_not_fit_into_memory(tmp_path, engine, reader):
    """300 MB where 700 may be had.

    The decoder of JSON ended the process by a segmentation fault.
    """
    size = 300 * MIB
    file = tmp_path / "runs.jsonl"
    long_line(size, file, "x", listed=reader == "list")
    reader = "records" if reader == "list" else reader
    memory = 700 * MIB
    outcome = grade(tmp_path, "runs.jsonl", "--reader", reader, "--engine", engine, memory=memory)
    assert outcome.returncode == 0, outcome.stderr
    assert "bytes long, more than 67,108,864 (limits.record_bytes)" in outcome.stdout
    assert "1 bad record left out, " in outcome.stdout
    assert ids(tmp_path) == ["t0", "t2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "listed"),
    some_of(map(pytest.param, ["processes", "serial", "dask"] * 2, [True] * 3 + [False] * 3), 6),
)
def test_the_limit_of_a_record(tmp_path, engine, listed):
    size = 3 * MIB
    file = tmp_path / "runs.json"
    long_line(size, file, '\\"[', listed=listed)
    arguments = ["runs.json", "--reader", "records", "--engine", engine, "--set"]
    outcome = grade(tmp_path, *arguments, "limits.record_bytes=2097152")
    assert "more than 2,097,152 (limits.record_bytes)" in outcome.stdout
    assert ids(tmp_path) == ["t0", "t2"]
    assert outcome.returncode == 0
    assert grade(tmp_path, *arguments, "limits.record_bytes=none").returncode == 0
    assert ids(tmp_path) == ["t0", "t1", "t2"]


@pytest.mark.slow
def test_one_document_above_the_limit(tmp_path):
    """A chat log that is one object is one record."""
    talk = [{"role": "user", "content": "x" * 2 * MIB}, {"role": "assistant", "content": "x"}]
    log_path = tmp_path / "log.json"
    text = json.dumps({"id": "a", "messages": talk}, indent=1)
    log_path.write_text(text)
    outcome = grade(
        tmp_path, "log.json", "--reader", "openai", "--set", "limits.record_bytes=1048576"
    )
    assert outcome.returncode == 3
    assert "log.json:1: 2,097,2" in outcome.stderr
    assert "bytes long, more than 1,048,576 (limits.record_bytes)" in outcome.stderr


@pytest.mark.slow
def test_parts_beside_the_records_above_the_limit(tmp_path):
    """They were decoded all the same, which ended the process where memory was short.

    Each is an error now.
    """
    rows_path = tmp_path / "rows.jsonl"
    text = json.dumps({"input": "x" * 2 * MIB, "ground_truth": "x"})
    rows_path.write_text(text)
    tasks = ["x" * 2 * MIB]
    results_path = tmp_path / "results.json"
    results_path.write_text(json.dumps({"info": {}, "tasks": tasks}))
    recorded_folder = EXAMPLES / "letta/recorded"
    for arguments in (
        (recorded_folder, "--dataset", "rows.jsonl"),
        ("results.json", "--reader", "tau2"),
    ):
        outcome = grade(tmp_path, *arguments, "--set", "limits.record_bytes=1048576")
        assert (outcome.returncode, ":1: " in outcome.stderr) == (3, True), outcome.stderr
        assert "bytes long, more than 1,048,576 (limits.record_bytes)" in outcome.stderr


PATHS = DATA["paths"]


def tree():
    text = "a" * 40 + "!"
    nested = {"text": text}
    for number in range(40):
        nested = {"a": nested, "b": [1, 2, {"x": number}]}
    return [{"text": "a" * 40 + "!"}, nested, nested]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("engine", ["serial", pytest.param("processes", marks=pytest.mark.faults)])
@pytest.mark.parametrize(
    "how", some_of(["ids of two files", "mapped", "id of records", "id of jsonl"], 4)
)
def test_a_path_without_end(tmp_path, engine, path, how):
    """Followed for longer than a grade may take, also by what looks for columns, stack and equal
    ids: a bad record.
    """
    rows = []
    for n in range(3):
        facets = {"tree": tree() if n == 1 else [{"text": "b"}]}
        rows.append({"id": f"t{n}", **GOOD, "facets": facets})
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    mapped = [
        "--reader=records",
        "--map=id=id",
        "--map=text=predicted",
        f"--map=facets.z={path}",
    ]
    options = {
        "mapped": mapped,
        "id of records": ["--reader=records", "--id", path, "--grader=exact_match"],
        "id of jsonl": ["--reader=jsonl", "--id", path, "--grader=exact_match"],
        "ids of two files": ["more.jsonl", "--reader=jsonl", "--id", path, "--grader=exact_match"],
    }[how]
    more_path = tmp_path / "more.jsonl"
    text = json.dumps({"id": "t9", **GOOD})
    more_path.write_text(text + "\n")
    limit = "limits.seconds_per_grade=0.3"
    outcome = grade(
        tmp_path, "runs.jsonl", *options, "--engine", engine, "--allow-all-failed", "--set", limit
    )
    assert outcome.returncode == 0, outcome.stderr
    expected_text = f"the path {path!r} took longer than 0.3 s (limits.seconds_per_grade)"
    assert expected_text in outcome.stdout
    assert "runs.jsonl:2: the path" in outcome.stdout
    assert "1 grade or record took longer than 0.3 s" in outcome.stdout
    id_count = len(ids(tmp_path))
    expected = 3 if how == "ids of two files" else 2
    assert id_count == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "records", ["$..*..*..*..*..*", "$" + "..*" * 3000], ids=["without end", "too deep"]
)
def test_a_path_to_the_records(tmp_path, records):
    runs = [{"id": "a", "predicted": "x", "t": tree()}]
    runs_path = tmp_path / "runs.json"
    text = json.dumps({"runs": runs})
    runs_path.write_text(text)
    limit = "limits.seconds_per_grade=0.3"
    outcome = grade(
        tmp_path, "runs.json", "--reader", "records", "--records", records, "--set", limit
    )
    assert outcome.returncode == 3, outcome.stderr
    assert outcome.stderr.startswith("error: runs.json: ")
    assert (
        "took longer than 0.3 s" if len(records) < 100 else "nested too deeply"
    ) in outcome.stderr


SCHEDULER = DATA["scheduler"]
GRADER = DATA["grader"]


def certified(folder, monkeypatch):
    """Have dask use a certificate of its own, wherever it is started."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    made = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj "
        "/CN=x"
    )
    subprocess.run(made.split(), cwd=folder, check=True, capture_output=True)
    setting = "DASK_DISTRIBUTED__COMM__TLS__"
    cert_path = folder / "cert.pem"
    monkeypatch.setenv(f"{setting}CA_FILE", str(cert_path))
    for role in ("CLIENT", "WORKER", "SCHEDULER"):
        monkeypatch.setenv(f"{setting}{role}__CERT", str(folder / "cert.pem"))
        key_path = folder / "key.pem"
        monkeypatch.setenv(f"{setting}{role}__KEY", str(key_path))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
@pytest.mark.parametrize(
    ("protocol", "when"),
    [
        ("tcp", "before it begins"),
        *(
            pytest.param(*kind, marks=pytest.mark.faults)
            for kind in (("tcp", "at work"), ("tls", "before it begins"))
        ),
    ],
)
def test_a_scheduler_that_is_stopped(tmp_path, monkeypatch, protocol, when):
    """It holds its connections open and answers nothing.

    The run ends after the limit, with exit code 2.
    """
    pytest.importorskip("distributed")
    if protocol == "tls":
        certified(tmp_path, monkeypatch)
    slow_path = tmp_path / "slow.py"
    slow_path.write_text(GRADER)
    for number in range(40):
        text = json.dumps({"id": f"t{number}", "predicted": "x"})
        (tmp_path / f"{number}.jsonl").write_text(text + "\n")
    with subprocess.Popen(
        [sys.executable, "-c", SCHEDULER, protocol], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as cluster:
        address = cluster.stdout.readline().strip()
        if when == "before it begins":
            cluster.send_signal(signal.SIGSTOP)
        options = [
            "--grader",
            "slow.py:slow",
            "--allow-code",
            "--engine",
            "dask",
            "--set",
            f"engine.address={address}",
        ]
        paths = tmp_path.glob("*.jsonl")
        files = [str(path) for path in paths]
        limit = ["--set", "limits.scheduler_seconds=1", "--set", "reports=[]", "-o", "out"]
        executable_path = Path(sys.executable)
        command = [executable_path.with_name("gradestack"), "grade", *files, *options, *limit]
        with subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as run:
            until((tmp_path / "begun").exists if when == "at work" else lambda: True)
            cluster.send_signal(signal.SIGSTOP)
            try:
                output = run.communicate(timeout=60)
                error_output = output[1].decode()
            finally:
                run.kill()
                cluster.kill()
    assert "Traceback" not in error_output
    assert run.returncode == 2
    if when == "at work":
        assert (
            f"the dask scheduler at {address} has not answered for 1 s (limits.scheduler_seconds)"
            in error_output
        )
    else:
        assert f"no dask scheduler answers at {address}" in error_output
        assert "it has said nothing for 1 s (limits.scheduler_seconds)" in error_output
