"""Measurements: each file runs by itself and ends with a line of JSON."""
