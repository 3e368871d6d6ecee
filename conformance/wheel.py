"""Builds the wheel; `pyproject.toml` names this class."""

from __future__ import annotations

import shutil

from setuptools.command.build_py import build_py


class Build(build_py):  # type: ignore[misc]  # setuptools need not be installed
    def run(self) -> None:
        """Build without the files of an earlier version, which setuptools leaves in a clone and would ship again."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
