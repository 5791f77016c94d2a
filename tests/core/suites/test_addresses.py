"""Addresses of remote files.

What is opened, for whom, what is written of them, and what is left of them.
"""

import fnmatch
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys

import pytest

import gradestack
from gradestack import ConfigError, DataError
from gradestack.copies import files as copying
from gradestack.rundir.header import fingerprint
from gradestack.suites.recognition import expand
from gradestack_plugins.remote import fetch
from tests.core.outcomes import data, some_of
from tests.placed import unpacked

DATA = data(__file__, "addresses.yaml")


LINES = "".join(
    json.dumps({"id": str(n), "expected": [], "predicted": []}) + "\n" for n in range(3)
).encode()
REGISTRY = gradestack.discover(limit="")
pytestmark = pytest.mark.usefixtures("temporary")


@pytest.fixture
def imported(monkeypatch):
    modules = []
    load = copying.importlib.import_module
    monkeypatch.setattr(
        copying.importlib,
        "import_module",
        lambda name, *more: modules.append(name) or load(name, *more),
    )
    return modules


@pytest.fixture
def suite_folder(tmp_path, monkeypatch):
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def suite(suite_folder, **content):
    suite_path = suite_folder / "suite.yaml"
    text = json.dumps({"reports": [], **content})
    suite_path.write_text(text)
    return suite_folder / "suite.yaml"


def evil(web, suite_folder):
    """Have the server offer a file of references that has a command run by libraries that render
    them.
    """
    command = (
        f"{{{{ cycler.__init__.__globals__.os.popen('touch {suite_folder / 'ran'}').read() }}}}"
    )
    text = json.dumps({"version": 1, "templates": {"u": command}, "refs": {"x": ["{{u}}"]}})
    web.pages["/evil.json"] = text.encode()


@pytest.mark.parametrize("address", data(__file__, "never_opened.yaml"), ids=ascii)
def test_no_library_sees_an_address_of_another_kind(
    command, web, suite_folder, temporary, imported, address
):
    """It is refused in one sentence, on the command line and in a suite, whatever is allowed,
    without its password.
    """
    evil(web, suite_folder)
    real_address = address.replace("WEB", web.address).replace("PLACE", web.host)
    file = suite(suite_folder, target={"paths": [real_address]})
    for arguments in (
        ["grade", real_address],
        ["validate", file],
        ["validate", file, "--allow-remote"],
        ["run", file, "--allow-remote", "--allow-code"],
    ):
        result = command(*arguments)
        assert result.code == 2, result
        assert result.err.startswith("error: ")
        assert "unexpected" not in result.err
        assert "cret" not in result.err
        assert not result.out
        if arguments[0] == "grade":
            assert result.err.count("\n") == 1
    assert not web.requests
    assert "fsspec" not in imported
    assert not list(temporary.iterdir())
    paths = suite_folder.iterdir()
    names = [path.name for path in paths]
    assert names == ["suite.yaml"]


SUITES = DATA["suites"]


@pytest.mark.parametrize("name", SUITES)
def test_an_address_that_a_suite_names_is_opened_only_when_that_is_allowed(
    command, web, suite_folder, imported, name
):
    """Otherwise it is refused with its place, by validate as well, and nothing is fetched."""
    here_path = suite_folder / "here.jsonl"
    here_path.write_bytes(LINES)
    text = json.dumps(SUITES[name]).replace("WEB", web.address)
    content = json.loads(text)
    file = suite(suite_folder, **content)
    for arguments in (
        ["validate", file],
        ["run", file, "-o", "out"],
        ["run", file, "-o", "out", "--allow-code"],
    ):
        result = command(*arguments)
        assert result.code == 2, result
        ending = "is a remote file; pass --allow-remote if you trust this suite\n"
        assert result.err.endswith(ending)
        expected_text = f"suite.yaml:1: {'dataset' if 'dataset' in content else 'target.paths'}"
        assert expected_text in result.err
        assert result.err.count("\n") == 2
    with pytest.raises(ConfigError, match="suite"):
        gradestack.run(content, registry=REGISTRY)
    assert not web.requests
    assert "fsspec" not in imported
    web.pages["/"] = f'<a href="{web.address}/log.jsonl">log</a>'.encode()
    assert command("validate", file, "--allow-remote").code == 0
    assert command("run", file, "-o", "out", "--allow-remote").code == 0
    metrics = gradestack.run(content, registry=REGISTRY, allow_remote=True, output="again").metrics
    total = metrics["total"]
    assert total >= 3
    assert "/log.jsonl" in web.requests


def test_an_address_on_the_command_line_is_opened(command, web, suite_folder):
    """Also one set in place of a suite's, and from Python one that the caller hands over.

    Others stay the suite's.
    """
    paths = [f"{web.address}/theirs"]
    file = suite(suite_folder, target={"paths": paths})
    mine = f"{web.address}/log.jsonl"
    target_paths = f"[{mine}]"
    for path, value in {
        "target.paths": target_paths,
        "target.paths.0": mine,
        "target": f"{{paths: [{mine}]}}",
    }.items():
        expected_text = f"{path}={value}"
        assert command("validate", file, "--set", expected_text).code == 0
    code = command("grade", mine, "--dataset", mine, "-o", "out", "--set", "reports=[]").code
    assert code == 0
    gradestack.grade_files(
        mine, dataset=mine, overrides=["reports=[]"], output="out", registry=REGISTRY
    )
    stream = gradestack.stream(mine, "tau_partial", registry=REGISTRY)
    stream_count = len(list(stream))
    assert stream_count == 3
    requests = set(web.requests)
    assert requests == {"/log.jsonl"}
    target = {"paths": ["x", f"{web.address}/theirs"], "reader": "jsonl"}
    file = suite(suite_folder, target=target)
    for assignment in (f"target.paths.0={mine}", "target.reader=jsonl", "name=x"):
        result = command("validate", file, "--set", assignment)
        assert result.code == 2
        assert "--allow-remote" in result.err
    assert "/theirs" not in web.requests


ELSEWHERE = DATA["elsewhere"]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_no_other_file_of_a_suite_is_fetched(command, web, suite_folder, imported, name):
    """Whatever is allowed: they are local, and an address is refused without its password."""
    here_path = suite_folder / "here.jsonl"
    here_path.write_bytes(LINES)
    address = f"http://user:s3cret@{web.host}"
    text = json.dumps(ELSEWHERE[name]).replace("WEB", address)
    content = json.loads(text)
    file = suite(suite_folder, target={"paths": ["here.jsonl"]}, **content)
    result = command("run", file, "-o", "out", "--allow-remote", "--allow-code")
    assert result.code == 2, result
    assert "s3cret" not in result.err
    assert "is an address; here a local file is wanted" in result.err
    assert not web.requests
    assert "fsspec" not in imported


SECRET = "X-Amz-Credential=AKIA&X-Amz-Signature=s3cret" + "0" * 400  # a name no file can have


@pytest.fixture
def written(suite_folder, temporary):
    """Return a function that reads the names and texts of all files, packed parts unpacked."""

    def read():
        paths = suite_folder.rglob("*")
        files = [path for path in paths if path.is_file()]
        shards = suite_folder.rglob("*")
        content = "\n".join([*map(str, shards), *(path.read_text() for path in files)])
        return re.sub(
            r"(?<=>)[\w+/]{20,}=*(?=</script)", lambda packed: unpacked(packed[0]), content
        )

    return read


@pytest.mark.slow
def test_what_lets_readers_in_is_used_and_never_written(command, web, suite_folder, written):
    """User, password, query and fragment of an address reach its server, and no file, page, name of
    a file or line.
    """
    web.pages["/log.jsonl.gz"] = gzip.compress(LINES + b"no JSON\n")
    web.pages["/gold"] = LINES
    place_of_it = f"us3r:pa55@{web.host}"
    for name, more in {
        "log.jsonl.gz": (),
        "log.jsonl": ("--dataset", f"http://{place_of_it}/gold?{SECRET}"),
    }.items():
        address = f"http://{place_of_it}/{name}?{SECRET}#fragm3nt"
        result = command("grade", address, *more, "--debug")
        assert result.code == 0, result
        text = written() + result.out + result.err
        assert f"{web.address}/{name}" in text
        for secret in ("s3cret", "AKIA", "pa55", "fragm3nt", "us3r"):
            assert secret not in text
    assert f"/log.jsonl.gz?{SECRET}" in web.requests
    first_user = web.users[0]
    assert first_user == "Basic dXMzcjpwYTU1"
    assert (suite_folder / "gradestack-runs/log").is_dir()
    web.pages["/"] = LINES
    expected_text = f"http://{place_of_it}?{SECRET}"
    assert command("grade", expected_text, "--set", "reports=[]").code == 0
    assert "us3r" not in written()
    assert "pa55" not in written()


@pytest.mark.parametrize(
    "path",
    ["/none", "/moved?to=file:///etc/passwd", "/moved?to=/none", "/odd", "/*.jsonl", "/half"],
)
def test_errors_do_not_say_what_lets_readers_in(command, web, suite_folder, monkeypatch, path):
    monkeypatch.setattr(fetch, "SILENCE", 0.2)
    web.pages["/odd"] = b"odd"
    address = f"http://user:pa55@{web.host}{path}{'&' if '?' in path else '?'}{SECRET}#fragm3nt"
    for more in ((), ("--debug",)):
        result = command("grade", address, *more)
        assert result.code == 3
        for secret in ("s3cret", "AKIA", "pa55", "fragm3nt"):
            assert secret not in result.err
        lines = result.err.splitlines()
        last_line = lines[-1]
        assert last_line.startswith(f"error: {web.address}{path.partition('?')[0]}: ")
        assert more or result.err.count("\n") == 1
    assert "/etc/passwd" not in web.requests


@pytest.mark.parametrize("path", ["/silent", "/half"])
def test_a_server_that_falls_silent_is_waited_for_a_while(
    command, web, suite_folder, monkeypatch, path
):
    monkeypatch.setattr(fetch, "SILENCE", 0.2)
    result = command("grade", f"{web.address}{path}")
    assert result.code == 3
    expected_text = (
        f"error: {web.address}{path}: cannot be read: the server did not answer in time\n"
    )
    assert result.err == expected_text


def test_a_run_is_continued_with_another_signature(web):
    """The run depends on the address without the signature, and on the content of the file."""

    def looked_at(query):
        paths = [f"{web.address}/log.jsonl?{query}"]
        target = {"paths": paths}
        content = {"target": target}
        return fingerprint(gradestack.load_suite(content, registry=REGISTRY, allow_remote=True))

    first = looked_at("signature=1")
    assert looked_at("signature=2") == first
    web.pages["/log.jsonl"] = LINES * 2
    assert looked_at("signature=2") != first


@pytest.fixture
def bucket(monkeypatch):
    """Return the files of a storage of addresses s3://, by name, empty."""
    import fsspec

    class Storage(fsspec.AbstractFileSystem):
        protocol, cachable, files = "s3", False, {}

        def info(self, path, **_):
            if path in self.files:
                file = self.files[path]
                return {"name": path, "size": len(file), "type": "file"}
            if self.find(path):
                return {"name": path, "size": 0, "type": "directory"}
            raise FileNotFoundError(path)

        def find(self, path, *_, **__):
            return [name for name in self.files if name.startswith(f"{path}/")]

        def glob(self, path, **_):
            return fnmatch.filter(self.files, path)

        def _open(self, path, *_, **__):
            return io.BytesIO(self.files[path])

    fsspec_registry = sys.modules["fsspec.registry"]
    monkeypatch.setitem(
        fsspec_registry._registry, "s3", Storage
    )  # what the package s3fs would be found by
    return Storage.files


@pytest.mark.slow
def test_a_bucket_is_read(suite_folder, bucket):
    """A file, several by a pattern, or a directory, packed or not.

    Results show as much of the address as tells.
    """
    compressed = gzip.compress(LINES)
    bucket |= {
        "b/logs/a.jsonl": LINES,
        "b/logs/b c.jsonl.gz": compressed,
        "b/logs/": b"",
        "b/logs/.x/y": b"",
    }
    report = gradestack.grade_files("s3://b/logs/a.jsonl", output="out", registry=REGISTRY)
    inputs = report.header["inputs"]
    path = inputs[0]["path"]
    assert path == "s3://b/logs/a.jsonl"
    for address in ("s3://b/logs/*", "s3://b/logs", "s3://b/logs/"):
        bucket.pop("b/logs/" if "*" in address else "", None)
        report = gradestack.grade_files(address, reader="jsonl", output="out", registry=REGISTRY)
        total = report.metrics["total"]
        assert total == 6
        rows = report.rows()
        files = {row["source"]["file"] for row in rows}
        assert files == {"a.jsonl", "b c.jsonl.gz"}
        bucket.pop("b/logs/.x/y", None)


def test_what_cannot_be_read_is_said(monkeypatch, bucket):
    """No such file or pattern is unusable input; a package that is missing is a matter of usage."""
    for address in ("s3://b/none.jsonl", "s3://b/*"):
        with pytest.raises(DataError) as caught:
            expand([address])
        assert str(caught.value).startswith(f"{address}: ")
    with pytest.raises(ConfigError, match=r"gs://b/x: .*gcsfs"):
        expand(["gs://b/x"])
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ConfigError, match=r"\(extra 'remote'\)"):
        expand(["s3://b/none.jsonl"])


ODD_NAMES = [
    "..",
    ".",
    "...",
    "..gz",
    "a\\..\\b",
    "c:d",
    "a\0b",
    "a\nb",
    "x" * 5000,
    "é" * 200,
    "a*b",
    "\ud800",
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_no_name_leads_out_of_the_folder_of_copies(tmp_path, temporary, bucket, name):
    """Neither of a file given, nor of one that a pattern matches, packed or not.

    In a directory it is refused.
    """
    compressed = gzip.compress(LINES)
    bucket |= {
        f"b/{name}": LINES,
        f"b/dir/{name}": LINES,
        f"b/deep/{name}/x": LINES,
        f"b/gz/{name}": compressed,
    }
    paths = tmp_path.rglob("*")
    before = {path for path in paths if not path.is_relative_to(temporary)}
    for address in ("s3://b/*", "s3://b/dir/*", "s3://b/gz/*"):
        for copy in expand([address]):
            assert copy.is_file()
            assert copy.resolve().is_relative_to(temporary.resolve())
            relative_path = copy.resolve().relative_to(temporary.resolve())
            part_count = len(relative_path.parts)
            assert part_count == 3
    for address in ("s3://b/dir", "s3://b/deep"):
        with pytest.raises(DataError, match="no local file can be called"):
            expand([address])
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(temporary)} == before


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a//x", "./x"])
def test_no_file_of_a_directory_leads_out_of_its_copy(tmp_path, temporary, bucket, name):
    bucket |= {f"b/{name}": LINES, "b/y": LINES}
    with pytest.raises(DataError, match=r"s3://b: holds .*, which no local file can be called"):
        expand(["s3://b"])
    paths = tmp_path.rglob("x")
    assert not list(paths)


STANDS_STILL = DATA["stands_still"]
"""The command line, which unpacks the beginning of a file and gets no further."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", some_of(["SIGTERM", "SIGINT", "SIGHUP"], 3))
@pytest.mark.parametrize("what", ["grade", "validate", "unpack"])
def test_copies_are_removed_when_a_signal_ends_their_making(
    web, suite_folder, temporary, until, what, number
):
    if signal.getsignal(getattr(signal, number)) is signal.SIG_IGN:
        pytest.skip(
            "the tests were started with this signal ignored (nohup), and so is what they start"
        )
    log_path = suite_folder / "log.jsonl.gz"
    compressed = gzip.compress(LINES)
    log_path.write_bytes(compressed)
    paths = [f"{web.address}/half"]
    file = suite(suite_folder, target={"paths": paths})
    grade = ["grade", f"{web.address}/half"]
    arguments = {
        "grade": grade,
        "validate": ["validate", str(file), "--allow-remote"],
        "unpack": ["grade", "log.jsonl.gz"],
    }[what]
    env = {**os.environ, "TMPDIR": str(temporary)}
    run = subprocess.Popen(
        [sys.executable, "-c", STANDS_STILL, *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(
        lambda: (
            run.poll() is not None
            or any(path.is_file() for path in temporary.glob("gradestack-*/**/*"))
        )
    )
    run.send_signal(getattr(signal, number))
    out, err = run.communicate(timeout=60)
    assert out == ""
    assert err.strip() == "interrupted"
    assert run.returncode == 130
    assert not list(temporary.iterdir())
