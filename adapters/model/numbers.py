"""Exact order of whole numbers of 64 bits and doubles together: ``2 ** 53 + 1`` is a number of its own."""

from __future__ import annotations

import math
import struct

MIN_WHOLE, MAX_WHOLE = -(2**63), 2**63 - 1
"""The range of whole numbers in documents and filters."""
DIGITS = 19
"""Hexadecimal digits of :func:`sortable`: 16 of the double, 3 of the rest."""
_REST_BITS = 12


def plain(number: float) -> float:
    """The form in which a number is stored and compared: a double, unless a whole number is none."""
    double = float(number)
    return double if double == number else number


def split(number: float) -> tuple[float, int]:
    """The largest double that is not larger, and what is missing: 0 to 1,023, and not 0 only beyond ``2 ** 53``."""
    double = float(number)
    if double > number:
        double = math.nextafter(double, -math.inf)
    return double, 0 if double == number else int(number) - int(double)


def sortable(number: float) -> int:
    """A whole number of 76 bits; these are ordered as the numbers are.

    IEEE 754 doubles are ordered as their bits, with the bits of negative numbers inverted and the sign bit flipped.
    """
    double, rest = split(number)
    bits = int(struct.unpack(">Q", struct.pack(">d", double + 0.0))[0])  # + 0.0 makes -0.0 the same as 0.0
    ordered = bits ^ 0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else bits | 1 << 63
    return ordered << _REST_BITS | rest


def of_sortable(number: int) -> float:
    """The number of :func:`sortable`; of one beyond ``2 ** 53`` the double that :func:`split` returns."""
    ordered = number >> _REST_BITS
    bits = ordered ^ 1 << 63 if ordered >> 63 else ordered ^ 0xFFFF_FFFF_FFFF_FFFF
    return float(struct.unpack(">d", struct.pack(">Q", bits))[0])
