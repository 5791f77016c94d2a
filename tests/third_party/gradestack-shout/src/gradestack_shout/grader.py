"""The grader."""

import attrs

from gradestack import Grade, Grader, Sample, skipped


@attrs.frozen(kw_only=True)
class Shout(Grader):
    """Score = capitals / letters of the final answer, in [0, 1].

    Skipped when there is no letter.
    """

    version = "2"
    needs = frozenset({"text"})
    metrics = ("mean", "loudest")

    limit: float = 0.5
    """From this share on the answer passes."""

    def grade(self, sample: Sample) -> Grade:
        chars = sample.text or ""
        letters = [char for char in chars if char.isalpha()]
        if not letters:
            return skipped("no_letters", "the answer has no letters")
        capitals = sum(char.isupper() for char in letters)
        score = capitals / len(letters)
        counts = {"capitals": capitals, "letters": len(letters)}
        return Grade(
            score=score,
            passed=score >= self.limit,
            counts=counts,
        )
