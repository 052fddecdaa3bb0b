"""The judge section of monitor.yaml: which judge speaks, what its endpoint is able to, and its limits."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitor.judging.anchors import AnchorPolicy
from monitor.judging.cascade import CascadePolicy
from monitor.judging.health import HealthPolicy
from monitor.judging.judgment import FailureKind
from monitor.judging.shadow import ShadowCohort


class Ability(StrEnum):
    """What an endpoint is able to; it is said and tried, never guessed from a model's name."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TOOL = "tool"
    TEXT = "text"


class Presentation(StrEnum):
    """How the dimensions are asked."""

    ALL = "all"
    SINGLE = "single"


class Scoring(StrEnum):
    """How a score comes about: the model writes it, or it is drawn from the probability of Yes."""

    WRITTEN = "written"
    PROBABILITY = "probability"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_Share = Annotated[float, Field(gt=0, lt=1)]
_Positive = Annotated[int, Field(ge=1)]


class Price(_Section):
    """Of one model, in any one currency, per million tokens."""

    prompt: Annotated[float, Field(ge=0)]
    completion: Annotated[float, Field(ge=0)]

    def of(self, *, prompt_tokens: int, completion_tokens: int) -> float:
        """Return what so many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


class BreakerSection(_Section):
    """When the endpoint counts as down."""

    failures_in_a_row: Annotated[int, Field(ge=2, le=100)] = 5
    open_seconds: Annotated[float, Field(gt=0, le=600)] = 5.0
    open_max_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0


class BudgetSection(_Section):
    """What may be spent, for all workers together; null is no limit."""

    money_per_hour: Annotated[float, Field(gt=0)] | None = None
    money_per_day: Annotated[float, Field(gt=0)] | None = None
    money_per_tenant_day: Annotated[float, Field(gt=0)] | None = None
    tokens_per_hour: _Positive | None = None
    tokens_per_day: _Positive | None = None
    tokens_per_tenant_day: _Positive | None = None
    thin_from: _Share = 0.8

    @property
    def limited(self) -> bool:
        """Tell whether anything is limited at all."""
        return any(value is not None for name, value in self if name != "thin_from")

    @property
    def counts_money(self) -> bool:
        """Tell whether money is limited, for which prices are needed."""
        return any(value is not None for name, value in self if name.startswith("money"))


class FallbackSection(_Section):
    """Who judges instead, and when."""

    backend: Literal["rules", "llm"] = "rules"
    model: str | None = None
    base_url: str | None = None
    on: tuple[FailureKind, ...] = (
        FailureKind.REFUSED,
        FailureKind.CONTENT_FILTER,
        FailureKind.TRUNCATED,
        FailureKind.UNREADABLE,
        FailureKind.EXPIRED,
    )

    @model_validator(mode="after")
    def _judges_what_may_be_judged(self) -> Self:
        if FailureKind.OWN_TRAFFIC in self.on:
            raise ValueError("on: own_traffic is never judged, by nobody; take it out")
        if FailureKind.THINNED in self.on:
            raise ValueError("on: what is thinned out is stood for by what was kept; take it out")
        if FailureKind.BUDGET in self.on and self.backend == "llm":
            raise ValueError(
                "on: a model would go on spending when the budget is used up; say backend: rules"
            )
        return self


class ShadowSection(_Section):
    """A judge on trial: what differs from the live one, null for nothing; and its own cohort and budget."""

    backend: Literal["llm", "rules"] = "llm"
    model: str | None = None
    base_url: str | None = None
    rubric: str | None = None
    ability: Ability | None = None
    presentation: Presentation | None = None
    scoring: Scoring | None = None
    probability_threshold: _Share | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=64)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 8
    budget: BudgetSection = BudgetSection()
    cohort: ShadowCohort = ShadowCohort()


class JudgePolicy(_Section):
    """Which judge speaks, and its limits."""

    backend: Literal["auto", "llm", "rules"] = "auto"
    model: str | None = None
    base_url: str | None = None
    ability: Ability = Ability.JSON_SCHEMA
    probe: bool = True
    presentation: Presentation = Presentation.ALL
    scoring: Scoring = Scoring.WRITTEN
    probability_threshold: _Share = 0.5
    probability_thresholds: dict[str, _Share] = {}
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Field(ge=64)] = 1500
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 32
    requests_per_minute: _Positive | None = None
    tokens_per_minute: _Positive | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=300)] = 15.0
    deadline_seconds: Annotated[float, Field(gt=0, le=600)] = 45.0
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 6
    max_age_hours: Annotated[float, Field(gt=0)] = 24.0
    breaker: BreakerSection = BreakerSection()
    prices: dict[str, Price] = {}
    budget: BudgetSection = BudgetSection()
    fallback: FallbackSection | None = None
    cascade: CascadePolicy = CascadePolicy()
    health: HealthPolicy = HealthPolicy()
    anchors: AnchorPolicy = AnchorPolicy()
    shadow: ShadowSection | None = None

    @property
    def models_asked(self) -> tuple[str, ...]:
        """Return the models that may be asked: the judge, the second of a cascade, the fallback."""
        second = self.cascade.model
        instead = self.fallback.model if self.fallback is not None else None
        return (self.model or "", *(model for model in (second, instead) if model is not None))

    @property
    def price(self) -> Price | None:
        """Return the price of the model that is asked."""
        return self.prices.get(self.model or "")

    @property
    def of_shadow(self) -> "JudgePolicy | None":
        """Return the policy of the judge on trial: alone, with neither stages nor fallback nor anchors."""
        if self.shadow is None:
            return None
        same = {"rubric", "cohort"}
        changed = {name: value for name, value in self.shadow if value is not None and name not in same}
        alone = {"fallback": None, "cascade": CascadePolicy(), "anchors": AnchorPolicy(every_minutes=None)}
        return JudgePolicy.model_validate(dict(self) | changed | alone)
