"""Bounds files for the tests of this folder."""

import pytest

from dpmic_jax.data.schema import read_schema


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "bounds.toml"
        path.write_text(text, encoding="utf-8")
        return read_schema(path)

    return read
