"""Files of others: JSON as the standard library reads it, lines, lists and records of any size.

Rows of CSV.
"""

from gradestack.jsonio.files import SHARD_BYTES as SHARD_BYTES
from gradestack.jsonio.files import line_blocks as line_blocks
from gradestack.jsonio.files import line_ranges as line_ranges
from gradestack.jsonio.files import open_lines as open_lines
from gradestack.jsonio.files import read_regular as read_regular
from gradestack.jsonio.files import whole_line as whole_line
from gradestack.jsonio.paths import Query as Query
from gradestack.jsonio.paths import path_exists as path_exists
from gradestack.jsonio.paths import path_steps as path_steps
from gradestack.jsonio.paths import path_value as path_value
from gradestack.jsonio.paths import pointer_to as pointer_to
from gradestack.jsonio.records import CsvProblem as CsvProblem
from gradestack.jsonio.records import Element as Element
from gradestack.jsonio.records import Head as Head
from gradestack.jsonio.records import Layout as Layout
from gradestack.jsonio.records import Member as Member
from gradestack.jsonio.records import Range as Range
from gradestack.jsonio.records import begins_list as begins_list
from gradestack.jsonio.records import csv_rows as csv_rows
from gradestack.jsonio.records import far_document as far_document
from gradestack.jsonio.records import first_records as first_records
from gradestack.jsonio.records import iter_list as iter_list
from gradestack.jsonio.records import iter_members as iter_members
from gradestack.jsonio.records import iter_records as iter_records
from gradestack.jsonio.records import line_problem as line_problem
from gradestack.jsonio.records import list_ranges as list_ranges
from gradestack.jsonio.records import record_ranges as record_ranges
from gradestack.jsonio.records import whole_lines as whole_lines
from gradestack.jsonio.values import JsonProblem as JsonProblem
from gradestack.jsonio.values import TooLong as TooLong
from gradestack.jsonio.values import as_amount as as_amount
from gradestack.jsonio.values import as_count as as_count
from gradestack.jsonio.values import as_list as as_list
from gradestack.jsonio.values import as_map as as_map
from gradestack.jsonio.values import as_number as as_number
from gradestack.jsonio.values import as_text as as_text
from gradestack.jsonio.values import check_depth as check_depth
from gradestack.jsonio.values import check_utf8 as check_utf8
from gradestack.jsonio.values import compact as compact
from gradestack.jsonio.values import dumps as dumps
from gradestack.jsonio.values import exceeds_limit as exceeds_limit
from gradestack.jsonio.values import is_beyond_json as is_beyond_json
from gradestack.jsonio.values import is_number as is_number
from gradestack.jsonio.values import loads as loads
from gradestack.jsonio.values import same as same
from gradestack.jsonio.values import standard_loads as standard_loads
from gradestack.regular_files import append_regular as append_regular
from gradestack.regular_files import open_regular as open_regular
from gradestack.regular_files import read_bounded as read_bounded
from gradestack.regular_files import read_text as read_text
