"""Turns in, conversations with their end and revision out."""
