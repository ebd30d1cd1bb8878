import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmic_jax.mic.padding import MOST_WASTE, decade, decade_if_small, rung

SIZES = st.integers(1, 10**8)


@given(size=SIZES, bits=st.integers(1, 6))
def test_a_rung_has_so_many_bits_and_is_the_next(size, bits):
    found = rung(size, bits)
    assert found >= size
    # The odd part is what has to be written down.
    assert (found // (found & -found)).bit_length() <= bits
    assert found - size < size * 2.0 ** (1 - bits)
    between = range(size, min(found, size + 1000))
    assert all((one // (one & -one)).bit_length() > bits for one in between)


@given(size=SIZES)
def test_a_decade_is_the_next_of_1_2_5_10(size):
    allowed = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
    assert decade(size) == min(one for one in allowed if one >= size)


@pytest.mark.parametrize("count", [lambda size: rung(size, 4), decade])
def test_few_sizes_serve_all(count):
    found = {count(size) for size in range(1, 20_001)}
    assert len(found) < 100
    assert {count(size) for size in found} == found


@given(size=SIZES, item_bytes=st.sampled_from([1, 4, 100]))
def test_much_memory_is_not_wasted(size, item_bytes):
    found = decade_if_small(size, item_bytes)
    assert found in (size, decade(size))
    assert (found - size) * item_bytes <= MOST_WASTE
    assert found == decade(size) or (decade(size) - size) * item_bytes > MOST_WASTE
