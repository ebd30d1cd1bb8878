"""Tables that are read as Arrow record batches, again for every pass.

Errors of the libraries that read them quote values. So each is replaced by an error that names the
table, and that is raised outside of the `except` block, without the first one as its context.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any

from dpmic_jax.data.schema import TextFormat
from dpmic_jax.data.source.arrow import TYPED, coded
from dpmic_jax.data.source.base import Batch, Source
from dpmic_jax.data.source.tally import NOTHING, Tally, tally

# Records that are read at a time, where a library lets one choose.
PIECE = 2**16

ArrowBatches = Generator[Any, None, None]
Problems = tuple[type[Exception], ...]


class ArrowSource(Source):
    """A table that is read as record batches."""

    # What `_read` may raise.
    _problems: Problems = (Exception,)

    @property
    def _text(self) -> TextFormat:
        """How the texts are written."""
        return TYPED

    @abstractmethod
    def _read(self, names: Sequence[str]) -> ArrowBatches:
        """Record batches that have at least these columns."""

    @abstractmethod
    def _broken(self) -> Exception:
        """The error in place of one that `_read` raised."""

    def _batches(self) -> Iterator[Any]:
        return quietly(self._read(self.names), self._broken, self._problems)

    def _count(self) -> int:
        return sum(batch.num_rows for batch in self._batches())

    def _pieces(self) -> Iterator[Batch]:
        for batch in self._batches():
            yield tuple(
                coded(values, rule, self._text)
                for values, rule in zip(self._columns(batch), self.rules, strict=True)
            )

    def _columns(self, batch: Any) -> list[Any]:
        """The screened columns of a batch, as arrow arrays."""
        return [batch.column(batch.schema.get_field_index(name)) for name in self.names]

    def tally(self) -> dict[str, Tally]:
        """The numbers of missing, unreadable and clipped cells of each column. Not private."""
        totals = [NOTHING] * len(self.names)
        for batch in self._batches():
            columns = zip(self._columns(batch), self.rules, strict=True)
            found = [tally(values, rule, self._text) for values, rule in columns]
            totals = [one + other for one, other in zip(totals, found, strict=True)]
        return dict(zip(self.names, totals, strict=True))


def quietly(
    batches: ArrowBatches, broken: Callable[[], Exception], problems: Problems
) -> Iterator[Any]:
    """The same batches, with `broken()` in place of any of the problems."""
    with closing(batches):
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except problems:
                break
            yield batch
    # Raised outside of the `except` block, so that the first error is not its context.
    raise broken()
