"""The type checker that the tests wrap the package in: shapes, dtypes, and int for float."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
