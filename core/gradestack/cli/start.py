"""The files that ``gradestack new`` begins a plugin with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from importlib.resources import files
from pathlib import Path
from string import Template

from gradestack._version import __version__
from gradestack.errors import ConfigError

PARTS = ("reader", "aggregator", "exporter", "stack")
"""What a package may have beside its grader."""
_PLACES = {
    **dict.fromkeys(("init", "metric", *PARTS), "src/{}/{}.py"),
    "py.typed": "src/{}/{}",
    "pyproject.toml": "{1}",
    "test_package": "tests/{1}.py",
    "records.jsonl": "tests/{1}",
    "ci.yaml": ".github/workflows/{1}",
}
_CONDITION = re.compile(r"  #(with|without) (\w+)$")


def start(name: str, parts: Collection[str]) -> Iterator[Path]:
    """Write a metric in one file (``FILE.py``), or a package with its test in a folder, and yield the files.

    Lines of a template that end in ``#with PART``, or ``#without PART``, are those of packages that have it, or not.

    Raises:
        ConfigError: There is something of that name, the name is none of a distribution, or a part is unknown.
    """
    place, alone = Path(name), name.endswith(".py")
    if unknown := sorted(set(parts) - (set() if alone else {*PARTS})):
        there = "a file has none" if alone else f"there are: {', '.join(PARTS)}"
        raise ConfigError(f"{name}: no part to begin with is called {unknown[0]!r}; {there}")
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", stem := place.name.removesuffix(".py")):
        raise ConfigError(f"{name}: name it in lower case letters, digits and single hyphens, such as gradestack-acme")
    if place.exists():
        raise ConfigError(f"{name}: is there already; choose another name")
    module = stem.replace("-", "_")
    key = module.removeprefix("gradestack_")
    names = {"distribution": stem, "module": module, "key": key, "release": __version__}
    for template, form in _PLACES.items():
        if (template in PARTS and template not in parts) or (alone and template != "metric"):
            continue
        file = place if alone else place / form.format(module, template.replace("init", "__init__"))
        source = files("gradestack_templates") / "new" / f"{template}{'.py' * ('.' not in template)}.txt"
        text = Template(source.read_text(encoding="utf-8")).substitute(names, Class=key.title().replace("_", ""))
        found = [(line, _CONDITION.search(line)) for line in text.splitlines()]
        kept = [_CONDITION.sub("", line) for line, if_ in found if not if_ or (if_[1] == "with") == (if_[2] in parts)]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        yield file
