"""Where copies of inputs lie, and a web server that notes what is asked of it."""

import http.server
import json
import tempfile
import threading
from multiprocessing.util import get_temp_dir
from urllib.parse import parse_qs, urlsplit

import pytest

from gradestack.copies import files as copying

LINES = "".join(
    json.dumps({"id": str(n), "expected": [], "predicted": []}) + "\n" for n in range(3)
).encode()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the directory that copies are made in, forgotten after each test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    # that of this process's workers is made once, and has a socket in it, whose name must be short
    get_temp_dir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(copying, "_folders", [])
    monkeypatch.setattr(copying, "_read", {})
    return folder


class Web:
    """A server on this machine: ``pages`` by path.

    ``/moved?to=`` leads elsewhere, ``/half`` stops after its beginning.

    Attributes:
        seen: What was asked for, with the query.
        users: What was said of who asks.
    """

    def __init__(self):
        self.pages = {"/log.jsonl": LINES}
        self.requests = []
        self.users = []
        self.over = threading.Event()
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                web.requests.append(self.path)
                authorization = self.headers["Authorization"]
                web.users.append(authorization)
                requested = urlsplit(self.path)
                if requested.path == "/silent":
                    web.over.wait()
                    return
                page = web.pages.get(requested.path)
                self.send_response(
                    302
                    if requested.path == "/moved"
                    else 200
                    if page or requested.path == "/half"
                    else 404
                )
                if requested.path == "/moved":
                    self.send_header("Location", parse_qs(requested.query)["to"][0])
                self.send_header(
                    "Content-Length",
                    "1000000" if requested.path == "/half" else str(len(page or b"")),
                )
                self.send_header(
                    "Content-Type",
                    "text/html" if requested.path.endswith("/") else "application/json",
                )
                self.end_headers()
                self.wfile.write(LINES if requested.path == "/half" else page or b"")
                if requested.path == "/half":
                    web.over.wait()

            def log_message(self, *_):
                """Print no line of a request."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.address = f"http://{self.host}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}).start()

    def end(self):
        """Answer nobody any more."""
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def web():
    server = Web()
    yield server
    server.end()
