"""Formats of other producers, one file a format; all of them end in the one event of `intake.event`."""
