"""Names that are not there.

An import root that looks names up at run time must not let checkers believe in all.
"""

# pyright: basic, reportUnnecessaryTypeIgnoreComment=true

import gradestack
import gradestack.jsonio
from gradestack import grad  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from gradestack.testing import check_graders  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

gradestack.Sampel(id="a")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
gradestack.jsonio.exact_sum([])  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
