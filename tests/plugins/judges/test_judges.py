"""Models as judges.

Sessions on the command line, faults on the way, and what replies and labels come to.
"""

import hashlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from email.utils import formatdate
from fractions import Fraction
from itertools import pairwise

import httpx
import pytest
from msgspec import to_builtins

from gradestack import (
    Grade,
    Sample,
    ToolCall,
    figures,
    testing,
)
from gradestack.cli.commands import main
from gradestack.jsonio import dumps
from gradestack_plugins.judges.asking import _NO_REPLY, _NOT_SENT, _describe_failure
from gradestack_plugins.judges.contract import Judged, Request
from gradestack_plugins.judges.grader import JudgedByRubric
from gradestack_plugins.judges.journal import Reply
from tests.conftest import THOROUGH, until
from tests.core.outcomes import data, some_of
from tests.plugins.judges.fake_server import (
    completion,
    faulty,
    number_of,
    serving,
    sound_reply,
    verdict_of,
)

RUBRIC = """
name: helpful
criteria: {solved: The agent did what the user asked., polite: The agent is polite.}
judge: {model: gpt-x, price: {input: 1, output: 2}}
"""


SAMPLES, KILLS = (500, (3, 60, 150, 280, 430)) if THOROUGH else (60, (10,))
ENGINES = ("serial", "processes", "dask") if THOROUGH else ("serial", "processes")


def write_samples(path, number, **more):
    name = "S{:04d}".format
    texts = []
    for n in range(number):
        predicted = {"text": f"answer {n}"}
        texts.append({"predicted": predicted, **more})
    lines = [{"id": name(n), "input": "do TASK", **text} for n, text in enumerate(texts)]
    texts = []
    for line in lines:
        texts.append(json.dumps(line).replace("TASK", line["id"]) + "\n")
    path.write_text("".join(texts), encoding="utf-8")


@pytest.fixture
def work_folder(tmp_path, monkeypatch):
    """Return a directory with a rubric and 40 samples, in which the test runs.

    The key stands in a variable.
    """
    pytest.importorskip("httpx", reason="httpx is not installed: pip install httpx (extra 'judge')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "sk-secret-0123456789")
    r_path = tmp_path / "R.yaml"
    r_path.write_text(RUBRIC, encoding="utf-8")
    path = tmp_path / "data.jsonl"
    write_samples(path, 40)
    return tmp_path


@pytest.fixture
def command(work_folder, capfd):
    """Return a function that runs a command line and returns exit code and output.

    JUDGE, GRADE and FILES are short forms in the command line.
    """

    def run(line, server=None):
        short = {
            "JUDGE": "judge FILES --base-url URL --api-key-env JUDGE_KEY --backoff 0.01",
            "GRADE": "grade FILES -o out",
        }
        url = server.url if server else "URL"
        short |= {
            "FILES": "data.jsonl --rubric R.yaml --judgements J.jsonl",
            "URL": url,
        }
        for name, text in short.items():
            if name != "JUDGE":
                line = line.replace(name, text)
            else:
                line = line.replace("JUDGE ", f"{text} ")
        code = 0
        try:
            main(shlex.split(line))
        except SystemExit as done:
            code = done.code or 0
        shown = capfd.readouterr()
        return code, shown.out + shown.err

    return run


@pytest.fixture
def on_record(command, work_folder):
    path = work_folder / "data.jsonl"
    write_samples(path, SAMPLES)
    with serving() as server:
        assert command("JUDGE ", server)[0] == 0
    return work_folder / "J.jsonl"


def rows(work_folder, out="out"):
    results_path = work_folder / out / "results.jsonl"
    text = results_path.read_text(encoding="utf-8")
    lines = text.splitlines()
    grades_by_id = {}
    for row in map(json.loads, lines):
        grades_by_id[row["sample"]["id"]] = row["grade"]
    return grades_by_id


CASES = [
    case if "steps" in case else {"what": case["what"], "steps": [case]}
    for kind in data(__file__, "sessions.yaml").values()
    for case in kind
]


def answering(case):
    """Return the function that answers requests by a case of the file.

    SOUND in its words is a right reply, ESCAPED has the key, COPIED another check.
    """

    def reply(_, question, task, nth):
        response_format = question.get("response_format", {})
        form = response_format.get("type", "plain")
        times = case.get("times", 99)
        if nth > times or form not in case.get("forms", form) or task == case.get("sound"):
            return None
        if "status" in case:
            text = case.get("body", "").replace("KEY", question["key"])
            headers = case.get("headers", {})
            return case["status"], text.encode(), headers
        sound = sound_reply(question, task)
        names = {"SOUND": sound, "KEY": question["key"]}
        names["COPIED"] = sound_reply(question, task, check="00000000")
        names["FAILED"] = names["SOUND"].replace('"pass"', '"fail"')
        names["UNCLEAR"] = re.sub('"(pass|fail)"', '"unclear"', names["SOUND"])
        key = question["key"]
        names["ESCAPED"] = names["SOUND"].replace(
            task, "".join(f"\\u{ord(letter):04x}" for letter in key)
        )
        content = case["content"] and re.sub(
            "|".join(names), lambda match: names[match[0]], case["content"]
        )
        message = case.get("message", {})
        return 200, completion(content, case.get("finish", "stop"), **message)

    return reply


def prepare(step, work_folder, server):
    if "answer" in step:
        if step["answer"]:
            server.answer = answering(step["answer"])
        else:
            server.answer = lambda *_: None
    if "samples" in step:
        path = work_folder / "data.jsonl"
        write_samples(path, step["samples"])
    for name, text in step.get("write", {}).items():
        (work_folder / name).write_text(text.replace("URL", server.url), encoding="utf-8")
    for name, changes in step.get("edit", {}).items():
        text = (work_folder / name).read_text(encoding="utf-8")
        for old, new in changes:
            text, number = re.subn(old, new, text, count=1)
            assert number == 1, old
        (work_folder / name).write_text(text, encoding="utf-8")
    if "labels" in step:  # the verdicts of the server, of which some are turned round
        right, wrong = step["labels"]
        passes = []
        for n in range(right + wrong):
            task = f"S{n:04d}"
            verdict = verdict_of(task, "solved")
            passes.append(verdict == verdict_of(f"S{n:04d}", "polite") == "pass")
        lines = []
        for n, passed in enumerate(passes):
            label = "pass" if passed != (n < wrong) else "fail"
            lines.append(f"S{n:04d},{label}\n")
        l_path = work_folder / "L.csv"
        l_path.write_text("id,label\n" + "".join(lines) + "nobody,pass\n", encoding="utf-8")


def check(step, work_folder, output):
    if "state" in step:
        values = set()
        for grade in rows(work_folder).values():
            fault = grade.get("fault", {})
            code = fault.get("code", grade["state"])
            values.add(code)
        assert values == {step["state"]}
    if "lines" in step:
        lines = []
        j_path = work_folder / "J.jsonl"
        for line in j_path.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            lines.append(document)
        expected = {tuple(step["lines"])}
        assert {(line["mode"], len(line.get("rejected", ()))) for line in lines} == expected
    for name, text in step.get("shows", {}).items():
        assert text in (work_folder / name).read_text(encoding="utf-8")
    summary = step.get("summary", {})
    for at, wanted in summary.items():
        summary_path = work_folder / "out/summary.json"
        values = json.loads(summary_path.read_text(encoding="utf-8"))
        for key in at.split("."):
            if key.isdecimal():
                values = values[int(key)]
            else:
                values = values.get(key)
        assert values == wanted, at


@pytest.mark.parametrize("case", some_of(CASES, 2), ids=lambda case: case["what"])
def test_session(case, command, work_folder):
    """Every odd thing ends in a state, a sentence and an exit code, never in a zero.

    No key is anywhere.
    """
    everything = ""
    with serving() as server:
        for step in case["steps"]:
            requests_made = server.counts["asked"]
            prepare(step, work_folder, server)
            code, output = command(step["run"], server) if "run" in step else (0, "")
            everything += output
            expected = step.get("exit", 0)
            assert code == expected, output
            says = step.get("says", [])
            for text in [step["says"]] if isinstance(says, str) else step.get("says", []):
                assert text in output, output
            assert server.counts["asked"] - requests_made == step.get(
                "asked", server.counts["asked"] - requests_made
            )
            assert "Traceback" not in output or "--debug" in step["run"]
            check(step, work_folder, output)
    paths = work_folder.rglob("*")
    files = [
        path for path in paths if path.is_file() and path.suffix != ".yaml"
    ]  # which a case writes
    everything += "".join(path.read_text(errors="replace") for path in files)
    assert "sk-secret-0123456789" not in everything
    assert "sk-written" not in everything
    assert "sk-hidden" not in everything


ASKING = {
    "letta": ("rubric, prompt: Is it good", {}),
    "when2call": ("when2call", {"expected": {"label": "cannot_answer"}}),
    "orchestrationbench": (
        "orchestrationbench",
        {
            side: {"calls": [{"name": "find", "arguments": {"to": to, "day": 1}}]}
            for side, to in {"expected": "TASK", "predicted": "TASK, please"}.items()
        },
    ),
}


@pytest.mark.parametrize("family", ASKING)
def test_judges_of_families(family, command, work_folder):
    """Every reply is read as the family's document says; a model that broke down is failed."""
    cases, (options, more) = data(__file__, f"{family}.yaml"), ASKING[family]
    path = work_folder / "data.jsonl"
    write_samples(path, len(cases), **more)
    graders = f"{{q: {{kind: {options}, judgements: J.jsonl}}}}"
    s_path = work_folder / "s.yaml"
    s_path.write_text(f"target: {{paths: [data.jsonl]}}\ngraders: {graders}\n")

    def reply(_, __, task, ___):
        number = int(task[1:])
        case = cases[number]
        message = case.get("message", {})
        return 200, completion(case["content"], case.get("finish", "stop"), **message)

    with serving(reply) as server:
        output = command("judge s.yaml --repairs 0 --base-url URL --api-key-env JUDGE_KEY", server)
    assert (output[0], command("run s.yaml -o out --engine serial")[0]) == (3, 0), output
    for case, grade in zip(cases, rows(work_folder).values(), strict=True):
        if grade["state"] == "failed":
            verdict = grade["fault"]["code"]
        else:
            verdict = grade["score"]
        if family == "orchestrationbench":
            reasons = grade.get("reasons", ())
            parts = grade["parts"]
            verdict = [
                parts["value"],
                *(reason["code"] for reason in reasons),
            ]
        assert verdict == case["documented"], case["what"]


LINE = [
    sys.executable,
    "-m",
    "gradestack.cli",
    *["judge", "data.jsonl", "--rubric", "R.yaml", "--judgements", "J.jsonl", "--base-url"],
]


SECRETS = [
    *("p", "pass", "fail", "solved", "reason", "verdict", "unclear", "criteria", "0.5", "1234567"),
    *(("sk-" + "a1B2" * 10)[:size] for size in range(1, 41)),
    *('{"check":', '"verdict": "pass"', "json_schema", "content_filter", "*" * 9, "S0003 solved"),
]


@pytest.mark.parametrize("secret", some_of(SECRETS, 12))
def test_verdicts_do_not_depend_on_the_key(secret, command, work_folder, monkeypatch):
    """A key of 8 characters or more is nowhere on disk; no reply is read with a part missing."""
    monkeypatch.setenv("JUDGE_KEY", secret)
    path = work_folder / "data.jsonl"
    write_samples(path, 6)

    def reply(server, question, task, nth):
        reply = json.loads(sound_reply(question, task))
        reply["criteria"]["polite"]["reason"] += f" {question['key']} é"
        return 200, completion(json.dumps(reply))

    with serving(reply) as server:
        code, output = command("JUDGE ", server)
        assert (code, server.counts["asked"]) == (0, 6), output
    assert command("GRADE")[0] == 0
    for task, grade in rows(work_folder).items():
        right = [verdict_of(task, name) == "pass" for name in ("solved", "polite")]
        assert grade["state"] == "graded"
        expected = sum(right) / 2
        assert grade["score"] == expected
    j_path = work_folder / "J.jsonl"
    lines = j_path.read_text(encoding="utf-8").splitlines()
    reasons = [json.loads(line)["content"] for line in lines]
    repeated = []
    for text in reasons:
        document = json.loads(text)
        reason = document["criteria"]["polite"]["reason"]
        repeated.append(reason)
    hidden = len(secret) >= 8
    assert all((f"Bearer {secret}" in text) != hidden for text in repeated)


@pytest.mark.parametrize("kind", ["nonsense", "prose", "refusals", "HTML", "half of them right"])
def test_a_server_without_verdicts_costs_little_and_is_no_success(kind, command, work_folder):
    """Verdicts, exit codes and the number of requests, of 40 samples."""
    nonsense = completion("%&/(" * 300)
    bodies = {
        "nonsense": nonsense,
        "prose": completion("I think the agent did well: pass."),
        "refusals": completion(None, refusal="I cannot help with that."),
        "HTML": b"<!doctype html><title>Sign in</title>",
    }

    def reply(server, question, task, nth):
        if kind in bodies:
            return 200, bodies[kind]
        number = int(task[1:])
        if number % 2:
            return None
        return (200, completion("I think so."))

    with serving(reply) as server:
        code, output = command("JUDGE --repairs 0", server)
        requests_made = server.counts["asked"]
    assert code == 3
    expected = 5 if kind in ("nonsense", "prose", "HTML") else 40
    assert requests_made == expected
    assert ("--again" in output) == (kind != "HTML")
    if kind == "HTML":
        j_path = work_folder / "J.jsonl"
        assert not j_path.exists()
        return
    assert command("GRADE")[0] == (0 if kind == "half of them right" else 3)
    verdicts = {task for task, grade in rows(work_folder).items() if grade["state"] == "graded"}
    if kind == "half of them right":
        right = set()
        for n in range(1, 40, 2):
            right.add(f"S{n:04d}")
    else:
        right = set()
    assert verdicts == right


@pytest.mark.slow
def test_a_killed_judge_goes_on_where_it_was(on_record, command, work_folder):
    full_record = on_record.read_bytes()
    part = work_folder / "J.jsonl.part"
    on_record.unlink()
    with serving(faulty) as server:
        for size in KILLS:
            process = subprocess.Popen(
                [*LINE, server.url, "--api-key-env", "JUDGE_KEY"], stderr=subprocess.DEVNULL
            )
            until(lambda size=size: part.exists() and part.read_bytes().count(b'"vote"') >= size)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            with part.open("ab") as file:
                file.write(b'{"content":"torn')
        twice = set()
        for task, times in server.times.items():
            if times > 1 and number_of(task) % 50 > 3:
                twice.add(task)
        assert command("JUDGE --timeout 0.7 --retries 40", server)[0] == 0
    assert on_record.read_bytes() == full_record
    assert not part.exists()
    tasks = {task for task in twice if number_of(task) % 20 > 2}
    expected = len(KILLS) * 16
    assert len(tasks) <= expected


def test_ctrl_c_keeps_what_has_arrived(command, work_folder):

    def reply(server, *_):
        if server.counts["asked"] == 20:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    with serving(reply) as server:
        assert command("JUDGE --concurrency 1", server)[0] == 130
    j_path = work_folder / "J.jsonl"
    assert j_path.read_bytes().count(b"\n") in (18, 19, 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    "wait", some_of([lambda: "0.7", lambda: formatdate(time.time() + 2, usegmt=True)], 2)
)
def test_after_a_429_nobody_asks_and_a_second_judge_never_does(wait, command, work_folder):
    times, second = [], []

    def reply(server, *_):
        now = time.monotonic()
        times.append(now)
        if server.counts["asked"] == 1:
            second.append(
                subprocess.run([*LINE, server.url], capture_output=True, text=True, check=False)
            )
        if server.counts["asked"] == 10:
            return (429, {}, {"Retry-After": wait()})
        return None

    with serving(reply) as server:
        assert command("JUDGE --concurrency 2", server)[0] == 0
    assert max(after - before for before, after in pairwise(times[1:])) > 0.5
    assert second[0].returncode == 2
    assert "another `gradestack judge` is writing it" in second[0].stderr


def judged(folder, rubric="criteria: {a: x}\njudge: {model: m}"):
    r_path = folder / "R.yaml"
    r_path.write_text(rubric if isinstance(rubric, str) else json.dumps(rubric), encoding="utf-8")
    judgements = folder / "J.jsonl"
    return JudgedByRubric(rubric=folder / "R.yaml", judgements=judgements)


def reply_of(vote, names, request):
    if vote in ("nothing", "prose", "refused"):
        return {
            "nothing": None,
            "prose": Reply(content="It passes."),
            "refused": Reply(refusal="no"),
        }[vote]
    if vote == "list":
        return Reply(content="[1]")
    verdicts = ["pass"] if vote == "more" else vote
    pairs = zip(names, verdicts, strict=True)
    criteria = {name: {"reason": "so", "verdict": verdict} for name, verdict in pairs}
    more = {"score": 1} if vote == "more" else {}
    first_message = request.messages[0]
    text = json.dumps({"check": first_message["content"][-8:], "criteria": criteria, **more})
    return Reply(content=text)


@pytest.mark.parametrize("case", data(__file__, "grades.yaml"), ids=lambda case: case["what"])
def test_votes_become_a_grade(case, tmp_path):
    rubric = {"criteria": case["criteria"], "pass": case.get("pass", 1.0)}
    votes = len(case["votes"])
    judge = {"model": "m", "votes": votes}
    grader = judged(tmp_path, {**rubric, "judge": judge})
    sample = Sample(id="a", input="q", text="t")
    requests = grader.requests(sample)
    vote_count = len(case["votes"])
    assert len(requests) == vote_count
    replies = []
    for vote in case["votes"]:
        replies.append(reply_of(vote, case["criteria"], requests[0]))
    grade = grader.verdict(sample, replies)
    if "code" in case:
        assert grade.outcome.value == "failed"
        assert grade.score is None
        assert grade.fault.code == case["code"]
    else:
        assert grade.score == case["score"]
        assert grade.passed == case["passed"]
        ids = [item.id for item in grade.items]
        criteria = list(case["criteria"])
        assert ids == criteria
        assert "counts" not in case or grade.counts == case["counts"]
        lost_judges = [reason.subject for item in grade.items for reason in item.reasons]
        assert "lost" not in case or lost_judges == case["lost"]


def test_the_kit_knows_the_laws_of_judges(tmp_path):
    """Same sample, same requests; every reply a grade.

    One that asks otherwise each time is found out.
    """
    (tmp_path / "J.jsonl").touch()
    grader = judged(tmp_path)
    testing.check_grader(grader)
    requests = (Request(model=str(n), messages=(), schema={}) for n in range(99))
    methods = {"requests": lambda *_: [next(requests)], "verdict": lambda *_: None}
    with pytest.raises(AssertionError, match="two different requests"):
        testing.check_grader(type("Fickle", (Judged,), methods)(judgements=tmp_path / "J.jsonl"))


def test_transcripts_stay_data(tmp_path):
    """Hidden characters are written out, long ones cut.

    Delimiters and check code follow from what is between them.
    """
    grader = judged(
        tmp_path, "criteria: {a: x}\nmax_chars: 1000\nshow: [calls, text]\njudge: {model: m}"
    )
    call = ToolCall(name="f", arguments={"q": "a\u202eb\U000e0041\u200b"}, result="ok")
    text = "x" * 5000
    sample = Sample(id="a", calls=(call,), text=text)
    (request,) = grader.requests(sample)
    digest = hashlib.sha256(dumps({"v": 1, **to_builtins(request)}).encode()).hexdigest()
    assert request.key == digest
    system, user = (message["content"] for message in request.messages)
    body = user.split(">>>\n")[1].split("\n<<<END")[0]
    nonce = hashlib.sha256(('{"a":"x"}' + body).encode()).hexdigest()[:16]
    assert f"<<<DATA {nonce}>>>" in user
    assert system.endswith(
        f"Check code: {hashlib.sha256(f'check{nonce}'.encode()).hexdigest()[:8]}"
    )
    assert r"a\u{202e}b\u{e0041}\u{200b}" in body
    assert "characters left out ...]" in body
    assert len(body) < 1100


@pytest.mark.slow
def test_the_same_bytes_on_every_engine_and_no_socket(on_record, command, work_folder, monkeypatch):
    """`grade` asks nobody; header.json has the journal's digest."""
    run_bytes = []
    for engine in ENGINES:
        expected_text = f"GRADE --engine {engine}"
        assert command(expected_text)[0] == 0
        contents = []
        for name in ("results.jsonl", "summary.json"):
            out_folder = work_folder / "out"
            contents.append((out_folder / name).read_bytes())
        run_bytes.append(contents)
    assert all(bytes_of_run == run_bytes[0] for bytes_of_run in run_bytes)
    header_path = work_folder / "out/header.json"
    text = header_path.read_text()
    document = json.loads(text)
    (entry,) = document["judgements"]
    assert entry["grader"] == "helpful"
    digest = hashlib.sha256(on_record.read_bytes()).hexdigest()
    assert entry["sha256"] == digest

    def refuse(*_, **__):
        raise AssertionError("a socket is opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert command("GRADE --engine serial")[0] == 0
    s_path = work_folder / "s.yaml"
    s_path.write_text(
        "target: {paths: [data.jsonl]}\ngraders: {h: {kind: judged, rubric: R.yaml, judgements: "
        "J.jsonl}}"
    )
    assert command("run s.yaml -o out --engine serial")[0] == 0
    assert command("judge s.yaml --offline")[0] == 0


def calibrated(grades, options):
    rows = []
    for n, grade in enumerate(grades):
        rows.append((f"t{n}", None, None, grade))
    return figures({"calibrated": options}, rows)["calibrated"]


@pytest.mark.parametrize(
    "case", data(__file__, "calibrated.yaml")["tables"], ids=lambda case: case["what"]
)
def test_figures_are_those_of_their_formulas(case):
    """So many of both pass, judge alone, people alone, neither; the rest has no label.

    Figures are fractions.
    """
    both, judge, people, none = case["table"]
    cells = (
        [(1, "pass")] * both + [(1, "fail")] * judge + [(0, "pass")] * people + [(0, "fail")] * none
    )
    passes = case["passes"]
    cells += [(1, None)] * (passes - both - judge)
    graded = case["graded"]
    cells += [(0, None)] * (graded - case["passes"] - people - none)
    grades = []
    for c, g in cells:
        grades.append(Grade(score=float(c), passed=bool(c), gold=g))
    options = case.get("options", {})
    figures = calibrated(grades, options)
    exact = {
        name: figure and pytest.approx(float(Fraction(figure)), abs=1e-12)
        for name, figure in case["figures"].items()
    }
    figures_by_name = {name: figures[name] for name in exact}
    assert figures_by_name == exact
    intervals = case.get("intervals", {})
    for name, ends in intervals.items():
        assert [figures[f"{name}_interval"][end] for end in ("low", "high")] == pytest.approx(
            ends, abs=5e-6
        ), name
    uncalibrated = figures.get("uncalibrated")
    assert uncalibrated == case.get("uncalibrated")


def test_a_server_that_is_not_reached_costs_nothing():
    """Tokens count for a request without a reply, not for a request that was never sent."""
    connect_error = httpx.ConnectError("refused")
    not_sent = _describe_failure(connect_error)
    assert not_sent == (_NOT_SENT, b"no connection (ConnectError)", None)
    read_timeout = httpx.ReadTimeout("late")
    failure = _describe_failure(read_timeout)
    assert failure[0] == _NO_REPLY
    read_error = httpx.ReadError("cut")
    assert _describe_failure(read_error)[0] == _NO_REPLY
