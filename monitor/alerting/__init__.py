"""Findings in, alerts with their life and evidence out."""
