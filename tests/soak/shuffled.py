"""A pytest plugin that shuffles the items by the seed in SOAK_SEED: `-p shuffled`."""

from __future__ import annotations

import os
import random

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    random.Random(os.environ["SOAK_SEED"]).shuffle(items)
