"""Sentences of Markdown pages, help texts and messages, and how long they are."""

import ast
import re

FENCE = re.compile(r"^([ \t]*)```.*?^\1```[ \t]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE_SPAN = re.compile(r"``[^`]+``|`[^`]+`")
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
BULLET = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|vs|etc)\.\s", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)*]*\s+")
NO_PROSE = ("|", "#", "<", "{%")
CODE_INDENT = "    "
FUNCTION_WORDS = {
    "a",
    "an",
    "the",
    "is",
    "are",
    "was",
    "of",
    "to",
    "no",
    "not",
    "in",
    "it",
    "and",
    "or",
    "by",
    "for",
}


def count_words(sentence):
    """Count the words of a sentence: a code span is one, a sign alone is none."""
    words = sentence.split()
    return sum(bool(re.search(r"[^\W_]", word)) for word in words)


def split_sentences(paragraph):
    """Split a paragraph of plain text into sentences that have words."""
    text = ABBREVIATION.sub(lambda match: match.group(1) + " ", paragraph)
    parts = [part.strip() for part in SENTENCE_END.split(text)]
    return [part for part in parts if count_words(part)]


def strip_marks(text):
    """Return Markdown without its marks: code spans become one word, links their text."""
    text = LINK.sub(r"\1", IMAGE.sub("", text))
    text = CODE_SPAN.sub("CODE", text)
    return text.replace("*", "")


def list_paragraphs(page):
    """List the paragraphs and list items of a page, without headings, tables and code."""
    paragraphs = []
    lines = []
    for line in [*FENCE.sub("\n", COMMENT.sub("", page)).splitlines(), ""]:
        is_code = line.startswith(CODE_INDENT) and not lines
        match = BULLET.match(line)
        is_item = match is not None and not is_code
        is_prose = bool(line.strip()) and not is_code and not line.strip().startswith(NO_PROSE)
        if lines and (is_item or not is_prose):
            paragraphs.append(" ".join(lines))
            lines = []
        if is_prose:
            lines.append(BULLET.sub("", line).strip() if is_item else line.strip())
    return paragraphs


def list_sentences(page):
    """List the sentences of a Markdown page."""
    sentences = []
    for paragraph in list_paragraphs(page):
        sentences += split_sentences(strip_marks(paragraph))
    return sentences


def list_help_sentences(command):
    """List the sentences of a click command's help and of its options' helps."""
    texts = (command.help or "").replace("\b", "").split("\n\n")
    texts += [getattr(parameter, "help", None) or "" for parameter in command.params]
    sentences = []
    for text in texts:
        paragraph = " ".join(text.split())
        sentences += split_sentences(paragraph)
    return sentences


def _docstrings(tree):
    """Find the constants of a module that stand alone, as docstrings do."""
    nodes = ast.walk(tree)
    expressions = [node for node in nodes if isinstance(node, ast.Expr)]
    ids = set()
    for node in expressions:
        if isinstance(node.value, ast.Constant):
            ids.add(id(node.value))
    return ids


def _text_of(node):
    """Return the text of a string or f-string, ``CODE`` in place of its values."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return node.value
        return ""
    parts = []
    for part in node.values:
        parts.append(_text_of(part) if isinstance(part, ast.Constant) else "CODE")
    return "".join(parts)


def _is_prose(line):
    words = re.findall(r"(?<![\w.])[a-z]+(?![\w.(])", line)
    return len(words) >= 4 and len(FUNCTION_WORDS & set(words)) >= 2


def list_texts(source):
    """List the texts of a Python module, ``CODE`` in place of values, docstrings left out."""
    tree = ast.parse(source)
    skipped = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in skipped:
            text = _text_of(node)
            texts.append(text)
    return texts


def list_messages(source):
    """List the lines of a Python module's texts that are prose."""
    lines = []
    for text in list_texts(source):
        lines += [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if _is_prose(line)]


def measure(sentences):
    """Return the mean number of words of sentences, and the sentences of more than 30."""
    lengths = [count_words(sentence) for sentence in sentences]
    pairs = zip(sentences, lengths, strict=True)
    long = [one for one, length in pairs if length > 30]
    return sum(lengths) / max(1, len(lengths)), long
