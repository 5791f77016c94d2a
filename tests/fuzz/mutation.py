"""Mutated files: changes at the level of bytes and of JSON, drawn by hypothesis and applied to real
examples.
"""

import copy
import csv
import gzip
import io
import json

import pytest
from hypothesis import strategies as st

DEEP, NESTED = 3000, 400
"""Levels that no record may have, and that one may have."""
RAW = {
    "raw:nan": "NaN",
    "raw:inf": "-Infinity",
    "raw:1e999": "1e999",
    "raw:digits": "9" * 5000,
    "raw:beyond": "1" + "0" * 400,
    "raw:nested": "[" * NESTED + "]" * NESTED,
    "raw:within": '{"a":' * NESTED + "1" + "}" * NESTED,
    "raw:deep": "[" * DEEP + "]" * DEEP,
    "raw:deeper": '{"a":' * DEEP + "1" + "}" * DEEP,
    "raw:surrogate": '"\\ud800"',
    "raw:nothing": "",
    "raw:twice": '{"id": 1, "id": 2}',
    "raw:open": '{"a": [',
}
"""What no value of Python is written as, by the text that stands for it until the file
is written.
"""
VALUES = [
    None, True, False, 0, -1, 1, 2.5, 0.5, -0.0, 1e300, 10**30, "", " ", "x", "0", "null",
    "é\u2028\u202e", "\x00",
    "a\nb", "{}", "[1, 2", '{"a": 1}', [], {}, [[]], [{}], [None], {"": None}, {"a": {"a": {}}},
    ["x"] * 50,
    "x" * 3000,
    [1, "1", 1.0, True, None], {"name": "f"}, {"name": None, "arguments": []},
    [{"role": "assistant", "content": None}],
    {"type": "function", "function": {}}, "\x1b[31m\n::error::x", "../../etc", *RAW,
]  # fmt: skip
TOKENS = [
    b"", b"\x00", b"\xff", b"\xed\xa0\x80", b"\n", b"\r\n", b"\n\n", b'"', b"\\", b"\\ud800",
    b"{", b"}", b"[", b"]",
    b",", b":", b"null", b"NaN", b"1e999", b"-", b"9" * 400, b"\xef\xbb\xbf", b"\xe2\x80\xa8",
    b" ", b"\t", b"{}\n",
    b"[]\n", b"1\n", b'"x"\n', b"{\n", b"[\n  ", b"]\n", b"[" * 2000, b"x" * 70_000, b"//", b"'",
    b"True",
]  # fmt: skip
YAML_TOKENS = [
    *TOKENS, b"&a ", b"*a", b"<<: *a\n", b"!!int ", b"!!python/name:os.system ",
    b"!!timestamp x", b"!!binary x",
    b"!!set {a, b}", b"? [a]\n: b\n", b"|\n  x\n", b">-\n", b"%YAML 1.1\n---\n", b"---\n",
    b"...\n", b"2020-13-45",
    b"0x" + b"f" * 2000, b"1:1:1", b".inf", b"~", b"yes", b'"\\0"', b'"\\UFFFFFFFF"', b"# x\n",
    b"@", b"`",
    b"kind: ", b"{kind: exact_match}", b"upstream", b"- ", b"reader: jsonl\n", b"num_runs: 2\n",
    b"max_samples: 1\n",
    b"gates: [{op: gte, value: 0.5}]\n", b"engine: serial\n", b"rows: none\n",
    b"exporters: [tau_bench]\n",
    b"metrics: {m: {kind: mean}}\n", b"sample_tags: [x]\n", b"duplicates: error\n",
    b"stack: tool_calls\n",
]  # fmt: skip
_small = st.integers(0, 1 << 16)
_byte_edits = st.sampled_from(["insert", "delete", "repeat", "flip", "cut", "swap"])
byte_edits = st.lists(st.tuples(_byte_edits, _small, _small, st.integers(0, 300)), max_size=5)
_tree_edits = st.sampled_from(["replace", "drop", "rename", "copy", "wrap", "add", "record"])
tree_edits = st.lists(st.tuples(_tree_edits, _small, _small), max_size=5)
one_value = st.lists(
    st.tuples(st.sampled_from(["replace", "drop", "rename"]), _small, _small),
    min_size=1,
    max_size=2,
)
forms = st.sampled_from(
    [*["as it is"] * 12, "list", "lines", "indented", "gzip", "utf-16", "bom", "crlf", "behind"]
)


def edited(content, edits, tokens=TOKENS):
    """Apply edits of bytes to the content of a file."""
    for kind, position, token, length in edits:
        at = position % (len(content) + 1)
        if kind == "insert":
            content = content[:at] + tokens[token % len(tokens)] + content[at:]
        elif kind == "delete":
            content = content[:at] + content[at + length :]
        elif kind == "repeat":
            content = content[: at + length] + content[at:]
        elif kind == "flip" and content:
            at %= len(content)
            content = content[:at] + bytes([content[at] ^ (1 << token % 8)]) + content[at + 1 :]
        elif kind == "cut":
            content = content[:at]
        elif kind == "swap":
            content = content[at:] + content[:at]
    return content


def changed(records, edits):
    """Apply edits of values to a copy of JSON data."""
    text = json.dumps(records)
    records = json.loads(text)
    for kind, position, number in edits:
        holder, step = _choose_value([records], position)
        value = copy.deepcopy(VALUES[number % len(VALUES)])  # what is put in may be edited itself
        if kind == "record" and isinstance(records, list) and records:
            record = records[position % len(records)]
            records.insert(number % len(records), copy.deepcopy(record))
        elif kind == "replace":
            holder[step] = value
        elif (
            kind == "drop" and holder is not None and (isinstance(holder, dict) or len(holder) > 1)
        ):
            del holder[step]
        elif kind == "rename" and isinstance(holder, dict):
            holder[str(value)[:50]] = holder.pop(step)
        elif kind == "copy":
            other, key = _choose_value([records], number)
            holder[step] = copy.deepcopy(other[key])
        elif kind == "wrap":
            holder[step] = [holder[step]] if number % 2 else {"x": holder[step]}
        elif kind == "add" and isinstance(holder[step], dict):
            holder[step][str(VALUES[position % len(VALUES)])[:50]] = value
        records = _root(records, holder)
    return records


def _root(records, holder):
    """Return the data, which an edit at its top may have taken the place of."""
    if len(holder) == 1 and isinstance(holder, list) and holder[0] is not records:
        return holder[0]
    return records


def _choose_value(top, number):
    """Choose a value below the top by a number; return its container and the key in it."""
    holder, step = top, 0
    number += 1
    while number:
        below = holder[step]
        size = 0
        if isinstance(below, dict | list):
            size = len(below)
        if not size:
            break
        number, chosen = divmod(number, size + 1)
        if chosen == size:
            break
        holder = below
        if isinstance(below, dict):
            step = list(below)[chosen]
        else:
            step = chosen
    return holder, step


def _table(records, layout):
    """Return the bytes of a table; in Parquet they need not be UTF-8."""
    if isinstance(records, list):
        rows = [record for record in records if isinstance(record, dict)]
    else:
        rows = []
    names = list(dict.fromkeys(str(name) for row in rows for name in row)) or ["id"]
    cells = [
        [json.dumps(v) if isinstance(v := row.get(name), dict | list) else v for name in names]
        for row in rows
    ]
    if layout == "csv":
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerows([names, *cells])
        return text.getvalue().encode(errors="surrogatepass")
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    written = []
    for column in zip(*cells, strict=True):
        written.append(
            [None if v is None else str(v).encode(errors="surrogatepass") for v in column]
        )
    columns = [
        arrow.array([v and v.replace(b"x", b"\xff") for v in column], arrow.binary())
        for column in written
    ]
    out = arrow.BufferOutputStream()
    views = [column.view(arrow.string()) for column in columns]
    texts = views or [arrow.array([], arrow.string()) for _ in names]
    names = [name.encode(errors="replace").decode() for name in names]
    arrays = arrow.Table.from_arrays(texts, names=names)
    parquet.write_table(arrays, out)
    return out.getvalue().to_pybytes()


def written(records, layout):
    """Return the bytes of records in a layout: lines, JSON, CSV or Parquet."""
    if layout in ("csv", "parquet"):
        return _table(records, layout)
    if layout == "lines" and isinstance(records, list):
        text = "".join(json.dumps(record) + "\n" for record in records)
    else:
        text = json.dumps(records, indent=1 if layout == "indented" else None)
    for mark, raw in RAW.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode()


def write(path, content):
    """Write a file of a folder that may not be there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def unpacked(content):
    """Unpack bytes; those that are not packed are returned as they are."""
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    return content


def formed(content, form, other):
    """Return content in another form: packed, in another encoding, with other line ends."""
    if form == "gzip":
        return gzip.compress(content, mtime=0)
    if form == "utf-16":
        return content.decode(errors="replace").encode("utf-16", "surrogatepass")
    if form == "bom":
        return b"\xef\xbb\xbf" + content
    if form == "crlf":
        return content.replace(b"\n", b"\r\n")
    if form == "behind":
        return other + b"\n" + content
    return content
