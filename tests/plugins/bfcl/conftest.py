"""Builders of a small BFCL tree."""

import json
from types import SimpleNamespace

import pytest

from tests.core.outcomes import data

DATA = data(__file__, "conftest.yaml")


FIND = DATA["find"]


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def bfcl(tmp_path):
    root = tmp_path / "board"

    def write(relative, *records):
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines(*records), encoding="utf-8")
        return path

    def questions(*records, category="parallel"):
        return write(f"BFCL_v4_{category}.json", *records)

    def answers(*records, category="parallel"):
        return write(f"possible_answer/BFCL_v4_{category}.json", *records)

    def results(*records, category="parallel", model="rail-1-FC"):
        return write(f"result/{model}/non_live/BFCL_v4_{category}_result.json", *records)

    def scores(*records, category="parallel", model="rail-1-FC"):
        return write(f"score/{model}/non_live/BFCL_v4_{category}_score.json", *records)

    def question(identifier="parallel_0", *questions, function=(FIND,), **more):
        texts = questions or ("Trains?",)
        turns = [[{"role": "user", "content": text}] for text in texts]
        return {"id": identifier, "question": turns, "function": list(function), **more}

    def result(output, identifier="parallel_0", **more):
        return {
            "id": identifier,
            "result": output,
            "input_token_count": 7,
            "output_token_count": 3,
            "latency": 0.5,
            **more,
        }

    def answer(truth, identifier="parallel_0"):
        return {"id": identifier, "ground_truth": truth}

    def header(correct, total):
        accuracy = correct / total
        return {"accuracy": accuracy, "correct_count": correct, "total_count": total}

    return SimpleNamespace(
        root=root,
        write=write,
        questions=questions,
        answers=answers,
        results=results,
        scores=scores,
        question=question,
        result=result,
        answer=answer,
        header=header,
    )
