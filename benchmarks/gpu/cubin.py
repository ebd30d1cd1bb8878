"""Registers and spills of the kernels in an executable that XLA has compiled for a GPU.

The executable holds machine code as ELF files (cubins). Its sections `.nv.info` state for each
kernel the registers of a thread, and the bytes of memory it takes where registers are too few.
"""

import struct
from typing import NamedTuple

_ELF = b"\x7fELF"
_REGISTERS, _FRAME = 0x2F, 0x11  # attributes of `.nv.info`
_VALUE_OF_SYMBOL = 4  # the format of both
_SYMBOLS, _STRINGS = 2, 3  # kinds of sections


class Compiled(NamedTuple):
    """A kernel's registers, and bytes it keeps in memory for want of registers, for each thread."""

    registers: int
    spilled: int


def kernels(executable: bytes) -> dict[str, Compiled]:
    """All kernels in a serialised executable, by name.

    XLA compresses blocks by Snappy, and does not say where they begin: each place is tried.
    """
    found: dict[str, Compiled] = {}
    start = 0
    while start < len(executable):
        try:
            block, end = _snappy(executable, start)
            found |= _in_block(block)
            start = end
        except (ValueError, IndexError, struct.error, StopIteration):
            start += 1
    return found


def _in_block(block: bytes) -> dict[str, Compiled]:
    found: dict[str, Compiled] = {}
    start = block.find(_ELF)
    while start >= 0:
        found |= _in_elf(block[start:])
        start = block.find(_ELF, start + 4)
    return found


def _snappy(packed: bytes, at: int) -> tuple[bytes, int]:
    """A block in the format of Snappy: how long it is, then literals and copies. And its end."""
    length = shift = 0
    more = True
    while more:
        length |= (packed[at] & 127) << shift
        more, at, shift = packed[at] > 127, at + 1, shift + 7
    if not 2**8 < length < 2**28:
        raise ValueError("expected a block")
    found = bytearray()
    while len(found) < length:
        kind, size, at = packed[at] & 3, packed[at] >> 2, at + 1
        if kind == 0:
            if extra := max(0, size - 59):
                size, at = int.from_bytes(packed[at : at + extra], "little"), at + extra
            found += packed[at : at + size + 1]
            at += size + 1
            continue
        width = (0, 1, 2, 4)[kind]
        offset, at = int.from_bytes(packed[at : at + width], "little"), at + width
        if kind == 1:
            offset, size = offset + (size >> 3 << 8), (size & 7) + 3
        if not 0 < offset <= len(found):
            raise ValueError("expected a copy of what was there")
        for _ in range(size + 1):
            found.append(found[-offset])
    return bytes(found), at


def _in_elf(elf: bytes) -> dict[str, Compiled]:
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, number, names = struct.unpack_from("<HHH", elf, 0x3A)
    if size != 64 or table + number * size > len(elf):
        raise ValueError("expected a cubin")
    # name, kind, flags, address, offset, size, link, info, alignment, size of an entry
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(number)]

    def text(section: int, offset: int) -> str:
        begin = sections[section][4] + offset
        return elf[begin : elf.index(b"\0", begin)].decode()

    symbols = next(each for each in sections if each[1] == _SYMBOLS)

    def name(symbol: int) -> str:
        (offset,) = struct.unpack_from("<I", elf, symbols[4] + symbol * symbols[9])
        return text(symbols[6], offset)

    found: dict[int, dict[str, int]] = {_REGISTERS: {}, _FRAME: {}}
    for section in sections:
        if text(names, section[0]) == ".nv.info":
            at, end = section[4], section[4] + section[5]
            while at < end:
                form, attribute, length = struct.unpack_from("<BBH", elf, at)
                if form == _VALUE_OF_SYMBOL:
                    if attribute in found:
                        symbol, value = struct.unpack_from("<II", elf, at + 4)
                        found[attribute][name(symbol)] = value
                    at += length
                at += 4
    return {
        kernel: Compiled(registers, found[_FRAME].get(kernel, 0))
        for kernel, registers in found[_REGISTERS].items()
    }
