"""What the configuration knows of addresses in, links for messages out: runbooks, and cases in a tool of one's own."""

from string import Formatter
from typing import Annotated
from urllib.parse import quote

from pydantic import AfterValidator

from monitor.intake.event import Value
from monitor.windows.case import Case

PLACEHOLDERS = ("conversation_id", "judgment_id")
"""What an address of a case may name."""


def case_url(value: str) -> str:
    """Check an address of cases; raise ValueError with the cure. Empty: cases have no links."""
    if not value:
        return value
    known = " and ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    if not value.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://, as people reach the tool that shows a case")
    try:
        parts = [part[1:] for part in Formatter().parse(value) if part[1] is not None]
    except ValueError as error:
        raise ValueError(f"{error}; its placeholders are {known}") from None
    names = {name for name, *_ in parts}
    if (
        not names
        or not names <= set(PLACEHOLDERS)
        or any(form or conversion for _, form, conversion in parts)
    ):
        raise ValueError(f"must name {known}, at least one of them and nothing else in braces")
    return value


CaseUrl = Annotated[str, AfterValidator(case_url)]


class Links(Value):
    """The addresses under which people reach things."""

    external_url: str = ""
    """What stands before the paths of runbooks; empty: paths only."""
    case_url: CaseUrl = ""
    """The address of one case, with placeholders; empty: only the command is told."""

    def runbook(self, path: str) -> str:
        """Return where a runbook is."""
        return f"{self.external_url.rstrip('/')}/{path}" if self.external_url else path

    def case(self, case: Case) -> str | None:
        """Return where a case is shown; an id is quoted, since producers choose it."""
        if not self.case_url:
            return None
        return self.case_url.format(
            conversation_id=quote(case.conversation_id, safe=""), judgment_id=quote(case.judgment_id, safe="")
        )
