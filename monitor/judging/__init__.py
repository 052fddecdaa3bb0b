"""Conversations in, judgments or judge failures out."""
