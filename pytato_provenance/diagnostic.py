"""
Every exception and warning of the project. Each message says what to do.

.. autoexception:: ProvenanceError
.. autoexception:: UsageError
.. autoexception:: CaptureUnavailableError
.. autoexception:: HostMissingError
.. autoexception:: NoDeviceError
.. autoexception:: NotAnArrayError
.. autoexception:: ProvenanceLostError
.. autoexception:: ProvenanceWarning
.. autoexception:: RecordError
"""

from __future__ import annotations


class ProvenanceError(Exception):
    """Base class of everything that this package raises."""


class UsageError(ProvenanceError):
    """The input is wrong; the command line answers with exit status 2."""


class CaptureUnavailableError(UsageError):
    """The capture strategy cannot work here, now; the message names one that can."""


class HostMissingError(UsageError, ImportError):
    """pytato, loopy or arraycontext is not installed, or lacks what is needed."""


class NoDeviceError(UsageError):
    """OpenCL offers no device."""


class NotAnArrayError(UsageError, TypeError):
    """An array was expected."""


class ProvenanceLostError(ProvenanceError):
    """A transform lost creation sites while ``recording(audit="raise")`` was on."""


class ProvenanceWarning(UserWarning):
    """Something could not be recorded; the program itself is unharmed."""


class RecordError(UsageError):
    """What should be a record of a run cannot be read."""
