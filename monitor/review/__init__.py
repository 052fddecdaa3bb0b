"""Judgments in, review items out: what people should look at, and why."""
