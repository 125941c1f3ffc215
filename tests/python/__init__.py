"""Tests of the Python package, in folders that mirror it. Modules beside them are shared."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of the repository
