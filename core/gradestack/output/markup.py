"""XML and the commands of CI systems, which tools read."""

from __future__ import annotations

from xml.sax.saxutils import escape

from gradestack.output.terminal import terminal_line


def xml_text(text: object) -> str:
    r"""Return a text for the inside of an XML element or of an attribute in double quotes.

    Each line is made safe as for a terminal, so that what XML cannot hold (control characters, lone surrogates) stands
    escaped as in a Python string; markup is escaped. Line ends stay.

    >>> print(xml_text('a < "b"'))
    a &lt; &quot;b&quot;
    """
    lines = str(text).replace("\r\n", "\n").split("\n")
    return escape("\n".join(map(terminal_line, lines)), {'"': "&quot;"})


def ci_command(name: str, title: object, message: object) -> str:
    r"""Return a workflow command of GitHub as one line: ``::error title=TITLE::MESSAGE``.

    >>> print(ci_command("error", "a: b", "50%"))
    ::error title=a%3A b::50%25
    """
    head, body = (terminal_line(each).replace("%", "%25") for each in (title, message))
    return f"::{name} title={head.replace(':', '%3A').replace(',', '%2C')}::{body}"
