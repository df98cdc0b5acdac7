"""
What users' own tests may use.

.. autofunction:: assert_pristine
"""

from __future__ import annotations

import sys


def assert_pristine() -> None:
    """Check that recording is off and that nothing of ours is installed in the host.

    Cheap enough to run before and after each test, as in this fixture::

        @pytest.fixture(autouse=True)
        def pristine():
            assert_pristine()
            yield
            assert_pristine()

    The mend of the released pytato, which has a lifetime of its own, is not looked at.

    :raises AssertionError: naming what is on, and every attribute that is still
        patched.
    """
    __tracebackhide__ = True
    # Whatever was not imported was not switched on either; a test of a saved record
    # is not to import the host.
    patching = sys.modules.get("pytato_provenance._patching")
    instrument = sys.modules.get("pytato_provenance.instrument")
    scope = sys.modules.get("pytato_provenance.scope")

    found: list[str] = []
    if scope is not None and scope.current_scope().record:
        found.append("recording is on here")
    if instrument is not None and instrument.active_strategy() is not None:
        found.append(f"the capture strategy '{instrument.active_strategy().name}' runs")
    if patching is not None:
        found.extend(f"{name} is patched" for name in patching.left_behind())
    if found:
        raise AssertionError("not pristine: " + "; ".join(found)
                             + ". Call pytato_provenance.disable() first.")
