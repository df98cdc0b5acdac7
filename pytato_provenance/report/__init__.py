"""
A record, for people.

Nothing here needs a host. A kind of report is one file that takes a
:class:`~pytato_provenance.record.Record`.
"""

from __future__ import annotations
