"""Discovery: what is installed, what is broken, and who is to blame."""

import shutil

import pytest

from gradestack import (
    Component,
    ConfigError,
    PluginError,
    Registry,
    __version__,
    discover,
    suggest,
)
from gradestack.registry import Plugin, unmet
from tests.core.outcomes import data, some_of

DATA = data(__file__, "registry.yaml")

HOOK = "from gradestack import Component, hookimpl\n"


def module(**components):
    """Return the text of a plugin module; names map to targets."""
    lines = []
    for name, target in components.items():
        lines.append(f"Component(kind='grader', name={name!r}, target={target!r}, summary='s')")
    return f"{HOOK}\n@hookimpl\ndef gradestack_components():\n    return [{', '.join(lines)}]\n"


def plugins_of(spawn, *sites, **variables):
    done = spawn("plugins", "list", paths=sites, **variables)
    assert "Traceback" not in done.err
    assert done.code == 0, done.err
    return done.out


def test_every_built_in_plugin_is_sound():
    discovered = discover(limit="")
    assert [f"{plugin}: {plugin.error}" for plugin in discovered.broken] == []
    assert discovered.conflicts == []
    names = discovered.names("engine")
    assert {"serial"} <= set(names)
    assert "jsonl" in discovered.names("reader")
    distributions = {plugin.distribution for plugin in discovered.plugins}
    assert distributions == {"gradestack"}


def test_an_unknown_name_is_a_config_error_with_advice(registry):
    with pytest.raises(ConfigError, match=r"unknown grader 'toi' \(did you mean 'toy'\?\)"):
        registry.find("grader", "toi")
    with pytest.raises(ConfigError, match=r"unknown engine 'zzzzzz'; there are: .*serial"):
        registry.find("engine", "zzzzzz")


def broken(text="boom"):
    return Plugin(name="sick", distribution="sick-dist", version="2", error=text)


def test_an_unknown_name_that_a_broken_plugin_may_have_is_its_fault(registry):
    """With a broken plugin about, the message shows what it said.

    A mere typo of a known name stays a typo.
    """
    joined_registry = Registry([*registry.plugins, broken()])
    with pytest.raises(PluginError) as caught:
        joined_registry.find("grader", "whatever")
    assert "sick (sick-dist 2): boom" in str(caught.value)
    with pytest.raises(ConfigError, match="did you mean 'tau_partial'"):
        joined_registry.find("grader", "tau_partail")


def test_a_component_claimed_twice_is_a_conflict_naming_both(toys):
    """Only who uses the bare name is refused, with both spellings."""
    component = toys.component("grader", "same", "Toy")
    one = Plugin(
        name="a",
        distribution="dist-a",
        version="1",
        components=(component,),
    )
    two = Plugin(
        name="b",
        distribution="dist-b",
        version="2",
        components=(toys.component("grader", "same", "Plain"),),
    )
    registry = Registry([one, two])
    assert registry.conflicts == [
        (
            "grader 'same' is offered by a (dist-a 1) and b (dist-b 2); write dist-a:same or "
            "dist-b:same"
        )
    ]
    with pytest.raises(
        PluginError, match=r"'same' is offered by .*; write dist-a:same or dist-b:same"
    ):
        registry.find("grader", "same")
    assert registry.find("grader", "Dist_B:same")[1] is two
    assert registry.find("grader", "dist.b:same").name == "dist-b:same"
    assert Registry([one]).find("grader", "dist-a:same").name == "same"
    assert Registry([one]).conflicts == []


@pytest.mark.parametrize(("requires", "version", "expected"), DATA["releases"])
def test_which_releases_meet_what_is_required(requires, version, expected):
    assert unmet(requires, version) == expected


@pytest.mark.parametrize(("component", "message"), DATA["a_malformed_component_breaks_its_plugin"])
def test_a_malformed_component_breaks_its_plugin(toys, component, message):
    made = Component(
        **({"kind": "grader", "name": "x", "target": "a:B", "summary": "s"} | component)
    )
    offer = toys.offer(made)
    extra = [("odd", offer), ("toys", toys.offer(*toys.TOYS))]
    discovered = discover(extra=extra, limit="")
    (sick,) = [plugin for plugin in discovered.broken if plugin.name == "odd"]
    assert message in sick.error
    names = discovered.names("grader")
    assert "toy" in names


def test_a_malformed_component_costs_itself(toys):
    other = Component(kind="juggler", name="x", target="a:B", summary="s")
    component = toys.component("grader", "sound", "Toy")
    offer = toys.offer(other, component)
    discovered = discover(extra=[("odd", offer)], limit="")
    assert discovered.find("grader", "sound")[1].error == "component 'x' has unknown kind 'juggler'"


@pytest.mark.parametrize(
    ("target", "message"), DATA["a_target_that_cannot_be_used_is_a_plugin_error"]
)
def test_a_target_that_cannot_be_used_is_a_plugin_error(make_registry_, toys, target, message):
    component = Component(kind="grader", name="odd", target=target, summary="s")
    registry = make_registry_(component)
    with pytest.raises(PluginError) as caught:
        registry.load("grader", "odd")
    assert message in str(caught.value)
    assert "grader 'odd' of plugin toys" in str(caught.value)


@pytest.mark.parametrize(("word", "known", "expected"), DATA["suggestions"])
def test_suggestions(word, known, expected):
    assert suggest(word, known) == expected


def hook(body, name="gradestack_components", arguments=""):
    return f"{HOOK}@hookimpl\ndef {name}({arguments}):\n    {body}"


@pytest.mark.parametrize(
    ("text", "message"), some_of(DATA["a_broken_plugin_does_not_take_the_others_with_it"], 3)
)
def test_a_broken_plugin_does_not_take_the_others_with_it(spawn, distribution, text, message):
    target = "sick_one:gone" if text == "" else "sick_one"
    out = plugins_of(
        spawn,
        distribution("sick-dist", {"sick": target}, {} if text is None else {"sick_one": text}),
    )
    lines = out.splitlines()
    (line,) = [line for line in lines if line.startswith("broken") and "sick" in line]
    assert message in line or message in out
    assert "[sick-dist 1.0]" in out
    assert "tau_partial" in out


GRADER = """
from gradestack import Grader
class Half(Grader):
    def grade(self, sample):
        return 0.5
"""


def test_a_name_of_ours_is_ours_and_the_other_has_that_of_its_distribution(
    spawn, distribution, write_lines, record
):
    """A third party cannot quietly replace a built-in grader, nor be in the way of those who use
    it.
    """
    thief = module(tau_partial="thief_one:Half") + GRADER
    site = distribution("Thief.One", {"thief": "thief_one"}, {"thief_one": thief})
    runs = write_lines([record("a")])
    common = ("-o", "out", "--set", "reports=[]", "--allow-all-failed")
    done = spawn("grade", runs, "--grader", "tau_partial", *common, paths=[site])
    assert done.code == 0
    assert "write gradestack:tau_partial or thief-one:tau_partial: the first is used" in done.out
    other = spawn("grade", runs, "--grader", "thief_one:tau_partial", *common, paths=[site])
    assert "Avg score: 0.500" in other.out, other.err
    listed = plugins_of(spawn, site)
    assert "conflict    grader 'tau_partial' is offered by tau_bench (gradestack" in listed
    own_result = spawn("grade", runs, "--grader", "gradestack:tau_partial", *common, paths=[site])
    assert "tau_partial" in own_result.out
    assert "is offered by" not in own_result.out
    expected = spawn("plugins", "describe", "thief-one:tau_partial", paths=[site]).out
    assert "from Thief.One 1.0" in expected


def test_a_release_of_ours_that_a_distribution_does_not_take_is_named(
    spawn, distribution, write_lines, record
):
    acme_one = module(half="acme_one:Half") + GRADER
    site = distribution("acme", {"acme": "acme_one"}, {"acme_one": acme_one})
    (metadata,) = site.glob("*.dist-info/METADATA")
    text = metadata.read_text()
    metadata.write_text(text + "Requires-Dist: Gradestack[dask] (>=9.0) ; python_version > '3'\n")
    message = f"needs gradestack >=9.0, this is {__version__}"
    plugins = plugins_of(spawn, site)
    assert message in plugins
    lines = write_lines([record("a")])
    used = spawn("grade", lines, "--grader", "half", "-o", "out", paths=[site])
    assert used.code == 4
    assert f"plugin acme (acme 1.0): {message}" in used.err


def test_a_reader_that_is_named_imports_no_other(spawn, distribution, write_lines, record):
    hook = module(x="slow_two:B").replace("grader", "reader")
    site = distribution(
        "slow", {"slow": "slow_one"}, {"slow_one": hook, "slow_two": "print('imported')"}
    )
    runs = write_lines([record("a")])
    common = ("-o", "out", "--set", "reports=[]", "--allow-all-failed", "-q")
    assert spawn("grade", runs, "--reader", "jsonl", *common, paths=[site]).err == ""
    assert spawn("grade", runs, *common, paths=[site]).err == "imported\n"


def test_plugins_can_be_limited(spawn, distribution):
    """GRADESTACK_PLUGINS names those to load beside the built-in ones.

    An empty one loads none of the others.
    """
    one_mod = module(alpha="a:B")
    first = distribution("dist-one", {"one": "one_mod"}, {"one_mod": one_mod})
    two_mod = module(beta="a:B")
    second = distribution("dist-two", {"two": "two_mod"}, {"two_mod": two_mod})
    names = {"alpha", "beta", "tau_partial"}
    for limit, expected in [
        (None, names),
        ("one", {"alpha", "tau_partial"}),
        ("", {"tau_partial"}),
        (" two , x", {"beta", "tau_partial"}),
    ]:
        out = plugins_of(
            spawn, first, second, **({} if limit is None else {"GRADESTACK_PLUGINS": limit})
        )
        assert {name for name in names if f" {name} " in out} == expected


def test_names_of_plugins_that_are_not_there_are_told(spawn, monkeypatch):
    assert discover(limit="readers, nowhere,").unknown == ["nowhere"]
    assert discover(limit="").unknown == []
    result = spawn("plugins", "list", "--kind", "engine", GRADESTACK_PLUGINS="engines,polit")
    assert result.code == 0
    assert (
        result.err
        == "warning: GRADESTACK_PLUGINS names polit, no installed plugin is called that\n"
    )


def test_plugins_are_those_installed_when_it_starts(spawn, distribution):
    """One that is added, broken or removed between two starts is noticed."""
    acme_one = module(shiny="a:B")
    acme_two = module(dull="a:B")
    site = distribution(
        "acme",
        {"acme": "acme_one"},
        {"acme_one": acme_one, "acme_two": acme_two},
    )
    assert "shiny" in plugins_of(spawn, site)
    (points,) = site.glob("*.dist-info/entry_points.txt")
    text = points.read_text()
    points.write_text(text + "more = acme_two\n")
    broken = distribution("gamma", {"gamma": "acme_one"}, {}) / "gamma-1.0.dist-info"
    entry_points_path = broken / "entry_points.txt"
    entry_points_path.write_bytes(b"[gradestack]\n\xff = acme_one\n")
    broken.rename(site / broken.name)
    plugins = plugins_of(spawn, site)
    expected = set(plugins.split())
    assert {"shiny", "dull"} <= expected
    other = distribution("beta", {"beta": "no_such_module"}, {})
    beta_1_path = other / "beta-1.0.dist-info"
    beta_1_path.rename(site / "beta-1.0.dist-info")
    assert "beta" in plugins_of(spawn, site)
    shutil.rmtree(points.parent)
    assert not {"shiny", "dull"} & set(plugins_of(spawn, site).split())


def test_plugins_of_an_archive_and_of_an_editable_install(spawn, distribution, tmp_path):
    """An egg that is a zip file, and an ``.egg-info`` folder beside its source."""
    in_zip = module(packed="a:B")
    zipped = distribution("zipped", {"zipped": "in_zip"}, {"in_zip": in_zip})
    paths = zipped.glob("*.dist-info")
    egg_info_folder = zipped / "EGG-INFO"
    shutil.move(next(paths), egg_info_folder)
    metadata_folder = zipped / "EGG-INFO/METADATA"
    metadata_folder.rename(zipped / "EGG-INFO/PKG-INFO")
    zipped_1_path = tmp_path / "zipped-1.0-py3.egg"
    egg = shutil.make_archive(str(zipped_1_path), "zip", zipped)
    in_source = module(raw="a:B")
    source = distribution("sources", {"sources": "in_source"}, {"in_source": in_source})
    path = next(source.glob("*.dist-info"))
    sources_path = source / "sources.egg-info"
    egg_info = path.rename(sources_path)
    pkg_info_folder = egg_info / "PKG-INFO"
    (egg_info / "METADATA").rename(pkg_info_folder)
    egg = shutil.move(egg, tmp_path / "zipped-1.0-py3.egg")
    plugins = plugins_of(spawn, egg, source)
    expected = set(plugins.split())
    assert {"packed", "raw"} <= expected
