"""Write ``data.jsonl``: 200 answers of a help desk, one of them per line."""

import json
from pathlib import Path

LINES = []
for n in range(200):
    text = "Reset it under Settings." if n % 10 < 7 else "I do not know."
    LINES.append(
        json.dumps(
            {
                "id": f"call-{n}",
                "input": f"How do I reset password {n}?",
                "predicted": {"text": text},
            }
        )
    )
Path("data.jsonl").write_text("\n".join(LINES) + "\n", encoding="utf-8")
