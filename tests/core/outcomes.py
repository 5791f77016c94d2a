"""Helpers that read and check the outcome of a run or a command."""

import json
from pathlib import Path

import pytest
import yaml


def data(test_file, name):
    test_file_path = Path(test_file)
    path = test_file_path.with_name(name)
    text = path.read_text(encoding="utf-8")
    return yaml.safe_load(text)


def some_of(cases, every):
    """Have one case of so many (of several arguments: a list or tuple) in each run, the others in
    `make proofs`.
    """
    params = []
    for case in cases:
        params.append(
            case
            if hasattr(case, "marks")
            else pytest.param(*(case if type(case) in {list, tuple} else [case]))
        )
    parameters = []
    for number, param in enumerate(params):
        parameters.append(
            param
            if number % every == 0
            else pytest.param(*param.values, id=param.id, marks=pytest.mark.proof)
        )
    return parameters


def at(value, path):
    """Look up the value at a dotted path of keys, positions and attributes; tuples become lists."""
    for name in path.split("."):
        if isinstance(value, dict | list):
            value = value[int(name) if isinstance(value, list) else name]
        else:
            value = getattr(value, name)
    if isinstance(value, tuple):
        return [list(item) if isinstance(item, tuple) else item for item in value]
    return value


def write_records(path, records):
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def read_json(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text)


def read(report, name="summary.json"):
    text = (report.path / name).read_text(encoding="utf-8")
    return json.loads(text)


def ids(report):
    rows = report.rows()
    return [row["sample"]["id"] for row in rows]


def files_but_headers(folder):
    """Return the content of every file below a directory but what may differ between runs, by
    relative path.
    """
    contents_by_path = {}
    paths = folder.rglob("*")
    for path in sorted(paths):
        if path.is_file() and path.name != "header.json":
            contents_by_path[path.relative_to(folder).as_posix()] = path.read_bytes()
    return contents_by_path


def clean(result, code, *words):
    assert result.code == code, result
    expected = result.err + result.out
    assert "Traceback" not in expected
    assert result.err.startswith("error: "), result.err
    for word in words:
        assert word in result.err, result.err
