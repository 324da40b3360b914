"""A run as the rules of `advice` see it, and which settings may be offered for it.

Only settings are offered that the run's method has and does not decide itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from iqrl.config import COMMON, Run, fields_of
from iqrl.errors import BadInput
from iqrl.explain.association import Association
from iqrl.explain.coincidence import Coincidence
from iqrl.explain.movements import Study
from iqrl.explain.seeds import SeedMetrics
from iqrl.methods import Method, find_method


class Case(NamedTuple):
    """All that a rule may look at."""

    run: Run
    seeds: list[SeedMetrics]
    studies: list[Study]
    association: Association | None
    coincidence: Coincidence | None

    @property
    def method(self) -> Method | None:
        """None for a method of the user's own that cannot be found from here."""
        try:
            return find_method(self.run.method)
        except BadInput:
            return None

    def has(self, group: type) -> bool:
        return self.method is not None and group in self.method.extra_groups

    @property
    def open_settings(self) -> set[str]:
        """Those that the method has and leaves open."""
        groups = [*COMMON, *(self.method.extra_groups if self.method else ())]
        return {field.name for group in groups for field in fields_of(group)} - set(self.fixed)

    @property
    def fixed(self) -> Mapping[str, Any]:
        return self.method.fixed if self.method else {}

    def offers(self, **settings: Any) -> list[str]:
        """Flags for those open settings that would change something."""
        new = {name: value for name, value in settings.items() if getattr(self.run, name) != value}
        return [_flag(name, value) for name, value in new.items() if name in self.open_settings]

    @property
    def measured(self) -> bool:
        return "aei" in self.seeds[0].columns

    @property
    def interference_stands_out(self) -> bool:
        """It is high where the return falls, or the return falls after it; more than chance has it."""
        return bool(self.coincidence and self.coincidence.stands_out) or follows(self.association)


def follows(association: Association | None) -> bool:
    """Whether the return falls after interference more than chance has it, and more than a high return falls anyway."""
    if association is None:
        return False
    return all(found.rho < 0 and found.p < 0.05 for found in (association.plain, association.given_return))


def _flag(name: str, value: Any) -> str:
    text = "" if value is True else f" {value:g}" if isinstance(value, float) else f" {value}"
    return f"`--{name.replace('_', '-')}{text}`"
