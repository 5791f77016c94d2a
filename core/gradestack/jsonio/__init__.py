"""JSON files of others: values as the standard library reads them, lines, lists and records without loading files."""

from gradestack.jsonio.depth import check_depth, decoded_at, standard_loads
from gradestack.jsonio.documents import SPREAD, Documents
from gradestack.jsonio.files import open_regular, read_regular
from gradestack.jsonio.lenient import as_count, as_list, as_map, as_number, as_text, is_number, same
from gradestack.jsonio.lines import SHARD_BYTES, Line, iter_lines, line_ranges, numbered_lines
from gradestack.jsonio.lists import Range, iter_list, list_ranges
from gradestack.jsonio.members import Member, iter_members
from gradestack.jsonio.paths import Query, path_exists, path_steps, path_value
from gradestack.jsonio.records import Layout, first_records, iter_records, record_ranges, whole_lines
from gradestack.jsonio.tolerant import Element
from gradestack.jsonio.values import JsonProblem, check_utf8, compact, dumps, loads

__all__ = [
    "SHARD_BYTES",
    "SPREAD",
    "Documents",
    "Element",
    "JsonProblem",
    "Layout",
    "Line",
    "Member",
    "Query",
    "Range",
    "as_count",
    "as_list",
    "as_map",
    "as_number",
    "as_text",
    "check_depth",
    "check_utf8",
    "compact",
    "decoded_at",
    "dumps",
    "first_records",
    "is_number",
    "iter_lines",
    "iter_list",
    "iter_members",
    "iter_records",
    "line_ranges",
    "list_ranges",
    "loads",
    "numbered_lines",
    "open_regular",
    "path_exists",
    "path_steps",
    "path_value",
    "read_regular",
    "record_ranges",
    "same",
    "standard_loads",
    "whole_lines",
]
