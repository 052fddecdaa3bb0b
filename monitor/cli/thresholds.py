"""`monitor calibrate LABELS --fit-threshold`: a threshold a dimension, its held-out figures, lines for the config."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from monitor.judging.calibration import Share
from monitor.judging.policy import JudgePolicy, Scoring
from monitor.policy import ConfigError
from monitor.review.threshold import Threshold

DIGITS = 5
"""Of a threshold that is printed; probabilities have four, and a threshold lies between two of them."""


def check_probability(judge: JudgePolicy, *, rules: bool) -> None:
    """Raise ConfigError where the judge gives no probabilities to fit a threshold to."""
    if rules or judge.scoring is not Scoring.PROBABILITY:
        raise ConfigError(
            "monitor.yaml: judge.scoring: --fit-threshold needs a judge that gives probabilities; say "
            "`scoring: probability`, with --judge configured"
        )


def show_thresholds(found: Mapping[str, Threshold], console: Console) -> None:
    """Print what was fitted; every figure but `fitted` is of cases that the threshold has not seen."""
    table = Table(title="Thresholds for who passes (4 or more)", title_justify="left")
    for head in ("dimension", "threshold", "fitted", "held out", "balanced", "at .5", "AUC"):
        table.add_column(head)
    for name, one in found.items():
        table.add_row(
            name,
            "-" if one.value is None else f"{one.value:.{DIGITS}g}",
            str(one.fitted),
            _share(one.held_out),
            _figure(one.held_out_balanced),
            _share(one.held_out_at_half),
            _figure(one.auc),
        )
    console.print(table)
    for name, one in found.items():
        console.print(f"{name}: {one.reason}.")
    fitted = yaml_lines(found)
    if fitted:
        console.print("For config/monitor.yaml; it makes another judge, to be calibrated on other cases:\n")
        # Not wrapped and not marked up: it is to be copied.
        console.print(fitted, soft_wrap=True, highlight=False, markup=False)


def yaml_lines(found: Mapping[str, Threshold]) -> str:
    """Return the lines for monitor.yaml; empty where nothing was fitted."""
    values = {name: round(one.value, DIGITS) for name, one in found.items() if one.value is not None}
    if not values:
        return ""
    lines = [f"    {name}: {value}" for name, value in values.items()]
    return "\n".join(("judge:", "  scoring: probability", "  probability_thresholds:", *lines))


def _share(share: Share) -> str:
    return "-" if share.value is None else share.words


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
