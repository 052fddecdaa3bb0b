"""What people read: the order of their questions, and limits that hold whatever the texts hold."""

import json
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from monitor.alerting import plot
from monitor.alerting.links import Links
from monitor.alerting.message import FULL_MAX, message_of
from monitor.alerting.render_html import as_html
from monitor.alerting.render_json import as_json
from monitor.alerting.render_markdown import as_markdown
from monitor.alerting.render_slack import BLOCKS_MAX, SECTION_MAX, as_slack, cut, units
from monitor.alerting.render_text import as_text
from tests.notifications import HOSTILE, a_case, a_group, an_alert

SLACK_TOTAL_MAX = 13_200
QUESTIONS = [
    "release 42",
    "prompt_hash=new served first",
    "since 2026-03-10T12:00:00Z",
    "mean 3 (95 %: 2.9 to 3.1), gate 4.8, n=200",
    "intent=returns: share 50% (before 50%), figure 1 (before 5), n=50",
    "promise 0",
    "monitor explain c-0",
    "uncalibrated",
]


def texts_of(blocks: list[dict[str, object]]) -> str:
    return json.dumps(blocks, ensure_ascii=False)


def ordered(text: str, wanted: list[str]) -> bool:
    places = [text.index(part) for part in wanted]
    return places == sorted(places)


def test_the_text_answers_in_the_order_in_which_people_ask() -> None:
    """S21: what changed, since when and how much, where, the worst cases, whom to believe, the runbook."""
    text = as_text(
        message_of(a_group(suppressed=3, truncated=2), links=Links(external_url="https://x.example/"))
    )

    end = ["https://x.example/docs/runbooks/gate.md", "3 held back", "2 more of this group", "Id: g1-1"]
    assert ordered(text, [*QUESTIONS, *end])


def test_every_form_holds_the_same() -> None:
    """Nobody is told less because of the tool that they read it in."""
    message = message_of(a_group())
    markdown = as_markdown(message).replace("\\", "")
    page = as_html(message)
    slack = texts_of(as_slack(message)["blocks"])

    for part in QUESTIONS:
        assert part in markdown
        assert part in page
        assert part in slack


def test_every_form_links_the_cases_where_the_configuration_says_where() -> None:
    """One click instead of a terminal; and an id that a producer chose is no way out of the address."""
    links = Links(case_url="https://tool.example/c/{conversation_id}?j={judgment_id}")
    hostile = Links(case_url="https://tool.example/{conversation_id}").case(
        a_case(0).model_copy(update={"conversation_id": "../x?y=<b>"})
    )
    message = message_of(a_group(), links=links)
    forms = (
        as_text(message),
        as_markdown(message).replace("\\", ""),
        as_html(message),
        str(as_slack(message)),
    )

    assert hostile == "https://tool.example/..%2Fx%3Fy%3D%3Cb%3E"
    for form in forms:
        assert "https://tool.example/c/c-0?j=j0" in form
    assert "https://tool" not in as_text(message_of(a_group()))


def test_the_further_alerts_of_a_message_show_three_cases_and_say_of_how_many() -> None:
    """Forty cases in one message are read by nobody, and none of them is left out unsaid."""
    message = message_of(a_group(an_alert(1), an_alert(2)))

    assert [len(alert.cases) for alert in message.alerts] == [8, 3]
    for form in (as_text(message), as_markdown(message), as_html(message), str(as_slack(message))):
        assert "Worst cases, 3 of 8" in form


def test_a_quotation_says_whether_the_answer_or_the_document_says_so() -> None:
    """Two sentences that contradict each other help nobody who does not know which is the policy."""
    case = a_case(0).model_copy(
        update={"quotes": ("free forever", "fees apply", "?"), "sources": ("answer", "reference")}
    )
    alert = an_alert()
    assert alert.evidence is not None
    shown = alert.model_copy(update={"evidence": alert.evidence.model_copy(update={"cases": (case,)})})
    message = message_of(a_group(shown))

    assert 'answer: "free forever"\n    document: "fees apply"\n    "?"' in as_text(message)
    for form in (as_markdown(message).replace("\\", ""), as_html(message), str(as_slack(message))):
        assert "document: “fees apply”" in form


def test_a_change_names_its_distance_from_the_onset() -> None:
    """What changed an hour before is a suspect, what changed an hour after is none."""
    text = as_text(message_of(a_group()))

    assert "deploy: release 42, prompt_hash=new (2026-03-10T10:00:00Z, 2 h before the onset)" in text
    assert "(2026-03-10T11:00:00Z, 1 h before the onset); 90% of the conversations, none before" in text


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("count", [1, 5, 50])
def test_slack_takes_every_message(text: str, count: int) -> None:
    """Slack refuses the whole message for one section that is too long, and nobody is told."""
    message = message_of(a_group(*(an_alert(n, text=text) for n in range(count)), suppressed=7))
    body = as_slack(message)
    blocks = body["blocks"]

    assert len(blocks) <= BLOCKS_MAX
    assert units(texts_of(blocks)) <= SLACK_TOTAL_MAX
    for block in blocks:
        told = block.get("text") or block["elements"][0]
        limit = 150 if block["type"] == "header" else SECTION_MAX
        assert 0 < units(told["text"]) <= limit
        if told["type"] == "mrkdwn":
            assert told["verbatim"]
            assert "<!channel>" not in told["text"]
            assert "<https" not in told["text"]
    assert "g1-1" in texts_of(blocks[-1:])
    assert "7 held back" in texts_of(blocks)
    assert "docs/runbooks/gate.md" in texts_of(blocks)


def test_slack_counts_what_did_not_fit() -> None:
    """F7: what is left out is said."""
    long = [an_alert(n, text="x y " * 200) for n in range(5)]
    blocks = as_slack(message_of(a_group(*long)))["blocks"]

    assert "more alerts do not fit into this message" in texts_of(blocks)


def test_no_entity_is_cut_apart() -> None:
    """Half an entity is shown as rubbish."""
    for limit in range(1, 12):
        text = cut("a&b<c😀", limit)
        assert units(text) <= limit
        assert text.rstrip("…") in "a&amp;b&lt;c😀"
        assert text.count("&") == text.count(";")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("text", HOSTILE)
def test_html_holds_no_markup_of_others(text: str) -> None:
    """A conversation's words in a mail must not run, load or link anything."""
    tags = Tags()
    tags.feed(as_html(message_of(a_group(an_alert(text=text)))))

    ours = {"div", "h2", "h4", "p", "ul", "li", "strong", "br", "code", "blockquote", "small"}
    drawn = {"svg", "title", "line", "polyline", "circle"}
    assert tags.seen <= ours | drawn
    assert not any(name.startswith("on") or name in {"href", "src"} for name in tags.attributes)


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_texts_as_they_are(text: str) -> None:
    """A heading, a link or a fence of a user's making would forge the alert."""
    page = MarkdownIt().render(as_markdown(message_of(a_group(an_alert(text=text)))))
    tags = Tags()
    tags.feed(page)

    assert tags.seen <= {"h1", "p", "ul", "li", "strong", "code"}
    assert page.count("<h1>") == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_character_gets_through(text: str) -> None:
    """An escape sequence steers a terminal, and a line break forges a line of ours."""
    shown = as_text(message_of(a_group(an_alert(text=text))))

    assert not any(ord(character) < 32 and character != "\n" for character in shown)
    assert "\u202e" not in shown
    assert [line for line in shown.splitlines() if line.startswith("Id:")] == ["Id: g1-1"]


def test_a_storm_stays_readable() -> None:
    """Fifty alerts with eight cases each are read by nobody."""
    message = message_of(a_group(*(an_alert(n) for n in range(50))))

    assert (len(message.alerts), len(message.others)) == (FULL_MAX, 50 - FULL_MAX)
    assert message.title.endswith("safety misses its gate for bot (production) and 49 more")
    assert as_text(message).count("misses its gate") == 1 + 50


def test_a_title_stays_while_figures_change() -> None:
    """A resolve must read like its firing."""
    firing = message_of(a_group(an_alert())).title
    resolved = message_of(a_group(an_alert(resolved=True))).title

    assert firing.removeprefix("[FIRING]") == resolved.removeprefix("[RESOLVED]")


def test_the_json_is_json_and_holds_the_evidence() -> None:
    """Receivers that know us read values, not sentences."""
    values = json.loads(json.dumps(as_json(a_group(suppressed=1))))

    assert values["suppressed"] == 1
    assert values["alerts"][0]["evidence"]["happened"][0]["title"] == "release 42"
    assert values["alerts"][0]["labels"]["finding"] == "gate"


def test_a_point_without_data_is_a_gap() -> None:
    """No data is not the worst figure."""
    drawn = message_of(a_group()).alerts[0].plot
    assert drawn is not None

    line = plot.line(drawn)
    assert line[3] == "·"
    assert line.startswith("███·")
    assert "mean between 2.9 and 4.9" in line
    assert "a bar is 1 h" in line
    picture = plot.svg(drawn)
    assert picture.count("<polyline") == 2
    assert picture.count("<circle") == 23


def test_a_flat_course_is_drawn() -> None:
    """A span of nothing must not divide by zero."""
    assert plot.sparkline([5, 5, None], 5, 5) == "██·"
