"""Models as judges: a rubric, its verdicts on record, and what people say of them."""
