"""Exceptions for problems that a user can fix, one class per kind of problem.

A message states what was found and what was expected, in the terms of the Python API. The command line adds its own
advice, which it looks up by ``reason``. A broken assumption of the library itself is an ``assert``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DatasetError",
    "DistributedError",
    "FamilyError",
    "FormatError",
    "GraphiteError",
    "OutputError",
    "QualityError",
    "SamplingError",
    "TrainingError",
    "UnusedSettingError",
    "did_you_mean",
]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A part of a message with the known name that is most similar; empty if none is."""
    close = difflib.get_close_matches(name, list(known), n=1)

    return f" (did you mean '{close[0]}'?)" if close else ""


class GraphiteError(Exception):
    """A problem the user can fix.

    Arguments:
        message: One or more full sentences.
        reason: A stable key for what went wrong, such as ``output-exists``; empty if the message needs no advice.
        facts: The values behind the message, such as ``path``; they become attributes.
    """

    def __init__(self, message: str, *, reason: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.reason = reason
        self.facts = facts
        vars(self).update(facts)


class ConfigError(GraphiteError):
    """A setting that does not exist or does not fit the others."""


class UnusedSettingError(ConfigError):
    """A setting that was given and changes nothing.

    Attributes:
        setting: Its name.
        on: The kind of model it has no effect on.
    """

    def __init__(self, setting: str, on: str) -> None:
        super().__init__(f"'{setting}' has no effect on {on}. Leave it out.")
        self.setting, self.on = setting, on


class DistributedError(GraphiteError):
    """A worker of a distributed run that died or did not connect."""


class FamilyError(GraphiteError):
    """An unknown family, or parameters that are invalid for it."""


class FormatError(GraphiteError):
    """A graph file that is missing, damaged or in another format."""


class OutputError(GraphiteError):
    """A file that cannot be written."""


class DatasetError(GraphiteError):
    """Graphs that are not suitable for the operation."""


class CheckpointError(GraphiteError):
    """A model that is missing, damaged or of the wrong kind."""


class TrainingError(GraphiteError):
    """A training run that cannot start or continue."""


class SamplingError(GraphiteError):
    """A sample that cannot be drawn under the given constraints."""


class QualityError(GraphiteError):
    """Samples that do not meet the required quality."""
