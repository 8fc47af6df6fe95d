"""Processes that are killed at a chosen moment."""

import os
import signal
import sys
from collections.abc import Callable

__all__ = ["killed_at"]


def killed_at(operation: int, task: Callable[[], object]) -> bool:
    """Run a task in a child process that is killed right before one of its file operations; False if it finished."""
    child = os.fork()
    if child == 0:
        left = [operation]

        def hook(event: str, _: object) -> None:
            if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
                left[0] -= 1
                if left[0] == -1:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        task()
        os._exit(0)

    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
