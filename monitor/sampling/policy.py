"""What `config/sampling.yaml` says: base rates by stratum, priority rules, and the cohort's salt."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Rate = Annotated[float, Field(ge=0.0, le=1.0)]
STRATUM_ATTRIBUTES = ("assistant", "environment", "tenant", "intent", "channel", "language")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BaseRate(_Section):
    """One row of the base rates; the first row whose attributes all match wins."""

    match: dict[str, str]
    rate: Rate

    @model_validator(mode="after")
    def _attributes_are_known(self) -> Self:
        unknown = sorted(set(self.match) - set(STRATUM_ATTRIBUTES))
        if unknown:
            raise ValueError(
                f"match: unknown attribute {unknown[0]!r}; sampling knows {', '.join(STRATUM_ATTRIBUTES)}"
            )
        return self

    @property
    def rule(self) -> str:
        """Return the row's name in decisions and counts."""
        return "base:" + ",".join(f"{name}={value}" for name, value in sorted(self.match.items()))


class NewPromptRule(_Section):
    """How closely a prompt hash is watched after its first sighting."""

    rate: Rate
    for_hours: Annotated[float, Field(gt=0, le=24 * 14)]


class PriorityRules(_Section):
    """Rates for what must not be missed; None leaves the base rate alone."""

    escalated: Rate | None = None
    thumbs_down: Rate | None = None
    fallback_model: Rate | None = None
    new_prompt_hash: NewPromptRule | None = None


class SamplingPolicy(_Section):
    """The whole of the sampling policy; with the conversation's id it decides alone."""

    cohort: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    default_rate: Rate
    rates: tuple[BaseRate, ...] = ()
    priority: PriorityRules = PriorityRules()
    strata: tuple[str, ...] = ("intent", "channel")
    long_bytes: Annotated[int, Field(ge=1)] = 8000
    remember_hours: Annotated[int, Field(ge=1, le=24 * 9)] = 26

    @model_validator(mode="after")
    def _strata_are_known(self) -> Self:
        for name in self.strata:
            if name not in STRATUM_ATTRIBUTES:
                raise ValueError(
                    f"strata: unknown attribute {name!r}; sampling knows {', '.join(STRATUM_ATTRIBUTES)}"
                )
        return self
