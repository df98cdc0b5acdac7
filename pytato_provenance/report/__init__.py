"""
A record, for people.

.. automodule:: pytato_provenance.report.text
.. automodule:: pytato_provenance.report.html
.. automodule:: pytato_provenance.report.map

Nothing here needs a host. A kind of report is one file that takes a
:class:`~pytato_provenance.record.Record`.
"""

from __future__ import annotations
