"""Accuracies as the leaderboard publishes them, from files of the same form."""

import gradestack

ENTRIES = 400
WRITTEN = {
    "xlam": '\n{{"tool_calls": [{{"name": "find.trains", "arguments": {{"to": "{}"}}}}]}}',
    "list": '[{{"name": "find.trains", "arguments": {{"to": "{}"}}}}]',
}
RIGHT = {"xlam": 379, "list": 327}


def test_results_that_are_raw_json_texts(bfcl, tmp_path):
    """379 of 400 are 94.75 %, 327 of 400 are 81.75 %."""
    names = [f"simple_python_{number}" for number in range(ENTRIES)]
    category = {"category": "simple_python"}
    bfcl.questions(*map(bfcl.question, names), **category)
    truth = [{"find.trains": {"to": ["X"]}}]
    bfcl.answers(*(bfcl.answer(truth, name) for name in names), **category)
    for model, form in WRITTEN.items():
        texts = ["X"] * RIGHT[model] + ["Y"] * (ENTRIES - RIGHT[model])
        pairs = zip(texts, names, strict=True)
        rows = (bfcl.result(form.format(to), name) for to, name in pairs)
        bfcl.results(*rows, model=model, **category)
    output = tmp_path / "out"
    paths = [bfcl.root]
    report = gradestack.grade_files(paths, output=output, overrides=["reports=[]"])
    metrics = report.summary["metrics"]
    means = metrics["aggregates"]["ast"]["mean"]["models"]
    means_by_model = {model: mean["mean"] for model, mean in means.items()}
    assert means_by_model == {
        "xlam": 0.9475,
        "list": 0.8175,
    }
