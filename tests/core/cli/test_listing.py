"""Texts of `plugins list` and `plugins describe`."""

import pytest

from gradestack import Component, ConfigError, PluginError, Registry
from gradestack.cli.listing import component_lines, describe_lines
from gradestack.registry import Plugin


def test_every_component_has_a_line(registry):
    lines = list(component_lines(registry))
    assert "grader      toy                        A grader for tests  [local 0]" in lines
    assert len(lines) == len(registry.components())
    assert [line.split()[:2] for line in lines] == sorted(line.split()[:2] for line in lines)


def test_one_kind_can_be_listed(registry):
    lines = list(component_lines(registry, "stack"))
    assert lines
    assert all(line.startswith("stack ") for line in lines)
    with pytest.raises(ConfigError, match=r"unknown kind 'greader' \(did you mean 'reader'\?\)"):
        list(component_lines(registry, "greader"))


def test_panels_and_commands_are_listed_as_other_kinds():
    offered = [
        Component(kind=kind, name="curve", target="no_such_module:f", summary="How it falls")
        for kind in ("panel", "command")
    ]
    found = Registry([Plugin(name="p", distribution="d", version="2", components=tuple(offered))])
    assert list(component_lines(found)) == [
        f"command     {'curve':<26} How it falls  [d 2]",
        f"panel       {'curve':<26} How it falls  [d 2]",
    ]
    assert list(component_lines(found, "grader")) == []


def test_trouble_is_listed_too(registry):
    found = Registry([*registry.plugins, Plugin(name="sick", distribution="d", version="2", error="boom")])
    found.conflicts.append("a and b")
    assert list(component_lines(found))[-2:] == [f"broken      {'sick':<26} boom  [d 2]", "conflict    a and b"]


def test_a_component_is_described(registry, toys):
    lines = list(describe_lines(registry, "toy"))
    assert lines[:3] == [
        "grader toy: A grader for tests",
        "  from local 0, plugin toys, gradestack_toys:Toy",
        "  version 7",
    ]
    for line in [
        "  needs: recorded",
        "  requires: none",
        "  aggregators: toy_count",
        f"  {toys.Toy.__doc__}",
        "    factor: number (default 1.0)",
        "    limit: integer | null (default null)",
        '    mode: plain | loud (default "plain")',
        "    weights: object (default {})",
        "    names: array (default [])",
        "    place: string | null (default null)",
        "    anything: any (default null)",
        '    profile: documented | upstream (default "documented")',
    ]:
        assert line in lines


def test_all_components_of_a_name_are_described(registry):
    lines = list(describe_lines(registry, "numbers"))
    assert [line for line in lines if line.startswith(("reader", "stack"))] == [
        "reader numbers: A reader for tests",
        "stack numbers: A stack for tests",
    ]
    assert "  Return the stack of the numbers format." in lines


def test_every_built_in_component_can_be_described(registry):
    for component, _ in registry.components():
        assert list(describe_lines(registry, component.name))


def test_an_unknown_name_and_a_broken_component(make_registry_, toys):
    found = make_registry_(toys.component("grader", "sick", "Missing"))
    with pytest.raises(ConfigError, match=r"no component is called 'toi' \(did you mean 'toy'\?\)"):
        list(describe_lines(found, "toi"))
    with pytest.raises(PluginError, match="AttributeError"):
        list(describe_lines(found, "sick"))
