"""
What recording costs: the rows of the target table, measured.

``python -m benchmarks`` prints one table and writes JSON. Absolute times mean little on
shared machines: all variants of a row run interleaved in one process (or, where a
process cannot go back, in processes that take turns), and a row is a median of ratios
with its quartiles.
"""

from __future__ import annotations
