"""Seeded recordings in gradestack's own ``jsonl`` form, for benchmarks.

    python benchmarks/workload.py --records 200000 --seed 7 recording.jsonl

A record is one run of a task: about 1.5 KB, three tools in OpenAI's form out of a pool of several
hundred, one to three expected calls with their arguments as objects, and the calls made with their
arguments as JSON text. About 65 % of the runs are right; the others are wrong in one of the ways of
``WRONG``. ``--wrong 80`` gives the recording of a weak model: 80 % are wrong, in the same ways and
proportions.

All runs of a task share its request, its expected calls (of different tools) and these tools. The
other tools, and the order of all three, are drawn for every record anew: nothing is gained by
remembering whole lists of tools, while each single tool comes back often, as in a recording of a
real tool set.

The first n records of a longer recording are the recording of n records, with the same seed and
number of tasks.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

TASKS = 2_000
POOL = 400
TOOLS = 3
SEED = 7
MODELS = ("model-a", "model-b")
WRONG = {
    "wrong_tool": 6,
    "missing_argument": 5,
    "extra_argument": 4,
    "wrong_type": 4,
    "wrong_value": 6,
    "extra_call": 3,
    "missing_call": 5,
    "broken_arguments": 2,
}
"""Ways of being wrong, in percent of all records; the other 65 % are right."""
USUALLY_WRONG = sum(WRONG.values())
RIGHT = "right"

Schema = dict[str, Any]
Call = tuple[str, dict[str, Any]]

_LEXICON = {
    "verbs": "find book cancel update list compare reserve create archive share price track "
    "refund rate export assign "
    "merge verify schedule notify",
    "nouns": "flight hotel ferry invoice ticket parcel recipe garden concert museum lesson report "
    "contact meeting "
    "playlist route rental account order permit survey deposit journal workshop gallery",
    "places": "Bergen Lisboa Kraków Osaka Quito Tartu Ghent Hobart Oulu Malmö Turin Split",
    "words": "blue early quiet window north spare winter second family open short round",
}
_VERBS, _NOUNS, _PLACES, _WORDS = (tuple(words.split()) for words in _LEXICON.values())
_DOMAINS = ("travel", "retail", "office", "home", "culture")
_TEXTS = {
    "city": "City, in its local spelling",
    "title": "Title as shown to the customer",
    "comment": "Free text kept with the entry",
    "reference": "Number printed on the confirmation",
    "contact_name": "Full name of the person to ask",
}
_ENUMS = {
    "currency": ("EUR", "NOK", "JPY", "USD"),
    "priority": ("low", "normal", "high"),
    "channel": ("mail", "phone", "letter", "desk"),
    "sort_by": ("price", "date", "rating"),
}
_COUNTS = {"quantity": "How many are wanted", "days": "Length in days", "page": "Page, from 1"}
_NUMBERS = {"budget": "Upper limit", "distance_km": "Largest distance"}
_FLAGS = {"refundable": "Whether it can be returned", "dry_run": "Only tell what would be done"}
_LISTS = {"tags": "Labels to attach", "participants": "Names of all who take part"}
_OBJECTS = {"address": "Where it is delivered", "period": "When it starts and ends"}


# --------------------------------------------------------------------------------------------------


def _property(rng: random.Random) -> tuple[str, Schema]:
    """Return the name and the JSON Schema of one parameter."""
    kind = rng.choices(
        ("text", "enum", "count", "number", "flag", "list", "object"), (30, 20, 18, 10, 10, 7, 5)
    )[0]
    if kind == "text":
        name = rng.choice(list(_TEXTS))
        return name, {"type": "string", "description": _TEXTS[name]}
    if kind == "enum":
        name = rng.choice(list(_ENUMS))
        return name, {
            "type": "string",
            "enum": list(_ENUMS[name]),
            "description": f"The {name.replace('_', ' ')}",
        }
    if kind == "count":
        name = rng.choice(list(_COUNTS))
        return name, {"type": "integer", "minimum": 1, "description": _COUNTS[name]}
    if kind == "number":
        name = rng.choice(list(_NUMBERS))
        return name, {"type": "number", "description": _NUMBERS[name]}
    if kind == "flag":
        name = rng.choice(list(_FLAGS))
        return name, {"type": "boolean", "description": _FLAGS[name]}
    if kind == "list":
        name = rng.choice(list(_LISTS))
        return name, {"type": "array", "items": {"type": "string"}, "description": _LISTS[name]}
    name = rng.choice(list(_OBJECTS))
    inner = {"street": {"type": "string"}, "number": {"type": "integer"}}
    if name == "period":
        inner = {"start": {"type": "string"}, "end": {"type": "string"}}
    return name, {
        "type": "object",
        "properties": inner,
        "required": list(inner),
        "description": _OBJECTS[name],
    }


def _tool(verb: str, noun: str, rng: random.Random) -> Schema:
    """Return a tool in OpenAI's form, with one to four parameters of which at least one is
    required.
    """
    properties: dict[str, Schema] = {}
    wanted = rng.choices((1, 2, 3, 4), (30, 45, 20, 5))[0]
    while len(properties) < wanted:
        name, schema = _property(rng)
        properties.setdefault(name, schema)
    required = [name for name in properties if rng.random() < 0.6] or [next(iter(properties))]
    parameters: Schema = {"type": "object", "properties": properties, "required": required}
    about = f"{verb.capitalize()} a {noun}; {rng.choice(_WORDS)} ones come first"
    return {
        "type": "function",
        "function": {"name": f"{verb}_{noun}", "description": about, "parameters": parameters},
    }


def tool_pool(seed: int, size: int = POOL) -> list[Schema]:
    """Return the pool's tools; all names differ."""
    rng = random.Random(f"{seed} tools")
    names = [(verb, noun) for verb in _VERBS for noun in _NOUNS]
    return [_tool(verb, noun, rng) for verb, noun in rng.sample(names, size)]


def _value(schema: Schema, rng: random.Random) -> Any:
    """Return a value that obeys a parameter's schema."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    match schema["type"]:
        case "string":
            return f"{rng.choice(_WORDS)} {rng.choice(_PLACES)} {rng.randrange(100, 999)}"
        case "integer":
            return rng.randrange(1, 60)
        case "number":
            return round(rng.uniform(1, 900), 2)
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return rng.sample(_WORDS, rng.randrange(1, 4))
        case _:
            return {name: _value(inner, rng) for name, inner in schema["properties"].items()}


# --------------------------------------------------------------------------------------------------


class Task:
    """What all runs of a task share."""

    def __init__(self, number: int, seed: int, pool: Sequence[Schema]) -> None:
        rng = random.Random(f"{seed} task {number}")
        count = rng.choices((1, 2, 3), (72, 20, 8))[0]
        self.tools = rng.sample(range(len(pool)), count)
        """Indices of the tools its calls need."""
        self.calls = [_call(pool[at], rng) for at in self.tools]
        wishes = " and then ".join(name.replace("_", " ") for name, _ in self.calls)
        request = (
            f"Please {wishes} near {rng.choice(_PLACES)}, the {rng.choice(_WORDS)} one, for "
            f"{rng.randrange(2, 9)}."
        )
        expected = [{"name": name, "arguments": arguments} for name, arguments in self.calls]
        facets = {"domain": rng.choice(_DOMAINS), "calls": count}
        identifier = _dumps(f"task-{number:06d}")
        self.head = f'{{"id":{identifier},"input":{_dumps(request)},"facets":{_dumps(facets)},'
        self.expected = f'"expected":{{"calls":{_dumps(expected)}}},'
        self.texts = [
            (name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in self.calls
        ]
        """The calls as a model writes them: the arguments are text."""


def _call(tool: Schema, rng: random.Random) -> Call:
    """Return a call with every required argument and half of the others."""
    function = tool["function"]
    parameters = function["parameters"]
    arguments = {
        name: _value(schema, rng)
        for name, schema in parameters["properties"].items()
        if name in parameters["required"] or rng.random() < 0.5
    }
    return function["name"], arguments


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --------------------------------------------------------------------------------------------------


def _other_value(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return [*value[:-1], "other"]
    if isinstance(value, dict):
        return {name: _other_value(inner) for name, inner in value.items()}
    return f"{value}s"


def _other_type(value: Any) -> Any:
    """Return the value as a model gets it wrong: quoted, or a number where text is due."""
    if isinstance(value, str):
        return len(value)
    return json.dumps(value)


def _spoil(
    kind: str, calls: list[Call], tools: Sequence[Schema], rng: random.Random
) -> list[tuple[str, str]]:
    """Return the calls of a task made wrong in one way, with their arguments as text."""
    place = rng.randrange(len(calls))
    name, arguments = calls[place][0], dict(calls[place][1])
    made = [(each, json.dumps(given, ensure_ascii=False)) for each, given in calls]
    argument = rng.choice(list(arguments))
    match kind:
        case "missing_call":
            del made[place]
            return made
        case "extra_call":
            made.append((tools[0]["function"]["name"], '{"note": "to be sure"}'))
            return made
        case "broken_arguments":
            made[place] = (name, made[place][1][:-1])
            return made
        case "wrong_tool":
            name = rng.choice(
                [n for each in tools if (n := each["function"]["name"]) != name] + ["do_it"]
            )
        case "missing_argument":
            del arguments[argument]
        case "extra_argument":
            arguments["language"] = "en"
        case "wrong_type":
            arguments[argument] = _other_type(arguments[argument])
        case _:
            arguments[argument] = _other_value(arguments[argument])
    made[place] = (name, json.dumps(arguments, ensure_ascii=False))
    return made


def _predicted(number: int, made: Sequence[tuple[str, str]]) -> str:
    calls = ",".join(
        f'{{"id":"call_{number:07d}{place}","type":"function",'
        f'"function":{{"name":{_dumps(name)},"arguments":{_dumps(arguments)}}}}}'
        for place, (name, arguments) in enumerate(made)
    )
    answer = "Done, it is all arranged." if made else "I am afraid that is nothing I can do."
    return f'"predicted":{{"calls":[{calls}],"text":"{answer}"}}}}\n'


def records(
    number: int,
    seed: int = SEED,
    *,
    tasks: int = TASKS,
    leave_out: Sequence[str] = (),
    wrong: int = USUALLY_WRONG,
) -> Iterator[tuple[str, str]]:
    """Yield (line, kind) of each record; kind is "right" or a key of ``WRONG``.

    Args:
        number: How many.
        seed: Decides everything else.
        tasks: Number of tasks whose runs the records are; 0 makes every record a task of its own.
        leave_out: Keys of ``WRONG``; records of these kinds are right instead.
        wrong: Percent of the records that are wrong.
    """
    pool = tool_pool(seed)
    texts = [_dumps(tool) for tool in pool]
    rng = random.Random(f"{seed} runs")
    kinds = [RIGHT, *WRONG]
    weights = [100 - wrong, *(share * wrong / USUALLY_WRONG for share in WRONG.values())]
    made: list[Task] = []
    for at in range(number):
        if tasks and at >= tasks:
            task = made[at % tasks]
        else:
            task = Task(at, seed, pool)
            if tasks:
                made.append(task)
        run = at // tasks if tasks else 0
        others = [
            each for each in rng.sample(range(len(pool)), TOOLS + 1) if each not in task.tools
        ]
        tools = [*task.tools, *others[: TOOLS - len(task.tools)]]
        rng.shuffle(tools)
        kind = rng.choices(kinds, weights)[0]
        kind = RIGHT if kind in leave_out else kind
        calls = (
            task.texts
            if kind == RIGHT
            else _spoil(kind, task.calls, [pool[each] for each in tools], rng)
        )
        whose = f'"model":"{MODELS[run % 2]}","run":{run // 2},"tools":[{",".join(texts[each] for each in tools)}],'
        yield task.head + whose + task.expected + _predicted(at, calls), kind


def write(path: Path, number: int, seed: int = SEED, **options: Any) -> dict[str, int]:
    """Write a recording, with the options of ``records``, and return how many records of each kind
    it has.
    """
    kinds = dict.fromkeys((RIGHT, *WRONG), 0)
    with path.open("w", encoding="utf-8", newline="\n", buffering=1 << 20) as file:
        for line, kind in records(number, seed, **options):
            file.write(line)
            kinds[kind] += 1
    return kinds


def write_trials(path: Path, number: int) -> None:
    """Write a tau-bench file of so many tasks with one trial each, every third of them solved."""
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for task in range(number):
            call = {"name": "book", "kwargs": {"seat": task % 7, "bags": [task % 3]}}
            made = _dumps({"seat": task % 5, "bags": [task % 3]})
            talk = [
                {"role": "user", "content": f"Seat {task % 7}, please."},
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c", "function": {"name": "book", "arguments": made}}],
                },
                {"role": "tool", "tool_call_id": "c", "name": "book", "content": "booked"},
            ]
            judged = {"reward_info": {"info": {"r_actions": task % 3 == 0}, "actions": [call]}}
            info = {
                "task": {"user_id": "u", "actions": [call], "instruction": "Book a seat."},
                **judged,
            }
            trial = {
                "task_id": task,
                "trial": 0,
                "reward": float(task % 3 == 0),
                "info": info,
                "traj": talk,
            }
            file.write(f"{',' if task else ''}\n{_dumps(trial)}")
        file.write("\n]\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("path", type=Path, metavar="OUT.jsonl")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--tasks", type=int, default=TASKS, help="0: every record is a task of its own"
    )
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        choices=list(WRONG),
        help="kind of mistake to avoid",
    )
    parser.add_argument(
        "--wrong", type=int, default=USUALLY_WRONG, help="percent of the records that are wrong"
    )
    chosen = parser.parse_args()
    started = time.perf_counter()
    options = {"tasks": chosen.tasks, "leave_out": chosen.leave_out, "wrong": chosen.wrong}
    kinds = write(chosen.path, chosen.records, chosen.seed, **options)
    size = chosen.path.stat().st_size
    print(f"{chosen.records} records, {size / 1e6:.1f} MB, {time.perf_counter() - started:.1f} s")
    for kind, count in kinds.items():
        print(f"  {kind:18}{count:9}  {count / max(1, chosen.records):6.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
