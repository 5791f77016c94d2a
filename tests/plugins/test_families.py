"""Plugin packages: no circle of files, and what every reader has."""

import ast
import inspect
from graphlib import TopologicalSorter
from pathlib import Path

import attrs
import pytest

import gradestack
from gradestack.hooks import FUNCTIONS, KINDS

PLUGINS = Path(__file__).parents[2] / "plugins/gradestack_plugins"
PACKAGES = sorted(path.parent.name for path in PLUGINS.glob("*/__init__.py"))


def modules_of(package):
    """Return the files of a package by their dotted names below it; "" is the package itself."""
    modules = {}
    paths = (PLUGINS / package).rglob("*.py")
    for path in sorted(paths):
        relative_path = path.relative_to(PLUGINS / package)
        parts = relative_path.with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imported(path, package):
    names = set()
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    own_prefix = f"gradestack_plugins.{package}."
    modules = modules_of(package)
    below = set()
    for name in names:
        if name.startswith(own_prefix):
            below.add(name.removeprefix(own_prefix))
    return {name if name in modules else name.rpartition(".")[0] for name in below} - {""}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_modules_of_a_package_import_each_other(package):
    edges = {}
    modules = modules_of(package)
    for name, path in modules.items():
        if name:
            edges[name] = imported(path, package) - {name}
    TopologicalSorter(edges).prepare()  # raises CycleError, naming them


def test_every_reader_can_be_told_where_ids_stand():
    """The option `ids`, which `--id` and `--map id=` set, is one of each reader's."""
    registry = gradestack.discover(limit="")
    names = registry.names("reader")
    readers = {name: registry.load("reader", name) for name in names}
    assert readers
    assert [
        name for name, reader in readers.items() if "ids" not in attrs.fields_dict(reader)
    ] == []


def overridden_methods(component):
    """List the methods of a class that a contract of gradestack declares, with that one's."""
    pairs = []
    for name, own in vars(component).items():
        for base in component.__mro__[1:]:
            declared = vars(base).get(name)
            is_contract = base.__module__.startswith("gradestack.")
            is_public = not name.startswith("_") and inspect.isfunction(own)
            if is_contract and is_public and inspect.isfunction(declared):
                pairs.append((own, declared))
    return pairs


@pytest.mark.parametrize("kind", sorted({*KINDS} - FUNCTIONS))
def test_methods_call_their_parameters_as_the_contract_does(kind):
    """Callers may name them, and type checkers compare them."""
    different = []
    sound = gradestack.discover(limit="").sound(kind)
    for name, component in sound.items():
        for own, declared in overridden_methods(component):
            parameters = inspect.signature(own).parameters
            if [*parameters] != [*inspect.signature(declared).parameters]:
                different.append(f"{name}.{own.__name__}")
    assert different == []
