"""The result of an audit: checks, each with a limit."""

from __future__ import annotations

from dataclasses import dataclass

ROW_SUM_LIMIT = 1e-5
WEIGHT_LIMIT = 1e-4
PLACES = "places"
"""Name of the check that needs the model: whether every recording belongs to its layer, head and step."""
AS_RECORDED = " (as recorded)"
"""Suffix in the name of a check whose value comes from a file, because repeating it needs the model."""

LABELS_UNMADE = "whether the labels name the tokens that were read"
PLACES_UNMADE = "whether every recording is in its layer, head and step"
"""Checks that a file without its model does not allow."""


@dataclass(frozen=True)
class Check:
    """One check of an audit: the worst value found, and the limit it must stay within."""

    name: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is a number within the limit."""
        return self.value <= self.limit


@dataclass(frozen=True)
class AuditReport:
    """The checks that were run on a trace."""

    checks: tuple[Check, ...]  # the checks
    # what was changed in the run, one sentence each; the checks hold for the changed run
    changes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()  # what the checks of a derived picture prove, one sentence each
    unmade: tuple[str, ...] = ()  # what could not be checked
    claim: str = ""  # what the badge says instead of "verified", such as "sums up"

    def joined(self, other: AuditReport) -> AuditReport:
        """Both reports as one; the claim is the other's, if it makes one."""
        told, unmade, changes = (
            tuple(dict.fromkeys(getattr(self, name) + getattr(other, name)))
            for name in ("told", "unmade", "changes")
        )
        return AuditReport(self.checks + other.checks, changes, told, unmade, other.claim or self.claim)

    @property
    def imported(self) -> bool:
        """Whether some values were only read from a file."""
        return any(check.name.endswith(AS_RECORDED) for check in self.checks)

    @property
    def placed(self) -> bool:
        """Whether every recording was found to belong to its layer, head and step; that takes the model."""
        return any(check.name == PLACES and check.passed for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether there was at least one check and all passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def row_sum_error(self) -> float:
        """Largest distance of a row sum from 1 (from 0 for a row that sees no key)."""
        return self._worst("row sums")

    @property
    def output_error(self) -> float:
        """Largest difference between recomputed and used output, as a share of max |value|."""
        return self._worst("outputs")

    def _worst(self, name: str) -> float:
        return max((check.value for check in self.checks if check.name == name), default=float("nan"))
