"""JSON files of others: values as the standard library reads them, lines and lists without loading the files."""

from gradestack.jsonio.lines import LINE_SHARD_BYTES, Line, iter_lines, line_ranges, numbered_lines
from gradestack.jsonio.lists import LIST_SHARD_BYTES, Range, iter_list, list_ranges
from gradestack.jsonio.tolerant import Element
from gradestack.jsonio.values import JsonProblem, compact, dumps, loads

__all__ = [
    "LINE_SHARD_BYTES",
    "LIST_SHARD_BYTES",
    "Element",
    "JsonProblem",
    "Line",
    "Range",
    "compact",
    "dumps",
    "iter_lines",
    "iter_list",
    "line_ranges",
    "list_ranges",
    "loads",
    "numbered_lines",
]
