"""Presets of `tool_calls` beside the packages whose rules they are, on generated cases.

    python benchmarks/presets.py --cases 10000 --python PEERS/bin/python --promptfoo PEERS/promptfoo

`make peers` does so with agentevals, bfcl-eval and promptfoo (which asks for npm).

PEERS is a virtual environment with the packages (any of google-adk, azure-ai-evaluation,
agentevals, ragas, deepeval, mlflow, pydantic-evals, bfcl-eval), PEERS/promptfoo the unpacked
package of that name, whose rules Node runs; either may be left out. Prints how many answers agree,
by preset, and the first that do not; exit code 1 if any does not, or if no package was there.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gradestack import BadRecord, Outcome, Source
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.tool_calls.grader import ToolCalls

SIDES = Path(__file__).parent / "peer_side"
NAMES = ("search", "book", "pay", " search", "Search")
ODD_NAMES = (
    *(
        "*",
        "s?arch",
        "SE*",
        "boo*k",
        "",
        " ",
        "a.b",
        "p\u00e2y",
        "P\u00c2Y",
        "\u00df",
        "\u1e9e",
        "\u0130",
        "i",
        "key",
    ),
    *(
        "\U0001f600",
        "?",
        "??",
        "\ufeffpay",
        "pay\x1c",
        "pay\n",
        "shell",
        "\u017fearch",
        "\u212aey",
        "(5)",
    ),
)
ODD_KEYS = ("a/b", "a~b", "q.x", "", "\u00e9", "command", "name", "arguments", "0")
TEXTS = (
    *(
        "not json",
        "[1]",
        "null",
        "5",
        '"x"',
        "{}",
        '{"q": 1}',
        ' {"q": 1} ',
        '{"q": 1, "q": 2}',
        "",
        " ",
        "[",
        "true",
    ),
    *('{"q": 1.0}', "{'q': 1}", '{"q": 1e400}', "{}x"),
)
"""Arguments as text: what a run recorded that could not be decoded, or could."""
VALUES: tuple[Any, ...] = (
    *(
        0,
        1,
        2,
        1.0,
        1.5,
        -0.0,
        True,
        False,
        None,
        "1",
        "1.0",
        "true",
        "True",
        "",
        "a",
        "A",
        "é",
        9007199254740993,
    ),
    *(
        [],
        {},
        [1, 2],
        [2, 1],
        ["1", "2"],
        {"x": 1},
        {"x": True},
        {"x": 1, "y": "b"},
        [{"x": 1}],
        {"x": {"y": [1, {}]}},
    ),
    *(
        9007199254740992.0,
        1e22,
        10**22,
        1e-7,
        0.1,
        0.30000000000000004,
        0.3,
        2**70,
        -1,
        "None",
        "null",
        "[1, 2]",
        "{}",
    ),
    *(
        [True],
        [1.0],
        [[]],
        [None],
        {"y": "b", "x": 1},
        {"x": None},
        {"": 1},
        " a",
        "\u0041\u0301",
        "\u00c1",
        [1, [2, [3]]],
    ),
)
TYPED: dict[str, tuple[Any, ...]] = {
    "string": ("Oslo", "New York, NY", "new york ny", "", "a-b", "ab"),
    "integer": (0, 1, 2, True, 1.0, "1"),
    "float": (1, 1.0, 2.5, "2.5", True),
    "boolean": (True, False, 1, "true"),
    "array": ([], ["a"], ["A "], ["a", "b"], ["b", "a"], [1], "a", None),
    "dict": ({}, {"k": 1}, {"k": "V v"}, {"k": "vv"}, {"k": 1, "z": 2}, {"z": 1}, [], "k"),
}


def arguments(pick: random.Random) -> dict[str, Any]:
    """Return arguments of any kind."""
    keys = ("q", "n", "opt") if pick.random() < 0.9 else ODD_KEYS
    return {key: pick.choice(VALUES) for key in pick.sample(keys, pick.choice((0, 1, 1, 2, 3)))}


def name_of(pick: random.Random) -> str:
    """Return the name of an expected call."""
    return pick.choice(NAMES[:3] if pick.random() < 0.93 else ODD_NAMES)


def changed(call: dict[str, Any], pick: random.Random) -> dict[str, Any]:
    """Return a call like another, or with one thing changed."""
    given = dict(call["arguments"])
    way = pick.randrange(8)
    if way == 0 and given:
        del given[pick.choice(list(given))]
    elif way == 1:
        given["more"] = pick.choice(VALUES)
    elif way == 2 and given:
        given[pick.choice(list(given))] = pick.choice(VALUES)
    elif way == 4 and given and pick.random() < 0.3:
        given = dict(reversed(given.items()))
    name = pick.choice((*NAMES, *ODD_NAMES)) if way == 3 else call["name"]
    if pick.random() < 0.02:
        return {"name": name, "arguments": pick.choice((*TEXTS, None))}
    return {"name": name, "arguments": given}


def case(number: int, pick: random.Random) -> dict[str, Any]:
    """Return a case: expected calls, and made ones that are mostly theirs."""
    expected: list[dict[str, Any]] = [
        {"name": name_of(pick), "arguments": arguments(pick)}
        for _ in range(pick.choice((0, 1, 1, 2, 3, 4)))
    ]
    if expected and pick.random() < 0.3:
        expected.append(pick.choice(expected))
    made = [changed(call, pick) for call in expected if pick.random() < 0.9]
    if pick.random() < 0.3:
        pick.shuffle(made)
    if pick.random() < 0.2:
        made.append({"name": pick.choice(NAMES), "arguments": arguments(pick)})
    return {"id": f"c{number}", "expected": expected, "predicted": made}


def typed_case(number: int, pick: random.Random) -> dict[str, Any]:
    """Return a case with tools, for BFCL."""
    tools: list[dict[str, Any]] = []
    for name in pick.sample(("get_weather", "math.add", "send"), pick.choice((1, 2, 3))):
        words = {
            key: pick.choice(tuple(TYPED)) for key in pick.sample("abc", pick.choice((1, 2, 3)))
        }
        properties = {
            key: {"type": word, "items": {"type": pick.choice(("string", "integer", "dict"))}}
            for key, word in words.items()
        }
        required = [key for key in words if pick.random() < 0.5]
        tools.append(
            {
                "name": name,
                "parameters": {"type": "dict", "properties": properties, "required": required},
            }
        )
    expected = []
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        tool = pick.choice(tools)
        chosen = tool["parameters"]["properties"]
        given = {
            key: pick.choice(TYPED[about["type"]][:3])
            for key, about in chosen.items()
            if pick.random() < 0.9
        }
        expected.append({"name": tool["name"], "arguments": given})
    made = []
    for call in expected:
        kinds = next(tool for tool in tools if tool["name"] == call["name"])["parameters"][
            "properties"
        ]
        given = dict(call["arguments"])
        if given and pick.random() < 0.5:
            key = pick.choice(list(given))
            given[key] = pick.choice(TYPED[kinds[key]["type"]])
        if given and pick.random() < 0.15:
            del given[pick.choice(list(given))]
        made.append({"name": call["name"], "arguments": given})
    pick.shuffle(made)
    if pick.random() < 0.1:
        made = made[1:]
    return {"id": f"b{number}", "expected": expected, "predicted": made, "tools": tools}


def said(grader: ToolCalls, record: dict[str, Any]) -> Any:
    """Return what a preset says of a case, as the other side writes it."""
    sample = JsonLines().sample(record, Source(file="cases"))
    if isinstance(sample, BadRecord):
        raise SystemExit(f"{record}: {sample.reason}")
    grade = grader.grade(sample)
    if grade.outcome is Outcome.FAILED:
        return "raises"
    if grade.outcome is Outcome.SKIPPED:
        return None
    return [grade.score, grade.metadata.get("error_type")] if "tools" in record else grade.score


def agree(own: Any, theirs: Any) -> bool:
    """Return whether two answers are the same, scores within 1e-9."""
    if isinstance(theirs, str) or isinstance(own, str):
        return isinstance(own, str) and isinstance(theirs, str)
    if isinstance(theirs, list):
        return isinstance(own, list) and own == theirs
    return bool(abs(own - theirs) <= 1e-9)


def main() -> int:
    """Compare; return 1 where an answer differs, or there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--python", help="interpreter of the environment with the packages")
    parser.add_argument(
        "--promptfoo", type=Path, help="directory of the unpacked package promptfoo"
    )
    options = parser.parse_args()
    pick = random.Random(options.seed)
    cases = [make(number, pick) for make in (case, typed_case) for number in range(options.cases)]
    with tempfile.TemporaryDirectory() as folder:
        given, answers = Path(folder, "cases.jsonl"), Path(folder, "answers.jsonl")
        given.write_text("".join(json.dumps(each) + "\n" for each in cases), encoding="utf-8")
        sides = []
        if options.python:
            sides.append([options.python, str(SIDES / "side_presets.py"), str(given), str(answers)])
        if options.promptfoo:
            sides.append(
                [
                    "node",
                    str(SIDES / "side_promptfoo.mjs"),
                    str(options.promptfoo),
                    str(given),
                    str(answers),
                ]
            )
        found = []
        for side in sides:
            subprocess.run(side, check=True)  # noqa: S603 - ours
            found += [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    differ = not found
    for answer in found:
        compared, wrong = 0, []
        grader = ToolCalls(preset=answer["preset"])
        for record in cases:
            theirs = answer["said"][record["id"]]
            own = None if theirs is None else said(grader, record)
            if own is None:
                continue
            compared += 1
            if not agree(own, theirs):
                wrong.append((record, own, theirs))
        print(
            f"{answer['preset']:48} {answer['version']:16} {compared - len(wrong):6} of "
            f"{compared:6} agree"
        )
        for record, own, theirs in wrong[:3]:
            print(f"    {json.dumps(record)}: ours {own}, theirs {theirs}")
        differ = differ or bool(wrong)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
