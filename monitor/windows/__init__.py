"""Judgments in, buckets and windows out."""
