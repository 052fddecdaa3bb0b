"""config/*.yaml in, one checked policy out; every mistake names the file, the key and the cure."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitor.alerting.routing import RoutingPolicy
from monitor.clock import ClockKind, ClockPolicy
from monitor.conversations.policy import ConversationPolicy
from monitor.detection.census import CENSUS
from monitor.detection.gates import GatePolicy
from monitor.detection.policy import DetectionPolicy
from monitor.intake.intents import IntentPolicy
from monitor.judging.policy import JudgePolicy, Scoring
from monitor.judging.references import ReferencesPolicy
from monitor.judging.rubric import Rubric
from monitor.sampling.policy import SamplingPolicy
from monitor.windows.bucket import CRITICAL
from monitor.windows.policy import WindowPolicy
from monitor.yaml_file import load_yaml


class ConfigError(Exception):
    """A configuration file is wrong; the message names the file, the key and the cure."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IntakePolicy(_Section):
    """Limits at the door."""

    max_event_bytes: Annotated[int, Field(ge=1024, le=64 * 2**20)] = 1_000_000
    max_ahead_seconds: Annotated[int, Field(ge=0)] = 3600
    phone_region: Annotated[str, Field(pattern=r"^[A-Z]{2}$")] = "US"


class TopicPolicy(_Section):
    """Shape and retention of the topics that we create."""

    partitions: Annotated[int, Field(ge=1, le=512)] = 4
    replication: Annotated[int, Field(ge=1, le=9)] = 1
    sampled_hours: Annotated[int, Field(ge=1)] = 48
    judgments_days: Annotated[int, Field(ge=1)] = 14
    dead_letters_days: Annotated[int, Field(ge=1)] = 14
    archive_days: Annotated[int, Field(ge=1)] = 90
    alerts_days: Annotated[int, Field(ge=1)] = 90


class MonitorPolicy(_Section):
    """`config/monitor.yaml`."""

    intake: IntakePolicy = IntakePolicy()
    intents: IntentPolicy = IntentPolicy()
    conversations: ConversationPolicy = ConversationPolicy()
    clock: ClockPolicy = ClockPolicy()
    windows: WindowPolicy = WindowPolicy()
    detection: DetectionPolicy = DetectionPolicy()
    judge: JudgePolicy = JudgePolicy()
    references: ReferencesPolicy = ReferencesPolicy()
    topics: TopicPolicy = TopicPolicy()


class Policy(_Section):
    """Everything that config/ says."""

    monitor: MonitorPolicy
    sampling: SamplingPolicy
    rubric: Rubric
    gates: GatePolicy
    routing: RoutingPolicy
    shadow_rubric: Rubric | None = None
    """The rubric of the judge on trial, where it has one of its own."""


_FILES: Mapping[str, type[BaseModel]] = {
    "monitor.yaml": MonitorPolicy,
    "sampling.yaml": SamplingPolicy,
    "rubric.yaml": Rubric,
    "gates.yaml": GatePolicy,
    "routing.yaml": RoutingPolicy,
}
_M = TypeVar("_M", bound=BaseModel)


def default_config() -> Traversable:
    """Return the folder of the default configuration, as it ships in the wheel."""
    return files("monitor") / "default_config"


def load_policy(folder: Path | None = None, *, clock: ClockKind | None = None) -> Policy:
    """Read a folder of config files; a file that is not there takes its default, unless none is there at all.

    `clock` overrules the file: a replay runs a copy of the deployment on the stream's own time.
    """
    if folder is not None and not any((folder / name).is_file() for name in _FILES):
        raise ConfigError(
            f"{folder}: holds none of {', '.join(_FILES)}; give the folder of your configuration"
        )
    read: dict[str, Any] = {}
    for name, model in _FILES.items():
        here = folder / name if folder is not None and (folder / name).is_file() else default_config() / name
        read[name.removesuffix(".yaml")] = _read(here, name, model)
    if clock is not None:
        monitor = read["monitor"]
        read["monitor"] = MonitorPolicy.model_validate(
            dict(monitor) | {"clock": {**dict(monitor.clock), "kind": clock}}
        )
    shadow = read["monitor"].judge.shadow
    if shadow is not None and shadow.rubric is not None:
        read["shadow_rubric"] = _shadow_rubric(folder, shadow.rubric)
    policy = Policy(**read)
    _check_together(policy)
    return policy


def shadow_of(policy: Policy) -> Policy | None:
    """Return what a deployment of the judge on trial alone would be given; None where there is none."""
    judge = policy.monitor.judge.of_shadow
    if judge is None:
        return None
    monitor = policy.monitor.model_copy(update={"judge": judge})
    return policy.model_copy(update={"monitor": monitor, "rubric": policy.shadow_rubric or policy.rubric})


def _shadow_rubric(folder: Path | None, name: str) -> Rubric:
    path = folder / name if folder is not None else Path(name)
    if not path.is_file():
        raise ConfigError(f"monitor.yaml: judge.shadow.rubric: {name}: no such file beside monitor.yaml")
    return _read(path, name, Rubric)


def _read(path: Path | Traversable, name: str, model: type[_M]) -> _M:
    try:
        raw = load_yaml(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "somewhere"
        raise ConfigError(f"{name}: {where}: not YAML: {getattr(error, 'problem', error)}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: not UTF-8; save it as UTF-8") from None
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise ConfigError(
            f"{name}: must be a mapping of keys, like the default that `monitor config show {name}` prints"
        )
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise ConfigError("\n".join(_sentence(name, fault) for fault in _faults(error))) from None


def _faults(error: ValidationError) -> list[tuple[str, str]]:
    found: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False, include_input=False):
        cure = _CURES.get(fault["type"])
        text = cure.format(**fault.get("ctx", {})) if cure else fault["msg"].removeprefix("Value error, ")
        found.setdefault(_key(fault["loc"]), []).append(text)
    return [
        (key, "; or ".join(dict.fromkeys(texts)))
        for key, texts in found.items()
        # A list whose only entry is wrong is not empty: the entry's own fault is enough.
        if texts != [_EMPTY] or not any(other.startswith(f"{key}.") for other in found)
    ]


def _key(location: tuple[int | str, ...]) -> str:
    # Which branch of a choice was tried, and a receiver's type, stand in the path but in no file.
    parts = [str(part) for part in location if not str(part).startswith("literal[")]
    if parts[:1] == ["receivers"]:
        del parts[2:3]
    return ".".join(parts)


_EMPTY = "must not be empty; give at least one"
_CURES = {
    "extra_forbidden": "no such key here; take it out, or look for a slip of the pen",
    "missing": "missing; add it",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "union_tag_invalid": "its type must be one of {expected_tags}",
    "union_tag_not_found": "has no type; add it",
    "string_pattern_mismatch": "must have the form {pattern}",
    "string_type": "must be text; put it in quotes",
    "string_too_short": _EMPTY,
    "too_short": _EMPTY,
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list, such as [one, two]",
    "dict_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "timezone_aware": "needs its zone, such as 2026-12-01T00:00:00Z",
}
"""What to do about each kind of fault, in our words; pydantic's own stand for the rest."""


def _sentence(name: str, fault: tuple[str, str]) -> str:
    key, message = fault
    return f"{name}: {key}: {message}" if key else f"{name}: {message}"


def _check_together(policy: Policy) -> None:
    _check_dimensions(policy)
    for segment in policy.gates.segments:
        if segment not in policy.monitor.windows.segments:
            raise ConfigError(
                f"gates.yaml: segments: {segment} has no series; add it to windows.segments in monitor.yaml"
            )
    _check_slo(policy)
    unfit = policy.monitor.detection.unfit(policy.monitor.windows)
    if unfit is not None:
        raise ConfigError(f"monitor.yaml: detection.{unfit}")
    _check_judge(policy.monitor.judge, set(policy.rubric.names))
    _check_grounded(policy)
    _check_shadow(policy.monitor.judge)
    _check_limits(policy.monitor)
    age_hours = policy.monitor.conversations.max_age_seconds / 3600
    if policy.sampling.remember_hours <= age_hours:
        raise ConfigError(
            "sampling.yaml: remember_hours: must exceed conversations.max_age_seconds of monitor.yaml "
            f"({age_hours:g} h), or the later turns of a kept conversation would be dropped"
        )


def _check_dimensions(policy: Policy) -> None:
    known = set(policy.rubric.names)
    _check_names("gates.yaml: gates", policy.gates.gates, known)
    _check_names("gates.yaml: critical.page_at_or_below", policy.gates.critical.page_at_or_below, known)
    if CRITICAL in known:
        raise ConfigError(
            f"rubric.yaml: dimensions: no dimension may be called {CRITICAL}; it is the series of critical failures"
        )
    for name in known.intersection(CENSUS):
        raise ConfigError(
            f"rubric.yaml: dimensions: no dimension may be called {name}; it is a share that the census counts"
        )


def _check_names(key: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{key}.{name}: the rubric has no such dimension; it has {', '.join(sorted(known))}"
            )


def _check_slo(policy: Policy) -> None:
    slo, windows = policy.gates.slo, policy.monitor.windows
    _check_names("gates.yaml: slo.objectives", slo.objectives, set(policy.rubric.names))
    longest = max(slo.period, *(timedelta(minutes=burn.long_minutes) for burn in slo.burns))
    if slo.objectives and longest > windows.retention:
        raise ConfigError(
            f"gates.yaml: slo.period_days: no window may exceed windows.retention_days of monitor.yaml "
            f"({windows.retention_days}), or it would count less than it says"
        )
    for burn in slo.burns:
        if burn.short_minutes % windows.bucket_minutes:
            raise ConfigError(
                f"gates.yaml: slo.burns: short_minutes {burn.short_minutes} must be a multiple of "
                f"windows.bucket_minutes of monitor.yaml ({windows.bucket_minutes})"
            )


def _check_judge(judge: JudgePolicy, dimensions: set[str]) -> None:
    if judge.backend == "llm" and not judge.model:
        raise ConfigError("monitor.yaml: judge.model: missing; backend llm needs the model's name")
    if judge.timeout_seconds * 3 > judge.deadline_seconds:
        raise ConfigError(
            "monitor.yaml: judge.timeout_seconds: must be at most a third of judge.deadline_seconds, "
            "so that a hanging attempt leaves time for another"
        )
    _check_names("monitor.yaml: judge.probability_thresholds", judge.probability_thresholds, dimensions)
    if judge.probability_thresholds and judge.scoring is not Scoring.PROBABILITY:
        raise ConfigError(
            "monitor.yaml: judge.probability_thresholds: only used with judge.scoring: probability; say that too, "
            "or take them out"
        )
    for model in judge.models_asked if judge.budget.counts_money else ():
        if model not in judge.prices:
            raise ConfigError(
                f"monitor.yaml: judge.budget: limits money, and judge.prices has no price of {model}; add it, "
                "or limit tokens instead"
            )
    if judge.fallback and judge.fallback.backend == "llm" and not judge.fallback.model:
        raise ConfigError("monitor.yaml: judge.fallback.model: missing; backend llm needs the model's name")


def _check_grounded(policy: Policy) -> None:
    references, known = policy.monitor.references, set(policy.rubric.names)
    # The default names dimensions of the default rubric; with another one they concern nobody.
    for name in references.grounded if "grounded" in references.model_fields_set else ():
        if name not in known:
            raise ConfigError(
                f"monitor.yaml: references.grounded: the rubric has no dimension {name}; "
                f"it has {', '.join(sorted(known))}"
            )


def _check_shadow(judge: JudgePolicy) -> None:
    shadow = judge.of_shadow
    if shadow is None:
        return
    if shadow.backend == "llm" and not shadow.model:
        raise ConfigError("monitor.yaml: judge.shadow.model: missing; backend llm needs the model's name")
    if shadow.budget.counts_money and shadow.price is None:
        raise ConfigError(
            f"monitor.yaml: judge.shadow.budget: limits money, and judge.prices has no price of {shadow.model}; "
            "add it, or limit tokens instead"
        )


def _check_limits(monitor: MonitorPolicy) -> None:
    age_hours = monitor.conversations.max_age_seconds / 3600
    if monitor.conversations.keep_texts_hours <= age_hours:
        raise ConfigError(
            "monitor.yaml: conversations.keep_texts_hours: must exceed conversations.max_age_seconds "
            f"({age_hours:g} h), or a long conversation would be judged without its beginning"
        )
    ahead = monitor.windows.retention_days
    if monitor.conversations.keep_records_days < ahead:
        raise ConfigError(
            "monitor.yaml: conversations.keep_records_days: must be at least windows.retention_days "
            f"({ahead}), or a resumed conversation would be counted twice"
        )
