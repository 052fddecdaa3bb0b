import pytest

from monitor.judging.claims import Figure, FigureKind, figures, same


def only(text: str) -> Figure:
    (figure,) = figures(text)
    return figure


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("within 14 days", "two weeks"),
        ("24 months", "2 years"),
        ("30 days", "one month"),
        ("24 hours", "1 day"),
        ("5-7 business days", "5 to 7 business days"),
        ("a 30-day window", "30 days"),
        ("$1,299.00", "1299 dollars"),
        ("$5.95", "5.95 USD"),
        ("15%", "15 percent"),
        ("31 January", "January 31st"),
        ("2026-03-10", "March 10, 2026"),
        ("3 pm", "15:00"),
        ("two photos", "2 photos"),
        ("free of charge", "at no cost"),
    ],
)
def test_two_ways_of_writing_a_figure_are_the_same(one: str, other: str) -> None:
    assert same(only(one), only(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("30 days", "30 dollars"),
        ("30 days", "30 hours"),
        ("30 days", "60 days"),
        ("15%", "$15"),
        ("2 photos", "2 kg"),
        ("5-7 business days", "3-5 business days"),
        ("31 January", "30 January"),
        ("10 March 2025", "10 March 2026"),
        ("3 pm", "3 am"),
        ("$6.95", "$6.59"),
    ],
)
def test_figures_that_differ_in_value_or_unit_are_not_the_same(one: str, other: str) -> None:
    assert not same(only(one), only(other))


def test_a_single_value_agrees_with_either_end_of_a_range() -> None:
    reference = only("5 to 7 business days")

    assert same(only("7 business days"), reference)
    assert same(only("5 business days"), reference)
    assert not same(only("6 business days"), reference)


def test_a_bare_number_of_a_tool_result_supports_money_and_counts_but_no_date() -> None:
    bare = only('"price": 63')

    assert bare.kind is FigureKind.NUMBER
    assert same(only("$63"), bare)
    assert not same(only("2026-03-06"), only('"code": 306'))


@pytest.mark.parametrize(
    "text",
    [
        "order TH-48213",
        "flight HAT079",
        "https://help.example/returns?id=30",
        "the placeholder [CARD_0042]",
        "have a nice day",
        "a smoke-free home, feel free to write",
    ],
)
def test_ids_links_and_idioms_are_no_figures(text: str) -> None:
    assert figures(text) == ()


def test_a_figure_knows_its_place_word_for_word() -> None:
    text = "It costs $6.95 and takes 5 to 7 business days."

    for figure in figures(text):
        assert text[figure.start : figure.end] == figure.text


def test_a_timestamp_is_a_date_and_nothing_else() -> None:
    assert [figure.kind for figure in figures('"at": "2026-03-10"')] == [FigureKind.DATE]


def test_each_figure_of_a_sentence_is_found_once() -> None:
    text = "Express: 1 to 2 business days, $14.95, 15% off until 31 January, before 13:00, with 2 photos."

    assert [figure.kind for figure in figures(text)] == [
        FigureKind.DURATION,
        FigureKind.MONEY,
        FigureKind.PERCENT,
        FigureKind.DATE,
        FigureKind.TIME,
        FigureKind.COUNT,
    ]
