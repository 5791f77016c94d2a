"""What tests look at when a run or a command is over."""

import json
from pathlib import Path

import pytest
import yaml


def data(test_file, name):
    return yaml.safe_load(Path(test_file).with_name(name).read_text(encoding="utf-8"))


def some_of(cases, every):
    """Have one case of so many (of several arguments: a list or tuple) in each run, the others in
    `make proofs`.
    """
    params = [
        case
        if hasattr(case, "marks")
        else pytest.param(*(case if type(case) in {list, tuple} else [case]))
        for case in cases
    ]
    return [
        param
        if number % every == 0
        else pytest.param(*param.values, id=param.id, marks=pytest.mark.proof)
        for number, param in enumerate(params)
    ]


def at(found, path):
    for name in path.split("."):
        if isinstance(found, dict | list):
            found = found[int(name) if isinstance(found, list) else name]
        else:
            found = getattr(found, name)
    return (
        [list(each) if isinstance(each, tuple) else each for each in found]
        if isinstance(found, tuple)
        else found
    )


def write_records(path, records):
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def read(report, name="summary.json"):
    return json.loads((report.path / name).read_text(encoding="utf-8"))


def ids(report):
    return [row["sample"]["id"] for row in report.rows()]


def files_but_headers(place):
    """Return the content of every file below a directory but what may differ between runs, by
    relative path.
    """
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name != "header.json"
    }


def clean(message, code, *words):
    assert message.code == code, message
    assert "Traceback" not in message.err + message.out
    assert message.err.startswith("error: "), message.err
    for word in words:
        assert word in message.err, message.err
