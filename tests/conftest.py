"""Tensor tests run in double precision on one thread; commands run as users run them."""

import os
from collections.abc import Iterator

import pytest

# Tests run side by side, one for each core: threads of the commands they start would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def double_precision(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make new tensors float64 for the length of a test, except where commands are tested."""
    if "cli" in request.path.parts:
        yield
        return
    import torch

    before = torch.get_default_dtype()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def single_precision(double_precision: None) -> None:
    """Make new tensors float32, as they are for users."""
    import torch

    torch.set_default_dtype(torch.float32)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what takes longest first, so that no process waits for the last test of another."""
    items.sort(key=lambda item: (item.path.name != "test_docs.py", item.get_closest_marker("slow") is None))
