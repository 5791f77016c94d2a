"""Tool schemas that are made to take all time and memory.

Bounded, and the calls they are for are unchecked.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.core.outcomes import some_of


def deep(levels):
    value = 1
    for _ in range(levels):
        value = {"c": value}
    return value


def doubling(levels, combined):
    """Return a schema each of whose levels refers to the one below more than once."""
    steps = {f"l{n}": combined({"$ref": f"#/$defs/l{n - 1}"}) for n in range(1, levels + 1)}
    return {
        "$defs": {"l0": {"type": "string"}, **steps},
        "properties": {"a": {"$ref": f"#/$defs/l{levels}"}},
    }


def of_a(schema):
    return {"properties": {"a": schema}}


def either(step):
    """Return a schema that refers to itself twice."""
    return [{"properties": {"c": step}, "required": [key]} for key in "xy"]


def each_to_each(count, combined):
    """Return schemas all of which refer to all."""
    names = [f"#/$defs/d{n}" for n in range(count)]
    defs = {}
    for n in range(count):
        defs[f"d{n}"] = {combined: [{"$ref": name} for name in names]}
    return {
        "$defs": defs,
        "$ref": names[0],
    }


def chain(length):
    """Return a schema whose reference leads on and on."""
    steps = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(length)}
    defs = {**steps, f"d{length}": {"type": "string"}}
    return {"$defs": defs, "$ref": "#/$defs/d0"}


def twice(step):
    return {"anyOf": [step, step]}


def three_times(step):
    """Return a schema that one keyword has the library copy for all its branches."""
    return {"if": step, "then": step, "else": step, "unevaluatedProperties": False}


UNCHECKED = {
    "anyOf of two references": (doubling(18, twice), {"a": 1}),
    "if, then and else": (doubling(18, three_times), {"a": 1}),
    "itself twice at each level": ({"anyOf": either({"$ref": "#"})}, deep(30)),
    "a dynamic reference": (
        {"$dynamicAnchor": "n", "anyOf": either({"$dynamicRef": "#n"})},
        deep(30),
    ),
    "references from each to each": (each_to_each(9, "allOf"), {"a": 1}),
    "a chain of references": (chain(4000), {"a": 1}),
    "a value for each error": (of_a({"allOf": [{"maxItems": 1}] * 2000}), {"a": [1] * 20_000}),
    "an enum for each item": (
        of_a({"items": {"enum": [[0] * 500 + [n] for n in range(400)]}}),
        {"a": [0] * 3000},
    ),
    "contains for each number": (
        of_a({"allOf": [{"contains": {"const": n}} for n in range(1000)]}),
        {"a": [-1] * 20_000},
    ),
    "a pattern with many states": (
        of_a({"pattern": "^[ab]*a[ab]{10000}c$"}),
        {"a": "abbaababb" * 25_000},
    ),
    "a schema of many megabytes": (of_a({"enum": list(range(500_000))}), {"a": -1}),
}
CHECKED = {
    "a loop": ({"$ref": "#"}, {"a": 1}, {}),
    "a loop of two": (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {},
        {},
    ),
    "a tree": (
        {"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}, "v": {"type": "integer"}}},
        {"l": {"v": 1}, "r": {"l": {"v": "x"}}},
        {"type": 1},
    ),
    "a deep tree": ({"properties": {"c": {"$ref": "#"}}, "required": ["c"]}, {"c": deep(400)}, {}),
    "backtracking": (of_a({"pattern": "^(a+)+$"}), {"a": "a" * 100_000 + "!"}, {"pattern": 1}),
    "objects that differ": (
        of_a({"uniqueItems": True}),
        {"a": [{"k": n} for n in range(50_000)]},
        {},
    ),
    "a large enum": (of_a({"enum": list(range(50_000))}), {"a": -1}, {"enum": 1}),
    "a large minimum length": (of_a({"minLength": 10**30}), {"a": "x"}, {"minLength": 1}),
    "numbers of many digits": (of_a({"multipleOf": 10**4000}), {"a": 10**4200}, {}),
}


def logged(schema, *arguments):
    functions = []
    for argument in arguments:
        functions.append({"name": "book", "arguments": json.dumps(argument)})
    calls = []
    for n, function in enumerate(functions):
        calls.append({"id": f"c{n}", "type": "function", "function": function})
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
    ]
    tools = [{"type": "function", "function": {"name": "book", "parameters": schema}}]
    text = json.dumps({"id": "a", "messages": messages, "tools": tools})
    return text + "\n"


SUITE = """
name: hostile
target: {paths: [log.jsonl], reader: openai}
graders: {tool_schema: {kind: tool_schema}}
reports: []
"""


def grade_of(bounded, folder, schema, value):
    """Grade a call through the command line and return what tool_schema says of it."""
    log_path = folder / "log.jsonl"
    log_path.write_text(logged(schema, value))
    suite_path = folder / "suite.yaml"
    suite_path.write_text(SUITE)
    done = bounded("run", "suite.yaml", "--quiet", "--output", "out", "--allow-all-failed")
    assert done.returncode in {0, 3}, done.stderr
    results_path = folder / "out/results.jsonl"
    return json.loads(results_path.read_text())["grade"]


@pytest.mark.parametrize("name", some_of(UNCHECKED, 5))
def test_a_schema_that_takes_too_much_is_not_checked_by(bounded, tmp_path, name):
    """The run ends within 20 s and 500 MB, and the call is counted as unchecked with the reason
    schema_too_large.
    """
    grade = grade_of(bounded, tmp_path, *UNCHECKED[name])
    calls = grade["counts"]["calls"]
    assert calls == 1
    unchecked = grade["counts"]["unchecked"]
    assert unchecked == 1
    codes = [reason["code"] for reason in grade["reasons"]]
    assert codes == [
        "schema_unusable",
        "schema_too_large",
    ]


@pytest.mark.parametrize("name", some_of(CHECKED, 3))
def test_a_schema_that_only_looks_large_is_checked_by(bounded, tmp_path, name):
    """References that lead back, large numbers and long texts alone leave no call unchecked."""
    schema, value, expected = CHECKED[name]
    counts = grade_of(bounded, tmp_path, schema, value)["counts"]
    assert counts["unchecked"] == 0
    assert {key.partition(":")[2]: count for key, count in counts.items() if ":" in key} == expected


@pytest.mark.faults
def test_many_schemas_with_large_patterns_take_no_more_memory_than_some(bounded, tmp_path):
    lines = []
    for n in range(500):
        schema = {"pattern": f"^[a-z{n}]{{20000}}$"}
        lines.append(logged(of_a(schema), {"a": "x"}))
    log_path = tmp_path / "log.jsonl"
    log_path.write_text("".join(lines).replace('"id": "a"', '"id": null'))
    suite_path = tmp_path / "suite.yaml"
    suite_path.write_text(SUITE)
    done = bounded("run", "suite.yaml", "--quiet", "--output", "out")
    assert done.returncode == 0, done.stderr


def test_mcp_bench_skips_a_run_whose_schema_takes_too_much(bounded, tmp_path):
    """Its rates are over all calls, so none of them is known."""
    log_path = tmp_path / "log.jsonl"
    log_path.write_text(logged(*UNCHECKED["anyOf of two references"]))
    suite_path = tmp_path / "suite.yaml"
    suite = SUITE.replace("}}", ", preset: mcp_bench/tool_accuracy}}")
    suite_path.write_text(suite)
    done = bounded("run", "suite.yaml", "--quiet", "--output", "out", "--allow-all-failed")
    assert done.returncode == 0, done.stderr
    results_path = tmp_path / "out/results.jsonl"
    text = results_path.read_text()
    row = json.loads(text)
    assert row["state"] == "skipped"
    reasons = row["grade"]["reasons"]
    first_reason = reasons[0]
    code = first_reason["code"]
    assert code == "schema_too_large"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_ctrl_c_is_answered_amid_the_largest_checks(tmp_path):
    """Calls just within the limits, for minutes.

    At the latest the second Ctrl-C ends the run with exit 130.
    """
    all_of = [{"type": "string"}] * 100
    schema = of_a({"items": {"allOf": all_of}})
    log_path = tmp_path / "log.jsonl"
    log_path.write_text(logged(schema, *[{"a": [1] * 500}] * 300))
    suite_path = tmp_path / "suite.yaml"
    suite_path.write_text(SUITE)
    command = [sys.executable, "-m", "gradestack.cli", "run", "suite.yaml", "--output", "out"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True
    ) as run:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                run.wait(2)
            for _ in range(2):
                if run.poll() is None:
                    os.kill(run.pid, signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    run.wait(1)
            exit_code = run.wait(300)
            assert exit_code == 130
        finally:
            run.kill()
