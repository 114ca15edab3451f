"""Findings by name."""

from collections.abc import Iterable

from accel_lab.doctor import Finding


def by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    """File findings under their names, which must be unique."""
    listed = list(findings)
    filed = {finding.name: finding for finding in listed}
    assert len(filed) == len(listed)
    return filed
