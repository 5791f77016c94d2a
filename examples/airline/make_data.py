"""Write results.json.

Recorded runs of an imaginary airline's service agent, in tau-bench's result form.

Everything is invented. Thirteen tasks, four trials each, with the failures one meets in practice: a
wrong date deep in the arguments, a forgotten call, a look-up where nothing is expected, undecodable
arguments, a conversation cut off at the step limit, a run that ended in an error. The output is the
same on every machine::

    python make_data.py [results.json]
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Step = tuple[str, Any]
POLICY = """You serve passengers of Marlin Airways. Today is 3 March 2031.
Look a passenger up before you change anything, repeat the change in your own words and wait for a yes.
Saver fares are neither refunded nor moved. Standard fares may be moved once; Flex fares may be moved or cancelled.
Vouchers are given for delays of more than three hours, never for other wishes. Two bags at most per passenger.
Hand over to a colleague only what your tools cannot do."""

WRITES = {"book_trip", "move_trip", "cancel_trip", "add_bags", "choose_seats", "issue_voucher"}
PASSENGERS = {
    "p-ilse": {"name": "Ilse Brandt", "tier": "blue", "cards": ["card-204"], "trips": ["MR7K2"]},
    "p-tomas": {
        "name": "Tomas Okafor",
        "tier": "silver",
        "cards": ["card-311", "credit-90"],
        "trips": ["QD4T8", "LB9X1"],
    },
    "p-noor": {"name": "Noor Haddad", "tier": "gold", "cards": ["card-118"], "trips": ["ZP3W6"]},
    "p-yuki": {
        "name": "Yuki Lindqvist",
        "tier": "blue",
        "cards": ["card-552", "voucher-17"],
        "trips": ["HC5N0"],
    },
}
TRIPS = {
    "MR7K2": {
        "route": "OSL-LIS",
        "flight": "MW210",
        "date": "2031-03-14",
        "fare": "standard",
        "paid": 268,
    },
    "QD4T8": {
        "route": "HAM-ATH",
        "flight": "MW418",
        "date": "2031-03-20",
        "fare": "flex",
        "paid": 412,
    },
    "LB9X1": {
        "route": "ATH-HAM",
        "flight": "MW419",
        "date": "2031-03-27",
        "fare": "flex",
        "paid": 398,
    },
    "ZP3W6": {
        "route": "DUB-VIE",
        "flight": "MW077",
        "date": "2031-03-09",
        "fare": "saver",
        "paid": 95,
    },
    "HC5N0": {
        "route": "ARN-NAP",
        "flight": "MW602",
        "date": "2031-04-02",
        "fare": "standard",
        "paid": 1240,
    },
}


def say(text: str) -> Step:
    """The agent speaks."""
    return ("say", text)


def user(text: str) -> Step:
    """The passenger speaks."""
    return ("user", text)


def call(name: str, **arguments: Any) -> Step:
    """The agent calls a tool."""
    return ("call", (name, arguments))


def raw_call(name: str, text: str) -> Step:
    """The agent calls a tool with argument text that is not JSON."""
    return ("call", (name, text))


def look_up(passenger: str) -> Step:
    """The agent looks a passenger up."""
    return call("look_up_passenger", passenger_id=passenger)


def answer(name: str, arguments: Any) -> str:
    """Return what the airline's system says to a call."""
    if not isinstance(arguments, dict):
        return "Error: the arguments are not valid JSON"
    if name == "look_up_passenger":
        return json.dumps(PASSENGERS[arguments["passenger_id"]])
    if name == "look_up_trip":
        return json.dumps(TRIPS[arguments["trip"]])
    if name == "find_flights":
        return json.dumps(
            [
                {"flight": "MW333", "departs": "09:40", "seats": 6},
                {"flight": "MW335", "departs": "17:15", "seats": 2},
            ]
        )
    if name == "hand_over":
        return "handed over"
    return json.dumps(
        {"done": name, "for": arguments.get("trip", arguments.get("passenger_id", ""))}
    )


def booking(
    *, date: str = "2031-03-18", back: str = "2031-03-25", bags: int = 1, seat: str = "aisle"
) -> Step:
    """A booking with nested arguments: two legs, two travellers, two ways of paying."""
    return call(
        "book_trip",
        passenger_id="p-yuki",
        legs=[{"flight": "MW333", "date": date}, {"flight": "MW336", "date": back}],
        travellers=[
            {"name": "Yuki Lindqvist", "seat": seat},
            {"name": "Aino Lindqvist", "seat": "window"},
        ],
        payments=[{"from": "voucher-17", "amount": 80}, {"from": "card-552", "amount": 344}],
        bags=bags,
    )


def move(trip: str, date: str) -> Step:
    """The agent moves a trip to another date."""
    return call("move_trip", trip=trip, date=date, keep_seats=True)


BOOKED = say("Both flights are booked. Have a good journey!")
MOVED = say("Done, your trip has been moved.")
DECLINED = say("I am sorry, a Saver fare can be neither refunded nor moved.")
LOOP = [
    step
    for _ in range(10)
    for step in (call("find_flights", route="DUB-VIE", date="2031-03-12"), user("Any others?"))
]
LEFT = (("QD4T8", "2031-03-22"), ("LB9X1", "2031-03-29"))
SEATS = ["14C", "14D", "15A"]

TASKS: list[dict[str, Any]] = [
    {
        "user": "p-yuki",
        "wish": "Book Stockholm to Naples on 18 March and back on 25 March, for yourself (aisle) "
        "and Aino (window)."
        " One bag. Use the voucher first.",
        "expected": [booking()],
        "trials": [
            [look_up("p-yuki"), booking(), BOOKED],
            [look_up("p-yuki"), booking(back="2031-03-26"), BOOKED],
            [look_up("p-yuki"), booking(bags=2, seat="window"), BOOKED],
            [
                look_up("p-yuki"),
                call("find_flights", route="ARN-NAP", date="2031-03-18"),
                booking(),
                BOOKED,
            ],
        ],
    },
    {
        "user": "p-ilse",
        "wish": "Move your trip MR7K2 to 16 March.",
        "expected": [move("MR7K2", "2031-03-16")],
        "trials": [
            [look_up("p-ilse"), move("MR7K2", "2031-03-16"), MOVED],
            [look_up("p-ilse"), move("MR7K2", "2031-03-17"), MOVED],
            [move("MR7K2", "2031-03-16"), MOVED],
            [look_up("p-ilse"), move("MR7K2", "2031-03-16"), MOVED],
        ],
    },
    {
        "user": "p-tomas",
        "wish": "Cancel the Flex trip QD4T8 because the meeting was called off.",
        "expected": [
            call("cancel_trip", trip="QD4T8", reason="plans changed", refund_to="card-311")
        ],
        "trials": [
            [
                look_up("p-tomas"),
                call("cancel_trip", trip="QD4T8", reason="plans changed", refund_to="card-311"),
            ]
        ]
        * 4,
    },
    {
        "user": "p-noor",
        "wish": "Ask for a refund of the Saver trip ZP3W6; accept a no.",
        "expected": [],
        "trials": [
            [DECLINED],
            [look_up("p-noor"), call("look_up_trip", trip="ZP3W6"), DECLINED],
            [
                look_up("p-noor"),
                call("issue_voucher", passenger_id="p-noor", amount=95),
                say("Here is a voucher instead."),
            ],
            [look_up("p-noor"), DECLINED],
        ],
    },
    {
        "user": "p-tomas",
        "wish": "Move both trips two days later: QD4T8 to 22 March and LB9X1 to 29 March.",
        "expected": [move(*LEFT[0]), move(*LEFT[1])],
        "trials": [
            [look_up("p-tomas"), move(*LEFT[0]), MOVED],
            [look_up("p-tomas"), move(*LEFT[0]), move(*LEFT[1]), MOVED],
            [look_up("p-tomas"), move(*LEFT[1]), move(*LEFT[0]), MOVED],
            [
                look_up("p-tomas"),
                call("hand_over", summary="two trips to be moved"),
                say("A colleague will call you."),
            ],
        ],
    },
    {
        "user": "p-yuki",
        "wish": "How much did trip HC5N0 cost in all?",
        "expected": [call("look_up_trip", trip="HC5N0")],
        "outputs": ["1240"],
        "trials": [
            [look_up("p-yuki"), call("look_up_trip", trip="HC5N0"), say("You paid 1,240 crowns.")],
            [look_up("p-yuki"), call("look_up_trip", trip="HC5N0"), say("It was a Standard fare.")],
            [look_up("p-yuki"), say("You paid 1240 crowns.")],
            [call("look_up_trip", trip="HC5N0"), say("It was 1,240 crowns.")],
        ],
    },
    {
        "user": "p-noor",
        "wish": "Find a flight from Dublin to Vienna on 12 March and book seat 3A; ask for others "
        "again and again.",
        "expected": [call("choose_seats", trip="ZP3W6", seats=["3A"])],
        "trials": [
            [look_up("p-noor"), call("choose_seats", trip="ZP3W6", seats=["3A"])],
            [look_up("p-noor"), *LOOP],
            [look_up("p-noor"), call("choose_seats", trip="ZP3W6", seats=["3B"])],
            [look_up("p-noor"), call("choose_seats", trip="ZP3W6", seats=["3A"])],
        ],
    },
    {
        "user": "p-ilse",
        "wish": "Add two bags to trip MR7K2.",
        "expected": [call("add_bags", trip="MR7K2", bags=2, pay_with="card-204")],
        "trials": [
            [look_up("p-ilse"), call("add_bags", trip="MR7K2", bags=2, pay_with="card-204")],
            [look_up("p-ilse"), call("add_bags", trip="MR7K2", bags="2", pay_with="card-204")],
            "RateLimitError: too many requests, retry later",
            [look_up("p-ilse"), call("add_bags", trip="MR7K2", bags=2)],
        ],
    },
    {
        "user": "p-tomas",
        "wish": "Reserve seats 14C, 14D and 15A on trip QD4T8, in this order.",
        "expected": [call("choose_seats", trip="QD4T8", seats=SEATS)],
        "trials": [
            [look_up("p-tomas"), call("choose_seats", trip="QD4T8", seats=SEATS)],
            [look_up("p-tomas"), call("choose_seats", trip="QD4T8", seats=SEATS[::-1])],
            [look_up("p-tomas"), call("choose_seats", trip="QD4T8", seats=["14C", "14D", "15B"])],
            [look_up("p-tomas"), call("choose_seats", trip="QD4T8", seats=SEATS)],
        ],
    },
    {
        "user": "p-ilse",
        "wish": "Your plans changed: move MR7K2 to 21 March rather than cancel it.",
        "expected": [move("MR7K2", "2031-03-21")],
        "trials": [
            [
                look_up("p-ilse"),
                call("cancel_trip", trip="MR7K2", reason="plans changed", refund_to="card-204"),
            ],
            [look_up("p-ilse"), move("MR7K2", "2031-03-21"), MOVED],
            [
                look_up("p-ilse"),
                call("cancel_trip", trip="MR7K2", reason="plans changed", refund_to="card-204"),
            ],
            [look_up("p-ilse"), move("MR7K2", "2031-03-21"), MOVED],
        ],
    },
    {
        "user": "p-yuki",
        "wish": "Add one bag to HC5N0, paid by card-552.",
        "expected": [call("add_bags", trip="HC5N0", bags=1, pay_with="card-552")],
        "trials": [
            [look_up("p-yuki"), call("add_bags", trip="HC5N0", bags=1, pay_with="card-552")],
            [
                look_up("p-yuki"),
                raw_call("add_bags", '{"trip": "HC5N0", "bags": 1, "pay'),
                say("The bag could not be added."),
            ],
            [look_up("p-yuki"), call("add_bags", trip="HC5N0", bags=1, pay_with="card-552")],
            [look_up("p-yuki"), call("add_bags", trip="HC5N0", bags=1, pay_with="voucher-17")],
        ],
    },
    {
        "user": "p-noor",
        "wish": "You want to bring a cello on board; insist on a decision.",
        "expected": [call("hand_over", summary="cello in the cabin")],
        "trials": [
            [look_up("p-noor"), call("hand_over", summary="cello in the cabin")],
            [
                look_up("p-noor"),
                call("hand_over", summary="The passenger asks for a cello in the cabin."),
            ],
            [call("hand_over", summary="cello in the cabin")],
            [look_up("p-noor"), say("That is possible, just bring it along.")],
        ],
    },
    {
        "user": "p-tomas",
        "wish": "Your flight LB9X1 is five hours late: ask for a voucher of 100, seat 2F and one "
        "bag, in any order.",
        "expected": [
            look_up("p-tomas"),
            call("issue_voucher", passenger_id="p-tomas", amount=100),
            call("choose_seats", trip="LB9X1", seats=["2F"]),
            call("add_bags", trip="LB9X1", bags=1, pay_with="card-311"),
        ],
        "trials": [
            [
                look_up("p-tomas"),
                call("choose_seats", trip="LB9X1", seats=["2F"]),
                call("add_bags", trip="LB9X1", bags=1, pay_with="card-311"),
                call("issue_voucher", passenger_id="p-tomas", amount=100),
            ],
            [look_up("p-tomas"), call("issue_voucher", passenger_id="p-tomas", amount=150)],
            [look_up("p-tomas"), call("choose_seats", trip="LB9X1", seats=["2F"])],
            [
                look_up("p-tomas"),
                call("issue_voucher", passenger_id="p-tomas", amount=100),
                call("choose_seats", trip="LB9X1", seats=["2F"]),
                call("add_bags", trip="LB9X1", bags=1, pay_with="credit-90"),
            ],
        ],
    },
]


def action(step: Step) -> dict[str, Any]:
    """Return an expected call in the benchmark's form."""
    name, arguments = step[1]
    return {"name": name, "kwargs": arguments}


def changes(steps: Iterable[Step]) -> list[str]:
    """Return what the calls change, whatever their order; look-ups change nothing."""
    calls = [step[1] for step in steps if step[0] == "call"]
    return sorted(
        json.dumps([name, given], sort_keys=True)
        for name, given in calls
        if name in WRITES and isinstance(given, dict)
    )


def conversation(task: dict[str, Any], steps: list[Step], mark: str) -> list[dict[str, Any]]:
    """Return the messages of one trial."""
    first = task["wish"].split(":")[0].removesuffix(".")
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": POLICY},
        {
            "role": "user",
            "content": f"Hello, I am {PASSENGERS[task['user']]['name']} ({task['user']}). "
            f"{first}, please.",
        },
    ]
    for number, (kind, what) in enumerate(steps):
        if kind == "user":
            messages.append({"role": "user", "content": what})
        elif kind == "say":
            messages += [
                {"role": "assistant", "content": what},
                {"role": "user", "content": "Thank you. ###STOP###"},
            ]
        else:
            name, given = what
            text = json.dumps(given) if isinstance(given, dict) else given
            identifier = f"call_{mark}_{number}"
            function = {"name": name, "arguments": text}
            tool_call = {"id": identifier, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [tool_call]})
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": identifier,
                    "name": name,
                    "content": answer(name, given),
                }
            )
    return messages


def judged(task: dict[str, Any], steps: list[Step]) -> tuple[float, dict[str, Any]]:
    """Return the reward and its details.

    The changes must be the expected ones, the outputs must have been said.
    """
    reached = changes(steps) == changes(task["expected"])
    told = " ".join(what for kind, what in steps if kind == "say").replace(",", "").lower()
    outputs = {text: text.lower() in told for text in task.get("outputs", [])}
    reward = float(reached and all(outputs.values()))
    digest = hashlib.sha256("".join(changes(task["expected"])).encode()).hexdigest()
    details: dict[str, Any] = {"r_actions": float(reached), "gt_data_hash": digest}
    if outputs:
        details = {"r_outputs": float(all(outputs.values())), "outputs": outputs}
    return reward, details


def record(number: int, trial: int) -> dict[str, Any]:
    """Return one record of the result file."""
    task = TASKS[number]
    steps = task["trials"][trial]
    if isinstance(steps, str):
        frames = '  File "run.py", line 71, in solve\n    reply = model(messages)\n'
        trace = f"Traceback (most recent call last):\n{frames}{steps}\n"
        return {
            "task_id": number,
            "reward": 0.0,
            "info": {"error": steps, "traceback": trace},
            "traj": [],
            "trial": trial,
        }
    traj = conversation(task, steps, f"{number}_{trial}")
    actions = [action(step) for step in task["expected"]]
    told = {
        "user_id": task["user"],
        "actions": actions,
        "instruction": task["wish"],
        "outputs": task.get("outputs", []),
    }
    reward, details = judged(task, steps)
    unfinished = len(traj) > 20
    reward_info = {"reward": reward, "info": details, "actions": actions}
    info = {
        "task": told,
        "source": steps[-1][1][0] if steps[-1][0] == "call" else "user",
        "user_cost": None if unfinished else round(0.00004 * len(traj), 6),
        "reward_info": None if unfinished else reward_info,
    }
    return {
        "task_id": number,
        "reward": 0.0 if unfinished else reward,
        "info": info,
        "traj": traj,
        "trial": trial,
    }


def main(target: Path) -> None:
    """Write the records, trial by trial."""
    records = [record(number, trial) for trial in range(4) for number in range(len(TASKS))]
    target.write_text(json.dumps(records, indent=2), encoding="ascii")
    print(f"{target}: {len(records)} records")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("results.json"))
