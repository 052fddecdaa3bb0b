"""Bytes in, events or dead letters out."""
