"""Parts that readers share; formats, grader and stacks of data of one's own."""

from gradestack import Component, hookimpl

_TABLE = """
reader jsonl .jsonl:JsonLines gradestack's own JSON Lines form of samples
grader recorded .recorded:Recorded The recorded grade
command formats .formats:formats List the formats that are read, each with an example of a file's
    name.
stack auto .stacks:auto By the reference data: calls, texts, labels, a recorded verdict; without
    any, trajectory
stack exact_match .stacks:exact_match Answers equal to the expected text
stack classification .stacks:classification Labels, or names of tools: accuracy, F1 by class,
    confusion matrix
stack recorded .stacks:recorded The verdict that was recorded with each run, or every recorded score
stack trajectory .stacks:trajectory What needs no reference: how tool calls went, and what runs took
stack scores .stacks:scores Recorded scores where there are any; without, as auto
"""
_REMOTE = """
address http .fetch:open_address Files of web servers
address https .fetch:open_address Files of web servers
address s3 .fetch:open_address Files of buckets, by s3fs
address gs .fetch:open_address Files of buckets, by gcsfs
address az .fetch:open_address Files of buckets, by adlfs
"""
gradestack_components = hookimpl(
    lambda: (
        *Component.table(__name__, _TABLE),
        *Component.table("gradestack_plugins.remote", _REMOTE),
    )
)
