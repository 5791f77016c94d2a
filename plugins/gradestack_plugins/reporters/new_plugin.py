"""Beginning a plugin: a metric in one file, or a package with its test, from templates."""

from __future__ import annotations

import keyword
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any

from gradestack import ConfigError, Registry, __version__, compile_later

PARTS = ("reader", "aggregator", "exporter", "stack")  # what a package may have beside its grader
_PLACES = {
    **dict.fromkeys(("init", "metric", *PARTS), "src/{}/{}.py"),
    "py.typed": "src/{}/{}",
    **dict.fromkeys(("pyproject.toml", "README.md"), "{1}"),
    "test_package": "tests/{1}.py",
    "records.jsonl": "tests/{1}",
    "ci.yaml": ".github/workflows/{1}",
}
"""Template -> path of its file."""
_NAME = compile_later(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_CONDITION = compile_later(r"  #(with|without) (\w+)$")
_CHOOSE = "choose another name"


def start(name: str, parts: Collection[Any], registry: Registry) -> Iterator[Path]:
    """Write a metric as one file (``FILE.py``) or a package with a test; yield the files.

    Lines of a template that end in ``#with PART``, or ``#without PART``, are those of packages that
    have it, or not.

    Raises:
        ConfigError: Something has that name, it is none of a distribution, or a part is unknown.
    """
    path = Path(os.path.normpath(name))
    is_file = name.endswith(".py")
    stem = path.name.removesuffix(".py")
    module = stem.replace("-", "_")
    key = module.removeprefix("gradestack_")
    _check_parts(name, parts, () if is_file else PARTS)
    _check_name(name, path, stem)
    _check_key(name, key, ("grader", *parts), registry)
    major, minor = map(int, __version__.split(".")[:2])
    takes = f">={major}.{minor},<{major}.{minor + 1}"
    words = {
        "distribution": stem,
        "module": module,
        "key": key,
        "takes": takes,
        "Class": key.title().replace("_", ""),
    }
    if is_file:
        yield _write(path, "metric", words, parts)
        return
    for template, form in _PLACES.items():
        if template not in PARTS or template in parts:
            relative = form.format(module, template.replace("init", "__init__"))
            file = path / relative
            yield _write(file, template, words, parts)


def _check_parts(name: str, parts: Collection[str], known: Collection[str]) -> None:
    for part in sorted(set(parts) - set(known)):
        choice = "a file has none"
        if known:
            choice = f"there are: {', '.join(known)}"
        raise ConfigError(f"{name}: no part to begin with is called {part!r}; {choice}")


def _check_name(name: str, path: Path, stem: str) -> None:
    """Refuse a plugin's name that is malformed, or that a folder or Python has already."""
    if not _NAME.fullmatch(stem):
        rule = "name it in lower case letters, digits and single hyphens"
        raise ConfigError(f"{name}: {rule}, such as gradestack-acme")
    if path.exists():
        raise ConfigError(f"{name}: is there already; {_CHOOSE}")
    module = stem.replace("-", "_")
    iskeyword = keyword.iskeyword(module)
    if iskeyword or find_spec(module):
        raise ConfigError(f"{name}: Python has a {module!r} already; {_CHOOSE}")


def _check_key(name: str, key: str, kinds: Iterable[Any], registry: Registry) -> None:
    """Check that no component of these kinds has the key."""
    offers = [registry.offers(kind, key) for kind in kinds]
    for component, plugin, *_ in chain(*offers):
        owner = f"{plugin.release} has a {component.kind} {key!r} already"
        raise ConfigError(f"{name}: {owner}; {_CHOOSE}")


def _write(file: Path, template: str, words: Mapping[str, str], parts: Collection[str]) -> Path:
    """Write a file of the new plugin from its template, and return its path.

    ``words`` are substituted in it; ``parts`` are the conditions whose lines are written.
    """
    suffix = "" if "." in template else ".py"
    new_folder = files("gradestack_templates") / "new"
    source = new_folder / f"{template}{suffix}.txt"
    text = Template(source.read_text(encoding="utf-8")).substitute(words)
    lines = [_CONDITION.sub("", line) for line in text.splitlines() if _is_part(line, parts)]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror or error}") from error
    return file


def _is_part(line: str, parts: Collection[str]) -> bool:
    """Return whether a line of a template is one of a package with these parts."""
    condition = _CONDITION.search(line)
    if condition is None:
        return True
    return (condition[1] == "with") == (condition[2] in parts)
