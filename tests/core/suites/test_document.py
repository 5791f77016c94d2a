"""Suite files: places, schema, strictness."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import jsonschema
import pytest
import yaml

from gradestack import ConfigError
from gradestack.copies.files import Folder
from gradestack.suites.document import Document, apply_override, read_yaml, yaml_data
from gradestack.suites.options import Problems, show_location, structure
from gradestack.suites.schema import suite_schema
from tests.core.outcomes import data, some_of

DATA = data(__file__, "document.yaml")

TEXT = DATA["text"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def parse_yaml(text, name):
    name_path = Path(name)
    name_path.write_bytes(text.encode())
    return read_yaml(Path(name))


@pytest.mark.parametrize(
    ("key_path", "text"),
    [((), ""), (("a",), "a"), (("a", "b", 0, "c"), "a.b[0].c"), (("a", 0, 1), "a[0][1]")],
)
def test_places_read_as_people_write_them(key_path, text):
    location = show_location(key_path)
    assert location == text


@pytest.mark.parametrize(("key_path", "line"), DATA["every_value_knows_its_line"])
def test_every_value_knows_its_line(key_path, line):
    where = parse_yaml(TEXT, "s.yaml").where(tuple(key_path))
    expected_text = f"s.yaml:{line}: {show_location(key_path)}"
    assert where == expected_text


def test_values_are_plain_data():
    """Anchors and merges are expanded as YAML says, and lines of the anchor are kept."""
    document = parse_yaml("a: &x {n: 1}\nb: *x\nc:\n  <<: *x\n  m: 2\n", "s")
    assert document.data == {"a": {"n": 1}, "b": {"n": 1}, "c": {"n": 1, "m": 2}}
    assert [document.where(key_path) for key_path in (("a", "n"), ("gone",), ())] == [
        "s:1: a.n",
        "s: gone",
        "s: top level",
    ]
    assert parse_yaml("\ufeffname: x\r\n", "s").data == {
        "name": "x"
    }  # editors on Windows write such a mark


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *data(__file__, "documents.yaml")["no_yaml"],
        ("a: " + "[" * 10_000, "s.yaml: not valid YAML: nested too deeply"),
        ("b: 1\na: " + "9" * 5000, "s.yaml:2: not valid YAML: this is no value"),
        ("b: 1\na: 0x" + "f" * 5000, "s.yaml:2: not valid YAML: a number has too many digits"),
        ("b: 1\na: " + "1:" * 3000 + "1.5", "s.yaml:2: not valid YAML: this is no value"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_place(text, message):
    """One message with file and line; nothing in a file is run."""
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "s.yaml")
    assert str(caught.value).startswith(message)


NINE = [
    "x0: &a0 [l, l, l, l, l, l, l, l, l, l]",
    *(f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)),
]
NINE_MERGED = [
    "x0: &a0 {k: v}",
    *(f"x{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)),
]


@pytest.mark.parametrize("lines", [NINE, NINE_MERGED], ids=["lists", "merge keys"])
def test_aliases_stand_for_a_limited_number_of_values(lines):
    """A text of a kilobyte that stands for a thousand million values is refused at the line where
    it gets too large.
    """
    with pytest.raises(
        ConfigError,
        match=r"s\.yaml:\d: not valid YAML: its aliases stand for more than 100,000 values",
    ):
        parse_yaml("\n".join(lines), "s.yaml")
    text = "\n".join(lines[:4])
    data_count = len(parse_yaml(text, "s.yaml").data)
    assert data_count == 4


def test_a_key_given_twice_is_refused():
    """YAML would keep the last one silently."""
    with pytest.raises(ConfigError) as caught:
        parse_yaml("a: 1\nb: {c: 1, c: 2}\na: 2\n", "s.yaml")
    message = "s.yaml:2: not valid YAML: b.c is on line 2 already; write it once"
    assert str(caught.value) == message


def test_a_key_given_twice_in_recorded_yaml_counts_once():
    assert yaml_data("a: 1\na: 2") == {"a": 2}


def test_files_that_cannot_be_read(tmp_path):
    latin_path = tmp_path / "latin.yaml"
    latin_path.write_bytes(b"name: \xe9")
    wide_path = tmp_path / "wide.yaml"
    wide_path.write_bytes("name: x".encode("utf-16"))
    for name, message in [
        ("gone.yaml", "no such file"),
        (".", "cannot be read: Is a directory"),
        ("latin.yaml", "utf-8"),
        ("wide.yaml", "is UTF-16 text, and only UTF-8 is read"),
    ]:
        with pytest.raises(ConfigError, match=message):
            read_yaml(tmp_path / name)


@pytest.mark.parametrize(
    ("before", "assignment", "expected"), data(__file__, "documents.yaml")["overrides"]
)
def test_overrides(before, assignment, expected):
    """VALUE is YAML; a mapping replaces the whole.

    Short component references open when an option is set.
    """
    document = Document(data=before, origin="s")
    apply_override(document, assignment)
    assert document.data == expected


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        *data(__file__, "documents.yaml")["nonsense"],
        ("a=" + "9" * 5000, "the value is not valid YAML"),
        ("a=" + "[" * 10_000, "the value is not valid YAML"),
        (f"list.{'9' * 500}=1", "list has no entry '999"),
    ],
)
def test_overrides_that_make_no_sense(assignment, message):
    document = Document(data={"n": 5, "list": [1]}, origin="s")
    with pytest.raises(ConfigError) as caught:
        apply_override(document, assignment)
    assert str(caught.value).startswith(f"--set {assignment}: "[:500])
    assert message in str(caught.value)


def test_a_problem_with_an_override_is_placed_on_the_command_line():
    document = parse_yaml(TEXT, "s.yaml")
    apply_override(document, "graders.one.factor=x")
    where = document.where(("graders", "one", "factor"))
    assert where == "--set graders.one.factor"
    assert document.where(("graders", "one", "kind")) == "s.yaml:3: graders.one.kind"
    apply_override(document, "gone.deeper.key=x")
    assert document.where(("gone",)) == "--set gone"
    assert document.where(("gone", "deeper", "other")) == "--set gone.deeper.other"


SUITE = DATA["suite"]


@pytest.fixture(scope="module")
def valid(registry):
    """Whether the schema of suites, with the toys installed, takes a text."""
    schema = suite_schema(registry)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    return lambda text: validator.is_valid(yaml.safe_load(text))


@pytest.mark.parametrize("text", [SUITE, *data(__file__, "schema.yaml")["valid"]])
def test_a_sound_suite_is_valid_in_every_form(valid, text):
    assert valid(text)


@pytest.mark.parametrize(("old", "new"), some_of(data(__file__, "schema.yaml")["mistakes"], 3))
def test_mistakes_are_not(valid, old, new):
    """An editor marks what the loader would refuse."""
    assert SUITE.count(old) == 1
    suite = SUITE.replace(old, new)
    assert not valid(suite)


def test_a_component_that_cannot_be_loaded_is_left_to_the_loader(make_registry_, toys):
    component = toys.component("grader", "sick", "Missing")
    registry = make_registry_(component)
    schema = suite_schema(registry)
    jsonschema.validate({"target": {"paths": ["a"]}, "graders": {"q": "sick"}}, schema)


@attrs.frozen(kw_only=True)
class Inner:
    """A nested options class."""

    share: float = 0.5
    names: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Options:
    """Every supported form of annotation."""

    flag: bool = False
    number: int = 0
    ratio: float = 0.0
    text: str = ""
    choice: Literal["strict", "skip", 3] = "strict"
    maybe: int | None = None
    either: str | dict[str, Any] = ""
    texts: tuple[str, ...] = ()
    weights: dict[str, float] = attrs.field(factory=dict)
    mapping: Mapping[str, int] = attrs.field(factory=dict)
    path: Path | None = None
    inner: Inner = attrs.field(factory=Inner)
    inners: tuple[Inner, ...] = ()
    named: dict[str, Inner] = attrs.field(factory=dict)
    anything: Any = None

    def __attrs_post_init__(self):
        if self.number < 0:
            msg = "number must not be negative"
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class Needy:
    """Has an option without a default."""

    wanted: str


def problems(options, kind=Options):
    with pytest.raises(Problems) as caught:
        structure(options, kind)
    return caught.value.listed


def test_right_values_are_taken_as_they_are():
    options = data(__file__, "document.yaml")["given_of_right_values_are_taken_as_they_are"]
    made = structure(options, Options)
    assert made.ratio == 2.0
    assert type(made.ratio) is float
    inner = Inner(share=1.0, names=("x",))
    assert made.inner == inner
    assert made.inners == (Inner(), Inner(share=0.0))
    assert made.named == {"x": Inner()}
    assert made.texts == ("a", "b")
    assert made.weights == {"a": 1.0, "b": 0.5}
    assert made.either == {"a": [1]}
    assert made.anything == {"deep": [None]}
    assert structure({}, Options) == Options()


@pytest.mark.parametrize(("options", "key_path", "message"), data(__file__, "wrong_options.yaml"))
def test_wrong_values_are_refused_with_their_place(options, key_path, message):
    """Nothing is coerced: what the default converter would bend is told instead."""
    assert problems(options) == [(tuple(key_path), message)]


def test_everything_wrong_is_told_at_once():
    problems_found = problems(
        {"numbr": 1, "ratio": "x", "texts": [1, "a", 2], "inner": {"share": "y"}, "zzz": 0}
    )
    key_paths = {key_path for key_path, _ in problems_found}
    assert key_paths == {
        ("numbr",),
        ("zzz",),
        ("ratio",),
        ("texts", 0),
        ("texts", 2),
        ("inner", "share"),
    }
    messages = dict(problems_found)
    assert messages["numbr",] == "unknown key (did you mean 'number'?)"
    assert messages["zzz",].startswith("unknown key; known: flag, number")


def test_keys_that_are_no_text_are_unknown_keys():
    """YAML reads 1 and yes as a number and a truth value.

    Mixed kinds of keys are told like any others.
    """
    assert problems({1: "a", "zz": "c", None: "d"}, Inner) == [
        (("1",), "unknown key; known: share, names"),
        (("null",), "unknown key; known: share, names"),
        (("zz",), "unknown key; known: share, names"),
    ]


def test_a_missing_option_is_named():
    assert problems({}, Needy) == [(("wanted",), "missing")]


def test_relative_paths_are_taken_from_the_base(tmp_path):
    folder = Folder(tmp_path)
    assert structure({"path": "a/b"}, Options, folder).path == tmp_path / "a/b"
    path = structure({"path": "/a"}, Options, Folder(tmp_path, is_open=True)).path
    assert path == Path("/a")
    assert structure({"path": "a"}, Options).path == Path("a")
