"""`gradestack view`: a run in the browser, part by part, for one person on this machine."""

import http.client
import json
import shutil
import signal
import socket
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

import gradestack
from gradestack.report import load_report
from gradestack_plugins.pages.served_run import ServedRun
from gradestack_plugins.pages.view import Server
from tests.core.outcomes import data, write_records
from tests.core.toy_components import files_of
from tests.placed import carried, unpacked

DATA = data(__file__, "view.yaml")

COUNT = 120


@pytest.fixture(scope="module")
def runs(tmp_path_factory, registry):
    """A directory with runs of the same records: `full`, `compressed`, `none` (no rows)."""
    folder = tmp_path_factory.mktemp("viewed")
    lines = []
    for number in range(COUNT):
        expected = {"text": "ä", "calls": [{"name": "f", "arguments": {"x": number}}]}
        arguments = {"x": number if number % 3 else -1}
        made = {
            "text": "ä",
            "calls": [{"name": "f", "arguments": arguments}],
        }
        talk = [{"role": "user", "content": f"Bitte Nummer {number}, schöne Grüße"}]
        run = number % 2
        row = {
            "id": f"t{number // 2}",
            "run": run,
            "messages": talk,
            "expected": expected,
            "predicted": made,
        }
        lines.append(row | ({"expected": None} if number == 7 else {}))
    path = folder / "rows.jsonl"
    write_records(path, lines)
    for row_form in ("full", "compressed", "none"):
        rows_path = folder / "rows.jsonl"
        paths = [str(rows_path)]
        target = {"paths": paths}
        suite = {
            "name": "s & t",
            "target": target,
            "reader": "jsonl",
            "rows": row_form,
        }
        suite |= {"graders": {"partial": "tau_partial"}, "reports": []}
        output = folder / row_form
        gradestack.run(suite, output=output, registry=registry)
    return folder


@contextmanager
def served(path, registry):
    """Yield a function that asks the server of a run for an address and returns status, headers and
    body.
    """
    report = load_report(path)
    run = ServedRun(report, registry)
    server = Server(run)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def ask(address="", *, method="GET", token=None, host=None, raw=None):
        """Send a request to the server, and return the status, the headers and the body."""
        with closing(
            http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        ) as connection:
            if raw is not None:
                target = raw
            else:
                target = f"/{server.token if token is None else token}/{address}"
            if host is None:
                hosts = [f"127.0.0.1:{server.server_port}"]
            else:
                hosts = host
            connection.putrequest(method, target, skip_host=True)
            for host_header in hosts:
                connection.putheader("Host", host_header.format(port=server.server_port))
            connection.endheaders()
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    ask.server = server
    try:
        yield ask
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        run.close()


@pytest.fixture(scope="module")
def full(runs, registry):
    path = runs / "full"
    with served(path, registry) as ask:
        yield ask


def sample_of(ask, number):
    """Return the row of a sample as the page loads it, and what panels show of it."""
    status, headers, body = ask(f"report_data/chunk-s{number}.js")
    assert status == 200
    assert headers["Content-Type"] == "text/javascript; charset=utf-8"
    documents = []
    for line in unpacked(body.decode().split('"')[1]).split("\n"):
        document = json.loads(line)
        documents.append(document)
    return documents


def test_pages_of_a_run_and_nothing_written(full, runs):
    before = files_of(runs)
    status, _, page = full()
    assert status == 200
    expected = full("report.html")[2]
    assert page == expected
    assert b">suite s &amp; t<" in page
    assert carried(page.decode()) == ""  # rows come one by one
    row, panels = sample_of(full, 8)
    assert row["trajectory"][0][0]["content"] == "Bitte Nummer 7, schöne Grüße"
    assert panels == []
    _, headers, row = full("rows/8.json")
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    full_folder = runs / "full"
    results_path = full_folder / "results.jsonl"
    lines = results_path.read_bytes().splitlines(keepends=True)
    assert row == lines[7]
    files = files_of(runs)
    assert files == before


def test_only_who_knows_the_address_is_answered(full):
    token = "x" * 32
    for options in (
        {"token": ""},
        {"token": token},
        {"raw": "/"},
        {"raw": "*"},
        {"raw": "//x/"},
        {"raw": "/ä/"[:1]},
    ):
        status, _, body = full(**options)
        assert (status, body) == (
            404,
            b"nothing is here; the address has a part that cannot be guessed\n",
        )
    for host in (
        ["evil.example:{port}"],
        ["127.0.0.1"],
        [],
        ["127.0.0.1:{port}", "evil.example"],
        ["127.0.0.1:{port}."],
    ):
        assert full(host=host)[0] == 403
    assert full(host=["localhost:{port}"])[0] == 200
    assert full(raw="http://[")[0] == 404
    token_count = len(full.server.token)
    assert token_count >= 32
    assert full.server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "X"]
)
def test_only_reading_is_possible(full, method):
    status, headers, _ = full(method=method)
    assert status == 405
    assert headers["Allow"] == "GET"


@pytest.mark.parametrize("address", DATA["there_is_nothing_else"])
def test_there_is_nothing_else(full, address):
    assert full(address)[0] == 404


def test_pages_may_do_nothing_but_be_shown(full):
    for address in (
        "",
        "report_data/chunk-s1.js",
        "report_data/chunk-text.js",
        "rows/1.json",
        "none",
    ):
        _, headers, body = full(address)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert policy.endswith("; frame-ancestors 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy
        if body.startswith(b"<!doctype"):
            own_policy = policy.removesuffix("; frame-ancestors 'none'")
            expected_text = f'content="{own_policy}"'
            assert expected_text in body.decode().replace("&#39;", "'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_samples_of_compressed_rows_are_served(runs, registry):
    path = runs / "compressed"
    with served(path, registry) as ask:
        sample = sample_of(ask, 4)
        trajectory = sample[0]["trajectory"]
        first_turn = trajectory[0]
        assert first_turn[0]["content"] == "Bitte Nummer 3, schöne Grüße"


def test_a_row_that_changed_is_not_given(runs, registry, tmp_path):
    full_folder = runs / "full"
    shutil.copytree(full_folder, tmp_path / "out")
    out_folder = tmp_path / "out"
    rows = out_folder / "results.jsonl"
    path = tmp_path / "out"
    with served(path, registry) as ask:
        rows.write_bytes(b"x" + rows.read_bytes())
        for address in ("report_data/chunk-s2.js", "rows/2.json"):
            status, _, body = ask(address)
            assert status == 500
            assert b"results.jsonl:2: not JSON" in body


def test_a_port_that_is_taken_is_said(command, runs, tmp_path):
    with closing(socket.socket()) as busy_socket:
        busy_socket.bind(("127.0.0.1", 0))
        busy_socket.listen()
        port = busy_socket.getsockname()[1]
        full_folder = runs / "full"
        result = command("view", full_folder, "--port", port)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(f"error: --port {port}: 127.0.0.1:{port} cannot be listened on: ")
    assert command("view", tmp_path).code == 3


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_ctrl_c_ends_it_quietly(command, runs, monkeypatch, name):
    """Also where the thread of a connection starts.

    An exception there would close the connection under it.
    """
    opened, folders, answers = [], [], []
    original = ServedRun.close
    started = Server.process_request

    def ask_for_a_row():
        answers.append(urlopen(f"{opened[0]}rows/1.json", timeout=300).status)  # noqa: S310

    ask = threading.Thread(target=ask_for_a_row)
    monkeypatch.setattr("webbrowser.open", lambda url: (opened.append(url), ask.start()))

    def signalled(*arguments):
        signal.raise_signal(getattr(signal, name))
        return started(*arguments)

    monkeypatch.setattr(Server, "process_request", signalled)
    monkeypatch.setattr(
        ServedRun, "close", lambda run: (folders.append(Path(run._folder.name)), original(run))
    )
    handler = signal.getsignal(signal.SIGTERM)
    full_folder = runs / "full"
    result = command("view", full_folder, "--open")
    ask.join()
    assert result.code == 0
    assert result.err == ""
    assert answers == [200]
    assert signal.getsignal(signal.SIGTERM) is handler
    (url,) = opened
    expected_text = f"View: {url} (Ctrl-C ends it)\n"
    assert result.out == expected_text
    assert [folder.exists() for folder in folders] == [False]
    with closing(socket.socket()) as probe:
        number = int(url.split(":")[2].split("/")[0])
        assert probe.connect_ex(("127.0.0.1", number)) != 0
