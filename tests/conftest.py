"""What all tests share: the run's header, the OpenCL device, a clean host."""

from __future__ import annotations

import functools
import importlib
import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from pytato_provenance import disable
from pytato_provenance._host import host
from pytato_provenance._released_pytato import is_mended, mend_released_pytato
from pytato_provenance.testing import assert_pristine


if TYPE_CHECKING:
    from collections.abc import Iterator

mend_released_pytato()

hypothesis.settings.register_profile(
    "default", deadline=None, derandomize=True, max_examples=25
)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("default")


def _versions() -> str:
    found: list[str] = []
    for name in ("pytato", "loopy", "arraycontext", "pyopencl", "pytools", "pymbolic",
                 "numpy", "islpy"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def _builds(device: Any) -> bool:
    import pyopencl as cl

    program = cl.Program(cl.Context([device]), "kernel void f() {}")
    try:
        program.build(cache_dir=False)
    except cl.Error:
        return False
    return True


@functools.cache
def _device() -> Any:
    """The device that tests run on: PoCL's, or else the first that builds a kernel."""
    import pyopencl as cl

    devices = [d for p in cl.get_platforms() for d in p.get_devices()]
    devices.sort(key=lambda d: "Portable Computing Language" not in d.platform.name)
    for device in devices:
        if _builds(device):
            return device
    raise LookupError(
        f"none of {len(devices)} OpenCL devices builds a kernel. Try "
        f"{sys.executable} tools/pocl_cpu.py"
    )


def _device_line() -> str:
    try:
        device = _device()
    except Exception as error:
        return f"none ({type(error).__name__}: {error})"
    platform_version = " ".join(device.platform.version.split()[:5]).rstrip(",")
    return f"{device.name.strip()} ({platform_version})"


def _has_compiled_part() -> bool:
    try:
        importlib.import_module("pytato_provenance.capture._walk")
    except ImportError:
        return False
    return True


def pytest_report_header() -> list[str]:
    mended = ", mended" if is_mended() else ""
    return [
        f"host: the {host().name} pytato{mended}; {_versions()}",
        f"python: {platform.python_implementation()} {platform.python_version()}, "
        f"{'with' if _has_compiled_part() else 'without'} the compiled part",
        f"device: {_device_line()}",
    ]


@pytest.fixture(scope="session")
def cl_ctx() -> Any:
    import pyopencl as cl

    return cl.Context([_device()])


@pytest.fixture(scope="session")
def queue(cl_ctx: Any) -> Any:
    import pyopencl as cl

    return cl.CommandQueue(cl_ctx)


@pytest.fixture(autouse=True)
def pristine() -> Iterator[None]:
    """Nothing of ours is installed in the host before a test, nor left after it."""
    assert_pristine()
    yield
    try:
        assert_pristine()
    finally:
        # One test that fails is not to take the others along.
        disable()


@pytest.fixture
def disabled_afterwards() -> Iterator[None]:
    """For tests that record."""
    yield
    disable()
