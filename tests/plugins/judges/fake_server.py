"""A server that speaks as OpenAI's does, on this machine, and misbehaves as it is asked to.

Verdicts follow from the question, so that the same question has the same reply whatever went wrong
before.
"""

import contextlib
import hashlib
import json
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def number_of(text):
    digest = hashlib.sha256(text.encode()).hexdigest()
    return int(digest[:8], 16)


def verdict_of(task, criterion):
    text = f"{task}/{criterion}"
    number = number_of(text)
    if number % 100 < 70:
        return "pass"
    return "fail"


class Server(ThreadingHTTPServer):
    """``answer(server, question, task, time)`` may say otherwise: status, body and headers.

    None for the usual.
    """

    daemon_threads, request_queue_size = True, 128

    def __init__(self, answer=lambda *_: None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.counts, self.times, self.lock = (
            answer,
            Counter(),
            Counter(),
            threading.Lock(),
        )
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_):
        """Print nothing when a client was killed."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        content_length = self.headers["Content-Length"]
        question = json.loads(self.rfile.read(int(content_length)))
        messages = question["messages"]
        text = "\n".join(message["content"] for message in messages)
        matches = re.findall(r"\bS\d{4}\b", text)
        task = matches[0]
        with self.server.lock:
            self.server.times[task] += 1
            self.server.counts["asked"] += 1
        authorization = self.headers.get("Authorization", "")
        question |= {"key": authorization, "path": self.path}
        times = self.server.times
        other = self.server.answer(self.server, question, task, times[task])
        status, body, *headers = other or (200, completion(sound_reply(question, task)))
        if isinstance(body, bytes):
            content = body
        else:
            content = json.dumps(body).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            for name, value in {
                "Content-Length": str(len(content)),
                **(headers[0] if headers else {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)


def sound_reply(question, task, check=None):
    """Return a reply of the form that is asked for.

    Verdicts on criteria, or a score by a rubric of letta-evals.
    """
    last_message = question["messages"][-1]
    if "Criteria:" not in last_message["content"]:
        score = 0.25
        if verdict_of(task, "rubric") == "pass":
            score = 1
        return json.dumps({"rationale": task, "score": score})
    check = check or question["messages"][0]["content"][-8:]
    messages = question["messages"]
    text = messages[-1]["content"].split("Criteria:\n")[1].split("\n")[0]
    names_of_criteria = json.loads(text)
    criteria = {}
    for name in names_of_criteria:
        verdict = verdict_of(task, name)
        reason = f"{task} {name}"
        criteria[name] = {"reason": reason, "verdict": verdict}
    return json.dumps({"check": check, "criteria": criteria})


def completion(content, finish="stop", **message):
    message = {"role": "assistant", "content": content, **message}
    return {
        "model": "gpt-x-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 40},
    }


def faulty(server, question, task, nth):
    """Answer one question in twenty with 429, with 503, with half a body, and let one in fifty
    hang: the first time.
    """
    number = number_of(task)
    if nth == 1 and number % 20 < 3:
        return [(429, {}, {"Retry-After": "0.05"}), (503, b"<html>"), (200, b'{"choices": [')][
            number % 20
        ]
    if nth == 1 and number % 50 == 3:
        time.sleep(1.5)
    time.sleep(0.01)
    return None


@contextlib.contextmanager
def serving(answer=lambda *_: None):
    with Server(answer) as server:
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        yield server
        server.shutdown()
