"""What does a folder of sessions take: time, and memory against the number of sessions?

    python benchmarks/sessions.py [--records N] [--rounds N]

The whole command ``gradestack grade FOLDER``, in a process of its own, on a tenth of the sessions
and on all of them: files of Claude Code and of Codex, one for each session. With 20,000 sessions
the folders hold 1.1 GB and 0.5 GB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jobs
from frame import Options, Table, cell, child, failures, main, ratio, reached, take_turns

RECORDS = 2_000
TURNS = 10
"""Calls in a session."""
RESULT = "tests/test_desk.py::test_refund failed where 12 was expected and 13 was found\n" * 24
Line = dict[str, Any]


def claude_code(number: int) -> Iterator[Line]:
    """Yield the lines of a session of Claude Code."""
    session = f"00000000-0000-4000-8000-{number:012d}"
    about = {"sessionId": session, "cwd": f"/desk/{number % 7}", "version": "2.1.0"}
    parent: str | None = None
    for place, message in enumerate(_messages(number)):
        uuid = f"{session}-{place}"
        line = {"type": message["role"], "uuid": uuid, "parentUuid": parent, "message": message}
        yield {**about, **line, "timestamp": f"2026-03-{number % 28 + 1:02d}T10:00:00.000Z"}
        parent = uuid


def _messages(number: int) -> Iterator[Line]:
    """Yield a question, answers with a call each, and their results."""
    yield {"role": "user", "content": f"Mend the refunds of desk {number}."}
    for turn in range(TURNS):
        answer = {"role": "assistant", "id": f"msg_{number}_{turn}", "model": "model-a"}
        usage = {"input_tokens": 10, "output_tokens": 25, "cache_read_input_tokens": 900}
        call: Line = {"type": "tool_use", "id": f"call_{number}_{turn}", "name": "Bash"}
        call["input"] = {"command": f"pytest -q --desk {turn}"}
        yield {**answer, "content": [call], "usage": usage}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": RESULT}
        yield {"role": "user", "content": [{**result, "is_error": turn % 9 == 0}]}
    done = {"type": "text", "text": "All refunds are right."}
    yield {"role": "assistant", "id": f"msg_{number}", "model": "model-a", "content": [done]}


def codex(number: int) -> Iterator[Line]:
    """Yield the lines of a session of Codex."""
    session = f"10000000-0000-4000-8000-{number:012d}"
    yield _codex_line("session_meta", id=session, cwd="/desk", cli_version="0.50.0")
    question = {"type": "input_text", "text": f"Mend the refunds of desk {number}."}
    yield _codex_line("response_item", type="message", role="user", content=[question])
    for turn in range(TURNS):
        call = f"call_{number}_{turn}"
        command = json.dumps({"command": ["bash", "-lc", f"pytest -q --desk {turn}"]})
        yield _codex_line(
            "response_item", type="function_call", name="shell", arguments=command, call_id=call
        )
        code = {"exit_code": int(turn % 9 == 0)}
        output = json.dumps({"output": RESULT, "metadata": code})
        yield _codex_line("response_item", type="function_call_output", call_id=call, output=output)
    done = {"type": "output_text", "text": "All refunds are right."}
    yield _codex_line("response_item", type="message", role="assistant", content=[done])


def _codex_line(line_type: str, **payload: Any) -> Line:
    return {"timestamp": "2026-03-01T10:00:00.000Z", "type": line_type, "payload": payload}


AGENTS: dict[str, Callable[[int], Iterator[Line]]] = {"claude_code": claude_code, "codex": codex}


def write(folder: Path, agent: str, number: int) -> Path:
    """Write sessions, a file each, unless they are there."""
    if not folder.exists():
        folder.mkdir()
        for session in range(number):
            lines = "".join(json.dumps(line) + "\n" for line in AGENTS[agent](session))
            (folder / f"rollout-{session:06d}.jsonl").write_text(lines, encoding="utf-8")
    return folder


def grade(folder: str) -> int:
    """Grade a folder with the command line."""
    with tempfile.TemporaryDirectory() as output:
        program = Path(sys.executable).parent / "gradestack"
        command = [str(program), "grade", folder, "-o", str(Path(output) / "run")]
        subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own
    return 1


def measure(options: Options) -> Table:
    """Return the table."""
    few = max(1, options.records // 10)
    items = {}
    for agent in AGENTS:
        for number in (few, options.records):
            folder = write(options.place / f"{agent}-{number}", agent, number)
            items[f"{agent}, {number}"] = partial(child, {"folder": folder}, script="sessions.py")
    found = take_turns(items, options.rounds)
    rows, reach = [], []
    for agent in AGENTS:
        small, large = (found[f"{agent}, {number}"] for number in (few, options.records))
        growth = ratio(large, small, "children")
        size = sum(
            path.stat().st_size for path in (options.place / f"{agent}-{options.records}").iterdir()
        )
        peaks = [cell(runs.median("children"), ".0f") for runs in (small, large)]
        seconds = [cell(large.median("wall"), ".1f"), cell(large.median("cpu"), ".1f")]
        rows.append([agent, cell(size / 1e6, ".0f"), *seconds, *peaks, cell(growth)])
        what = f"a folder of {options.records:,} sessions of {agent}"
        wall = large.median("wall")
        reach.append(reached(f"{what}, seconds", 60, 30, wall, large, lower=True))
        reach.append(
            reached(
                f"{what}, peak memory against {few:,}", 1.3, 1.1, growth, small, large, lower=True
            )
        )
    return Table(
        title="Folders of sessions",
        columns=["agent", "MB", "wall s", "CPU s", f"peak MB at {few}", "peak MB of all", "ratio"],
        rows=rows,
        notes=[
            f"{options.rounds} rounds in turns; the median. The command as a whole, with its pages.",
            *failures(found),
        ],
        reach=reach,
    )


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(jobs.timed(partial(grade, json.loads(sys.argv[1])["folder"]))))
        sys.exit(0)
    sys.exit(main(measure, __doc__, records=RECORDS, rounds=1))
