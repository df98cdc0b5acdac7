"""
From arrays to a running kernel: what each stage of it took, and for which lines.

* ``events``: what happened in a stage, and of which arrays a program consists.
* ``log``: the log, what it selects, what it adds up to.
* ``stages``: the stage that is under way; who is told.
* ``programs``: which program a kernel belongs to.
* ``marks``, ``hooks``: what runs in the hosts' place; ``patch_points``: the table.
* ``writers``: events as text, JSON lines and a trace.
* ``precompile``, ``names``: for use before it counts, and names of kernels.
"""

from __future__ import annotations
