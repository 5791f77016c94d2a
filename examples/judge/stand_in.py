"""Stand in for a model that judges: a server that speaks as OpenAI's does.

The file ``address`` says where.
"""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(ThreadingHTTPServer):
    """Takes many requests at a time."""

    request_queue_size = 64


class Model(BaseHTTPRequestHandler):
    """Takes every answer with "Settings" for a good one, and one in nine of the others."""

    def do_POST(self) -> None:
        """Give the verdicts on one answer."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        system, user = (each["content"] for each in asked["messages"])
        number = int(re.findall(r"password (\d+)", user)[0])
        solved = "pass" if "Settings" in user or number % 9 == 0 else "fail"
        verdicts = {"solved": {"reason": "It names the place.", "verdict": solved}}
        verdicts["polite"] = {"reason": "Nothing rude.", "verdict": "pass"}
        content = json.dumps({"check": system[-8:], "criteria": verdicts})
        choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 300, "completion_tokens": 60}
        body = json.dumps({"model": "stand-in", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


server = Server(("127.0.0.1", 0), Model)
Path("address").write_text(f"http://127.0.0.1:{server.server_port}/v1", encoding="utf-8")
server.serve_forever()
