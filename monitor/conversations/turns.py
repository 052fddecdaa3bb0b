"""Where one exchange ends and the next begins, for whoever puts conversations together.

The cut itself lies in intake: a file's conversations are cut before there is a stream, and intake sees no
later stage.
"""

from monitor.intake.turns import split_turns

__all__ = ["split_turns"]
