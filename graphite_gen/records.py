"""Small frozen results: what functions give, files store and commands print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Provenance", "Record"]


class Record:
    """A frozen dataclass that becomes a JSON object."""

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Provenance(Record):
    """Where a file of graphs comes from.

    Attributes:
        family: The family whose law made the graphs, or None where the law is unknown.
        parameters: The parameters of that law.
        seed: The seed they were drawn with.
        source: What drew them, such as ``generate`` or ``sample``.
        model: The model that was sampled from.
    """

    family: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    source: str | None = None
    model: str | None = None
