"""
From arrays to a running kernel: what each stage of it took, and for which lines.

.. automodule:: pytato_provenance.compilation.log
.. automodule:: pytato_provenance.compilation.events
.. automodule:: pytato_provenance.compilation.precompile
"""

from __future__ import annotations
