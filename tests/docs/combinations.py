"""The tables of docs/combinations.md, made of what readers and graders declare when the site is
built.
"""

FIELDS = [
    "calls",
    "tools",
    "turns",
    "text",
    "label",
    "plan",
    "expected",
    "recorded",
    "state",
    "usage",
    "model",
    "run",
]
"""Of a sample, those that graders are about."""
ALWAYS = {"id", "status", "error", "native"}
"""What is always there, and what a family keeps for its own grader."""


def _table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _named(fields):
    return ", ".join(f"`{field}`" for field in sorted(fields))


def classes(registry, kind):
    return {name: registry.load(kind, name) for name in sorted(registry.names(kind))}


def reads(grader):
    """Return what a grader reads beside what it cannot do without.

    Of one that may read anything, nothing.
    """
    found = set(grader.needs) - grader.requires - ALWAYS
    return set() if len(found) > len(FIELDS) else found


def tables(registry):
    readers, graders = classes(registry, "reader"), classes(registry, "grader")
    provided = [
        [f"`{name}`", *("yes" if field in reader.provides else "" for field in FIELDS)]
        for name, reader in readers.items()
    ]
    needed = [
        [f"`{name}`", _named(grader.requires), _named(reads(grader))]
        for name, grader in graders.items()
    ]
    pairs = [
        [
            f"`{name}`",
            *(_named(grader.requires - reader.provides) or "yes" for reader in readers.values()),
        ]
        for name, grader in graders.items()
        if grader.requires
    ]
    return "\n".join(
        [
            "What each reader provides:\n",
            _table(["reader", *(f"`{field}`" for field in FIELDS)], provided),
            "What each grader cannot do without, and what it also reads where it is there:\n",
            _table(["grader", "needs", "also reads"], needed),
            (
                "Graders that need something, by reader: `yes`, or what is missing. All others take "
                "every reader.\n"
            ),
            _table(["grader", *(f"`{name}`" for name in readers)], pairs),
        ]
    )
