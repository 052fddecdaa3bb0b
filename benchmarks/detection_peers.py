"""What a user would take instead: river's ADWIN and Page-Hinkley, and the guide's rule, on the raw stream."""

from collections.abc import Mapping

import numpy as np
from simulated import BASELINE_HOURS, PER_HOUR


def alarms_of(units: Mapping[str, np.ndarray], d: int) -> dict[str, list[float]]:
    """Return the hours in which ADWIN, Page-Hinkley and the guide's rule speak of one dimension's raw stream."""
    hours = units["row"] / PER_HOUR
    alarms: dict[str, list[float]] = {"guide": _guide(units, d)}
    try:
        from river import drift  # noqa: PLC0415 - an optional extra
    except ImportError:
        print("river is not installed: ADWIN and Page-Hinkley are left out")
    else:
        detectors = {
            "adwin": drift.ADWIN(),
            "adwin_tuned": drift.ADWIN(delta=1e-7),
            "page_hinkley": drift.PageHinkley(mode="down"),
            "page_hinkley_tuned": drift.PageHinkley(mode="down", delta=0.06, threshold=150),
        }
        for name, detector in detectors.items():
            found, mean = [], 0.0
            for hour, value in zip(hours.tolist(), units["scores"][:, d].tolist(), strict=True):
                mean = getattr(detector, "estimation", 0.0)
                detector.update(value)
                falls = "adwin" not in name or detector.estimation < mean
                if detector.drift_detected and falls and hour >= BASELINE_HOURS:
                    found.append(hour)
            alarms[name] = found
    return alarms


def _guide(units: Mapping[str, np.ndarray], d: int) -> list[float]:
    weight = 1 / units["rate"]
    hour = units["row"] // PER_HOUR
    total = np.bincount(hour, weight)
    scores = np.bincount(hour, weight * units["scores"][:, d])
    normal = scores[:BASELINE_HOURS].sum() / total[:BASELINE_HOURS].sum()
    six = np.ones(6)
    window = np.convolve(scores, six)[: len(total)] / np.maximum(np.convolve(total, six)[: len(total)], 1e-9)
    down = window <= normal - 0.2
    held = down & np.roll(down, 1) & np.roll(down, 2)
    starts = held & ~np.roll(held, 1)
    return [float(h + 1) for h in np.nonzero(starts)[0] if h >= BASELINE_HOURS]
