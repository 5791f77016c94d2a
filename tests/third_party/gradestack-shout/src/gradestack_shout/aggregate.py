"""The aggregator."""

from collections.abc import Mapping

import attrs

from gradestack import JSON, Aggregator, Figure, Grade, Grades, Numbers, ratio


@attrs.frozen(kw_only=True)
class Loudest(Aggregator):
    """The share of samples that are all capitals, and the first sample with the highest score."""

    figures = (
        Figure("all_capitals", "All capitals", about="samples with score 1 / graded samples"),
    )

    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        capitals = int(grade.score == 1)
        return {"graded": 1, "capitals": capitals}

    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        """Return the figure of sums over tasks; its interval is made of it."""
        graded = totals["graded"]
        capitals = totals["capitals"]
        return {"all_capitals": ratio(capitals, graded)}

    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        """Return figures that sums do not give: the id and the score of the loudest sample."""
        scored = []
        for key, grade in grades:
            if grade.score is not None:
                scored.append((grade.score, key.id))
        score, name = max(scored, key=lambda pair: pair[0], default=(None, None))
        return {"id": name, "score": score}
