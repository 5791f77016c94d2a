"""YAML with places, and values set on the command line."""

import pytest

from gradestack import ConfigError
from gradestack.suites.document import Document, apply_override, parse_yaml, read_yaml, show_place
from tests.core.outcomes import data

TEXT = """\
name: x
graders:
  one: {kind: toy,
        factor: 2}
  two:
    kind: toy
    names:
      - a
      - b
"""


@pytest.mark.parametrize(
    ("place", "text"), [((), ""), (("a",), "a"), (("a", "b", 0, "c"), "a.b[0].c"), (("a", 0, 1), "a[0][1]")]
)
def test_places_read_as_people_write_them(place, text):
    assert show_place(place) == text


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("name",), 1),
        (("graders",), 2),
        (("graders", "one"), 3),
        (("graders", "one", "kind"), 3),
        (("graders", "one", "factor"), 4),
        (("graders", "two", "names", 1), 9),
    ],
)
def test_every_value_knows_its_line(place, line):
    assert parse_yaml(TEXT, "s.yaml").where(place) == f"s.yaml:{line}: {show_place(place)}"


def test_a_value_without_a_line_is_placed_by_what_is_around_it():
    document = parse_yaml(TEXT, "s.yaml")
    assert document.where(("graders", "two", "missing", "deeper")) == "s.yaml:5: graders.two.missing.deeper"
    assert document.where(()) == "s.yaml: top level"
    assert document.where(("gone",)) == "s.yaml: gone"


def test_values_are_plain_data():
    """Anchors and merges are expanded as YAML says, and lines of the anchor are kept."""
    document = parse_yaml("a: &x {n: 1}\nb: *x\nc:\n  <<: *x\n  m: 2\n", "s")
    assert document.data == {"a": {"n": 1}, "b": {"n": 1}, "c": {"n": 1, "m": 2}}
    assert document.where(("a", "n")) == "s:1: a.n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *data(__file__, "documents.yaml")["no_yaml"],
        ("a: " + "[" * 10_000, "s.yaml: not valid YAML: nested too deeply"),
        ("b: 1\na: " + "9" * 5000, "s.yaml:2: not valid YAML: '9999"),
        ("b: 1\na: 0x" + "f" * 5000, "s.yaml:2: not valid YAML: a number has too many digits"),
        ("b: 1\na: " + "1:" * 3000 + "1.5", "s.yaml:2: not valid YAML: '1:1:"),
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
NINE_MERGED = ["x0: &a0 {k: v}", *(f"x{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9))]


@pytest.mark.parametrize("lines", [NINE, NINE_MERGED], ids=["lists", "merge keys"])
def test_aliases_stand_for_a_limited_number_of_values(lines):
    """A text of a kilobyte that stands for a thousand million values is refused at the line where it gets too large."""
    with pytest.raises(
        ConfigError, match=r"s\.yaml:\d: not valid YAML: its aliases stand for more than 100,000 values"
    ):
        parse_yaml("\n".join(lines), "s.yaml")
    assert len(parse_yaml("\n".join(lines[:4]), "s.yaml").data) == 4


def test_a_key_given_twice_is_refused():
    """YAML would keep the last one silently; all are told."""
    with pytest.raises(ConfigError) as caught:
        parse_yaml("a: 1\nb: {c: 1, c: 2}\na: 2\n", "s.yaml")
    assert caught.value.problems == (
        "line 2: key 'c' stands twice in the same mapping",
        "line 3: key 'a' stands twice in the same mapping",
    )


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9")
    (tmp_path / "wide.yaml").write_bytes("name: x".encode("utf-16"))
    for name, message in [
        ("gone.yaml", "no such file"),
        (".", "cannot be read: Is a directory"),
        ("latin.yaml", "utf-8"),
        ("wide.yaml", "is UTF-16 text, and only UTF-8 is read"),
    ]:
        with pytest.raises(ConfigError, match=message):
            read_yaml(tmp_path / name)


def test_a_byte_order_mark_is_no_trouble(tmp_path):
    """Editors on Windows write one."""
    (tmp_path / "s.yaml").write_bytes(b"\xef\xbb\xbfname: x\r\n")
    assert read_yaml(tmp_path / "s.yaml").data == {"name": "x"}


@pytest.mark.parametrize(("before", "assignment", "expected"), data(__file__, "documents.yaml")["overrides"])
def test_overrides(before, assignment, expected):
    """VALUE is YAML; a mapping replaces the whole; short component references open when an option is set."""
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
    assert document.where(("graders", "one", "factor")) == "--set graders.one.factor"
    assert document.where(("graders", "one", "kind")) == "s.yaml:3: graders.one.kind"
    apply_override(document, "gone.deeper.key=x")
    assert document.where(("gone",)) == "--set gone"
    assert document.where(("gone", "deeper", "other")) == "--set gone.deeper.other"
