"""Write before.jsonl and after.jsonl: two versions of an imaginary booking agent on the same tasks.

Everything is invented. Forty tasks, three trials each; the later version makes fewer mistakes with
dates. The output is the same on every machine::

    python make_data.py
"""

import json
import random
from pathlib import Path

HERE = Path(__file__).parent
MISTAKES = {"before": 0.35, "after": 0.15}
"""Share of runs in which a version gets the date wrong."""
TASKS, TRIALS = 40, 3


def main() -> None:
    """Write both files."""
    draw = random.Random(7)
    for version, share in MISTAKES.items():
        lines = []
        for task in range(TASKS):
            room, date = task % 5, f"2031-05-{task % 28 + 1:02}"
            expected = {"name": "book", "arguments": {"room": room, "date": date}}
            for trial in range(TRIALS):
                made = "2031-06-01" if draw.random() < share else date
                call = {"name": "book", "arguments": {"room": room, "date": made}}
                record = {
                    "id": f"booking-{task:02}",
                    "run": trial,
                    "model": version,
                    "input": f"Book room {room} for {date}.",
                    "expected": [expected],
                    "predicted": [call],
                }
                lines.append(json.dumps(record) + "\n")
        (HERE / f"{version}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
