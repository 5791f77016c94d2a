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


def _table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _named(fields):
    return ", ".join(f"`{field}`" for field in sorted(fields))


def classes(registry, kind):
    names = registry.names(kind)
    return {name: registry.load(kind, name) for name in sorted(names)}


def compared(grader):
    """Return the kinds of expectation that a grader compares with; nothing where it depends."""
    if isinstance(grader.compares, frozenset):
        return grader.compares
    return ()


def tables(registry):
    readers = classes(registry, "reader")
    graders = classes(registry, "grader")
    provided = [
        [f"`{name}`", *("yes" if field in reader.provides else "" for field in FIELDS)]
        for name, reader in readers.items()
    ]
    needed = []
    for name, grader in graders.items():
        needed.append([f"`{name}`", _named(grader.needs), _named(compared(grader))])
    pairs = [
        [
            f"`{name}`",
            *(_named(grader.needs - reader.provides) or "yes" for reader in readers.values()),
        ]
        for name, grader in graders.items()
        if grader.needs
    ]
    head = ["reader", *(f"`{field}`" for field in FIELDS)]
    table = _table(head, provided)
    return "\n".join(
        [
            "This table shows which fields each reader provides:\n",
            table,
            (
                "This table shows what each grader needs, and with which kinds of expectation it "
                "compares a run:\n"
            ),
            _table(["grader", "needs", "compares"], needed),
            (
                "This table shows which graders work with which readers: `yes`, or the missing "
                "fields.\n"
                "It leaves out graders that need no field, because they work with every reader.\n"
            ),
            _table(["grader", *(f"`{name}`" for name in readers)], pairs),
        ]
    )
