"""Pages, help, messages and templates are short sentences in plain words."""

import re
from functools import cache
from pathlib import Path

import click
import pytest
import yaml

from gradestack.cli.commands import cli
from tests.docs.sentences import (
    FENCE,
    list_help_sentences,
    list_messages,
    list_sentences,
    list_texts,
    measure,
    split_sentences,
)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LONGEST_MEAN = 16
SOURCES = ("core", "plugins", "templates")
"""Folders whose texts reach users."""


def _name(path):
    return path.relative_to(ROOT).as_posix()


def _pages():
    """List the pages that people read, the reference that is made of docstrings too."""
    paths = ROOT.glob("*.md")
    return sorted([*paths, *DOCS.rglob("*.md")])


def _text_of(page):
    """Read a page; of the changelog only what is not released history."""
    text = page.read_text(encoding="utf-8")
    return text.partition("\n## [0.2.0]")[0] if page.name == "CHANGELOG.md" else text


def _source_files(*suffixes):
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*")]
    return sorted(path for path in files if path.suffix in suffixes)


def _commands(command, name="gradestack"):
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for command_name in command.list_commands(context):
            subcommand = command.get_command(context, command_name)
            if subcommand is not None:
                yield from _commands(subcommand, f"{name} {command_name}")


def _check(sentences):
    mean, long = measure(sentences)
    assert long == []
    assert mean <= LONGEST_MEAN


@pytest.mark.parametrize("page", _pages(), ids=_name)
def test_sentences_of_pages_are_short(page):
    text = _text_of(page)
    _check(list_sentences(text))


def test_sentences_of_help_are_short():
    sentences = []
    for _, command in _commands(cli):
        sentences += list_help_sentences(command)
    assert len(sentences) > 100
    _check(sentences)


def test_sentences_of_messages_are_short():
    sentences = []
    for path in _source_files(".py"):
        text = path.read_text(encoding="utf-8")
        for message in list_messages(text):
            sentences += split_sentences(message)
    assert len(sentences) > 500
    _check(sentences)


@cache
def _words():
    file_path = Path(__file__)
    path = file_path.with_name("words.yaml")
    text = path.read_text(encoding="utf-8")
    return yaml.safe_load(text)


def _allowed(pattern, name):
    return any(
        pattern == allowed["words"] and re.fullmatch(allowed["in"], name)
        for allowed in _words()["allowed"]
    )


def _find_words(name, text):
    words_found = []
    for entry in _words()["words"]:
        match = re.search(entry["words"], text, re.IGNORECASE)
        if match and not _allowed(entry["words"], name):
            words_found.append(f"{name}: {match.group(0)!r}; say: {entry['instead']}")
    return words_found


def test_no_page_uses_a_word_of_the_list():
    words_found = []
    for page in _pages():
        text = " ".join(FENCE.sub("", _text_of(page)).split())
        words_found += _find_words(_name(page), text)
    assert words_found == []


def test_no_source_uses_a_word_of_the_list():
    """In texts of the program and in templates; the reference holds the docstrings of users."""
    words_found = []
    for path in _source_files(".py", ".html", ".js", ".md", ".txt"):
        source = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            texts = list_texts(source)
        else:
            texts = [" ".join(source.split())]
        for text in texts:
            words_found += _find_words(_name(path), text)
    assert words_found == []


def test_each_exception_is_needed_and_has_a_reason():
    for allowed in _words()["allowed"]:
        assert allowed["why"], allowed
        paths = ROOT.rglob("*")
        matches = [path for path in paths if re.fullmatch(allowed["in"], _name(path))]
        texts = []
        for path in matches:
            texts.append(" ".join(path.read_text(encoding="utf-8").split()))
        assert any(re.search(allowed["words"], text, re.IGNORECASE) for text in texts), allowed


def test_a_long_sentence_and_a_word_of_the_list_are_noticed():
    long = "A " + "very " * 30 + "long sentence."
    sentences = list_sentences(f"Short.\n\n{long}\n")
    assert measure(sentences)[1] == [long]
    words = _find_words("page", "There is no evidence of it.")
    assert words != []
