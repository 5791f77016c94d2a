"""Golden pages: a page as a whole is what a committed file holds.

    GRADESTACK_REWRITE=1 pytest -q -k golden tests

writes the files again from today's pages; ``git diff`` then shows what a reader of the pages sees
differently. Styles and scripts are our own files and left out; lists that pages carry packed are
unpacked, but for the rows, which are those of results.jsonl.
"""

import base64
import os
import re
import zlib
from pathlib import Path

FOLDER = Path(__file__).parent / "pages"
PACKED = re.compile(r'(<script type="application/json" id="(\w+)"[^>]*>)([^<]*)(</script>)')
CODE = re.compile(r"(<(script|style)>).*?(</\2>)", re.DOTALL)
MASKS = {r"'?sha256-[\w+/=]+": "DIGEST", r"gradestack \d[\w.+]*": "gradestack VERSION"}


def unpack(text):
    """Decode a list as pages carry it: deflated JSON in base 64."""
    decompressed = zlib.decompress(base64.b64decode(text), wbits=-15)
    return decompressed.decode()


def show_packed(match):
    """Write the content of a packed list, or only that there are rows."""
    start, name, packed, end = match.groups()
    if packed.startswith(("{", "[")):  # small enough to stand in the page as it is
        return match[0]
    if name.startswith("chunk"):
        content = "ROWS"
    else:
        content = unpack(packed)
    return f"{start}\n{content}\n{end}"


def readable(page):
    """Return the page without what differs from run to run, and without our styles and scripts."""
    page = PACKED.sub(show_packed, CODE.sub(r"\1\3", page))
    for pattern, word in MASKS.items():
        page = re.sub(pattern, word, page)
    return page


def check_golden_file(name, page):
    """Assert that a page is the golden one of that name, or write it where that is asked for."""
    path = FOLDER / name
    text = readable(page)
    if os.environ.get("GRADESTACK_REWRITE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert text == expected, f"{path}: GRADESTACK_REWRITE=1 writes it again"
