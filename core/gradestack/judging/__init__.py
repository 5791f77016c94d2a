"""Judgements of models: what is asked, what is on record, and the one place that asks."""
