"""Everything wrong with a suite is told at once, each mistake with its place."""

import re

import pytest

from gradestack import ConfigError, DataError, PluginError, Registry
from gradestack.registry import Plugin
from tests.core.toy_components import BASE


def refused(load, text, *overrides, using=None, error=ConfigError):
    with pytest.raises(error) as caught:
        load(text, *overrides, using=using)
    return [re.sub(r"^\S*/(?=suite\.yaml:)", "", problem) for problem in caught.value.problems]


def test_many_mistakes_are_told_at_once(load):
    assert sorted(
        refused(
            load,
            """\
            name: 5
            profil: upstream
            target: {paths: [runs.jsonl]}
            graders:
              quality: {kind: toi}
              other: {kind: toy, facter: 2, limit: "3", mode: plane}
            metrics:
              average: {kind: maen, of: quality}
              spread: {kind: mean, of: qualty, confidence: 2.0}
            gate: {metric_key: quolity, op: gte, value: 0.5}
            reports: [htlm]
            """,
        )
    ) == sorted(
        [
            "suite.yaml:1: name: expected text, got 5; put it in quotes",
            "suite.yaml:2: profil: unknown key (did you mean 'profile'?)",
            "suite.yaml:5: graders.quality.kind: unknown grader 'toi' (did you mean 'toy'?)",
            "suite.yaml:6: graders.other.facter: unknown key (did you mean 'factor'?)",
            "suite.yaml:6: graders.other.limit: expected a whole number, got '3'",
            "suite.yaml:6: graders.other.mode: expected one of plain, loud; got 'plane' (did you mean 'plain'?)",
            "suite.yaml:8: metrics.average.kind: unknown aggregator 'maen' (did you mean 'mean'?)",
            "suite.yaml:9: metrics.spread.of: no grader has the key 'qualty' (did you mean 'quality'?)",
            "suite.yaml:9: metrics.spread: confidence must be between 0 and 1, got 2.0",
            "suite.yaml:10: gate.metric_key: no grader has the key 'quolity' (did you mean 'quality'?)",
            "suite.yaml:11: reports[0]: unknown reporter 'htlm' (did you mean 'html'?)",
        ]
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("reader: jsonk", "reader.kind: unknown reader 'jsonk' (did you mean 'jsonl'?)"),
        ("reader: {kind: jsonl, odd: 1}", "reader.odd: unknown key; known: ids"),
        ("reader: [jsonl]", "reader: expected text, got a list, or expected a mapping, got a list"),
        ("engine: seriel", "engine: unknown engine 'seriel' (did you mean 'serial'?)"),
        ("stack: jsonn", "stack: unknown stack 'jsonn' (did you mean 'jsonl'?)"),
        ("duplicates: first", "duplicates: expected one of keep, last, error; got 'first'"),
        ("gate: {op: gte, value: 1, vaule: 2}", "gate.vaule: unknown key (did you mean 'value'?)"),
        ("gate: {op: ge, value: 1}", "gate.op: expected one of gt, gte, lt, lte, eq; got 'ge' (did you mean 'gte'?)"),
        ("gate: {value: 1}", "gate.op: missing"),
        ("gate: {op: gte, value: '1'}", "gate.value: expected a number, got '1'"),
        ("gate: {op: gte, value: .nan}", "gate.value: expected a number, got nan"),
        ("reports: html", "reports: expected a list, got 'html'"),
        ("metrics: {m: {of: quality}}", "metrics.m: kind is missing; there are: "),
        ("metrics: {m: {kind: 5}}", "metrics.m: kind must be text, got 5; there are: "),
        ("metrics: {m: {kind: mean, of: [quality]}}", "metrics.m.of: no grader has the key ['quality']"),
        ("metrics: [mean]", "metrics: expected a mapping, got a list"),
        ("metrics: {1: [x]}", "metrics.1: expected text, got a list, or expected a mapping, got a list"),
        ("1: x", "1: unknown key"),
    ],
)
def test_every_section_is_checked(load, line, expected):
    found = refused(load, BASE + line + "\n")
    assert found[0].startswith(f"suite.yaml:4: {expected}")
    assert all(problem.startswith("suite.yaml:4: ") for problem in found)


@pytest.mark.parametrize(
    ("graders", "expected"),
    [
        ("toy", "graders: expected a mapping, got 'toy'"),
        ("{quality: {}}", "graders.quality: kind is missing; there are: "),
        ("{quality: [toy]}", "graders.quality: expected text, got a list, or expected a mapping, got a list"),
        ("{1: 5}", "graders.1: expected text, got 5; put it in quotes, or expected a mapping, got 5"),
        ("{yes: [x]}", "graders.True: expected text, got a list, or expected a mapping, got a list"),
        ("{quality: {kind: toy, factor: -1.0}}", "graders.quality: factor must not be negative, got -1.0"),
        ("{quality: {kind: toy, weights: {a: x}}}", "graders.quality.weights.a: expected a number, got 'x'"),
        ("{quality: {kind: toy, names: [a, 1]}}", "graders.quality.names[1]: expected text, got 1; put it in quotes"),
        ("{quality: {kind: demanding}}", "graders.quality: demanding needs native; the format 'jsonl' provides "),
    ],
)
def test_graders_are_checked(load, graders, expected):
    found = refused(load, f"target: {{paths: [runs.jsonl]}}\nreader: jsonl\ngraders: {graders}\n")
    assert any(problem.startswith(f"suite.yaml:3: {expected}") for problem in found), found


def test_no_grader_and_no_default_stack(load, tmp_path, toys, make_registry_):
    assert [stage.key for stage in load("target: {paths: [runs.jsonl]}").graders] == ["partial"]
    (tmp_path / "x.numbers").write_text("numbers\n1\n")
    suite = load("target: {paths: [x.numbers]}")
    assert [stage.key for stage in suite.graders] == ["number"]
    assert [(metric.of, metric.stage.key) for metric in suite.metrics] == [
        ("number", "toy_count"),
        ("number", "average"),
    ]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("", "suite.yaml: target: paths is missing: name the result files to grade"),
        ("target: {}", "suite.yaml:2: target: paths is missing: name the result files to grade"),
        ("target: {paths: []}", "suite.yaml:2: target: paths is missing: name the result files to grade"),
        ("target: {paths: [1]}", "suite.yaml:2: target.paths[0]: expected text, got 1; put it in quotes"),
        ("target: 5", "suite.yaml:2: target: expected a mapping, got 5"),
        ("target: {path: x}", "suite.yaml:2: target.path: unknown key (did you mean 'paths'?)"),
        ("target: {kind: agent, agent_id: x}", "suite.yaml:2: target.kind: 'agent' is a live target"),
    ],
)
def test_targets_are_checked(load, target, expected):
    found = refused(load, f"graders: {{quality: toy}}\n{target}\n")
    assert any(problem.startswith(expected) for problem in found), found


def test_mistakes_in_the_suite_are_told_before_missing_inputs(load):
    """A typo is exit 2, even when the input is not there yet; without mistakes the input is the problem."""
    found = refused(load, "target: {paths: [gone.jsonl]}\ngraders: {quality: toi}\n")
    assert found == ["suite.yaml:2: graders.quality: unknown grader 'toi' (did you mean 'toy'?)"]
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        load("target: {paths: [gone.jsonl]}\ngraders: {quality: toy}\n")
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        load("target: {paths: [gone.jsonl]}\n")


def test_a_broken_plugin_is_told_with_the_place_that_uses_it(load, make_registry_, toys):
    """Alone it is a plugin error; beside mistakes of the suite, a configuration error that lists it too."""
    using = make_registry_(toys.component("grader", "sick", "Missing"))
    (found,) = refused(load, BASE + "", "graders.quality=sick", using=using, error=PluginError)
    assert found.startswith(
        "--set graders.quality: grader 'sick' of plugin toys (local 0) cannot be loaded: AttributeError"
    )
    both = refused(load, BASE + "nmae: y\n", "graders.quality=sick", using=using)
    assert len(both) == 2
    with_broken = Registry([*using.plugins, Plugin(name="p", distribution="d", version="1", error="boom")])
    (unknown,) = refused(load, BASE, "graders.quality=whatever", using=with_broken, error=PluginError)
    assert "plugin p (d 1): boom" in unknown


def test_a_conflict_stops_everything(load, registry):
    found = Registry(registry.plugins)
    found.conflicts.append("grader 'x' comes from both a and b")
    assert refused(load, BASE, using=found, error=PluginError) == ["grader 'x' comes from both a and b"]


def test_a_mistaken_override_is_placed_on_the_command_line(load):
    assert refused(load, BASE, "graders.quality.facter=1") == [
        "--set graders.quality.facter: unknown key (did you mean 'factor'?)"
    ]
    assert refused(load, BASE, "reader.odd=1") == ["--set reader.odd: unknown key; known: ids"]
    assert refused(load, BASE, "odd.key=1")[0].startswith("--set odd: unknown key; known: name, ")
    assert refused(load, BASE, "metrics.odd.of=quality")[0].startswith("--set metrics.odd: kind is missing; ")


def test_aliases_nine_levels_deep_are_refused_at_once(load):
    """What they stand for is never written out, not for a suggestion either."""
    nine = ["&a0 [l, l, l, l, l, l, l, l, l, l]"]
    nine += [f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    for key in ("profile", "reader", "engine", "graders"):
        text = f"target: {{paths: [runs.jsonl]}}\n{key}:\n  kind:\n" + "".join(f"  - {each}\n" for each in nine)
        with pytest.raises(ConfigError, match=r"suite\.yaml:\d+: not valid YAML: its aliases stand for more than"):
            load(text)


def test_very_many_mistakes_are_counted(load):
    found = refused(load, BASE + "".join(f"k{number}: 1\n" for number in range(2000)))
    assert found[0] == "suite.yaml:4: k0: unknown key; known: " + found[0].partition("known: ")[2]
    assert (len(found), found[-1]) == (101, "and 1900 more")


def test_a_long_text_makes_no_long_message(load):
    (problem,) = refused(load, f"target: {{paths: [runs.jsonl]}}\ngraders:\n  q: {'x' * 1_000_000}\n")
    assert problem.startswith("suite.yaml:3: graders.q: unknown grader 'xxx")
    assert len(problem) < 2100


@pytest.mark.parametrize(
    ("line", "only"),
    [
        ("stack: jsonn", "suite.yaml:2: stack: unknown stack 'jsonn' (did you mean 'jsonl'?)"),
        ("reader: jsonk", "suite.yaml:2: reader.kind: unknown reader 'jsonk' (did you mean 'jsonl'?)"),
        ("reader: ''", "suite.yaml:2: reader.kind: unknown reader ''; there are: "),
    ],
)
def test_graders_that_a_stack_would_have_brought_are_not_missed(load, line, only):
    """The mistake is the name; without a stack graders are missed whatever the file is called."""
    paths = "target: {paths: [runs.jsonl]}\n"
    (told,) = refused(load, f"{paths}{line}\n")
    assert told.startswith(only)
    assert len(refused(load, f"nmae: y\n{paths}stack: jsonn\n")) == 2


def test_missing_paths_are_told_beside_another_mistake_that_holds_the_word(load):
    """Only a problem of the target itself, or of its misspelt name, says enough of it."""
    told = refused(load, "profile: target\ngraders: {quality: toy}\n")
    assert sum(each.endswith("target: paths is missing: name the result files to grade") for each in told) == 1
    assert len(refused(load, "targte: {paths: [runs.jsonl]}\ngraders: {quality: toy}\n")) == 1
