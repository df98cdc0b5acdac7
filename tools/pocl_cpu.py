"""Let the PoCL of the package index build kernels on processors newer than itself.

``pocl-binary-distribution`` 3.0 carries LLVM 14. On an x86 processor that LLVM does not
know by name, it names it ``generic``, which its own OpenCL compiler then refuses
(``unknown target CPU 'generic'``): no kernel builds at all. Later releases of PoCL fall
back on a processor that they know; none of those is on the index.

Run by the interpreter of a virtual environment, this file tries to build a kernel.
Where that fails, and for this reason, it puts itself into that environment, started by
a ``.pth`` file, and from then on replaces the name that PoCL found as soon as pyopencl
is imported. Everywhere else it changes nothing.

    .venv/bin/python tools/pocl_cpu.py
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# PoCL keeps the pointers that it was given.
_names: list[Any] = []


def _processor() -> bytes:
    """The newest processor known to LLVM 14 that this one can stand in for."""
    flags: set[str] = set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = set(line.split())
            break
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
        return b"skylake-avx512"
    if {"avx2", "bmi2", "fma", "f16c", "movbe"} <= flags:
        return b"haswell"
    return b"x86-64"


def _name_processor(device: Any) -> None:
    """Replace ``llvm_cpu`` in PoCL's record of *device*."""
    # Read through the kernel: a word that is no address is then an error to catch.
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        record = os.pread(memory, 2048, device.int_ptr)
        for index, (word,) in enumerate(struct.iter_unpack("P", record)):
            try:
                text = os.pread(memory, 8, word) if word >> 47 == 0 else b""
            except OSError:
                continue
            if text == b"generic\0":
                name = ctypes.create_string_buffer(_processor())
                _names.append(name)
                slot = ctypes.c_void_p.from_address(device.int_ptr + index * 8)
                slot.value = ctypes.addressof(name)
    finally:
        os.close(memory)


def _name_processors(pyopencl: ModuleType) -> None:
    try:
        devices = [d for p in pyopencl.get_platforms() for d in p.get_devices()]
    except pyopencl.Error:
        return
    for device in devices:
        if "PoCL" in device.version and device.version.rstrip().endswith("-generic"):
            _name_processor(device)


class _AfterPyOpenCL:
    """An import hook that acts once, when pyopencl has been imported."""

    asking = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
        /,
    ) -> ModuleSpec | None:
        del path, target
        if fullname != "pyopencl" or self.asking:
            return None
        self.asking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.asking = False
        if spec is None or spec.loader is None:
            return None
        loader = spec.loader

        def exec_module(module: ModuleType) -> None:
            sys.meta_path[:] = [f for f in sys.meta_path if f is not self]
            del loader.exec_module
            loader.exec_module(module)
            _name_processors(module)

        loader.exec_module = exec_module
        return spec


def _error_of_a_build() -> str:
    """What is wrong when a kernel is built in a fresh process; "" if nothing is."""
    program = (
        "import pyopencl as cl\n"
        "devices = [d for p in cl.get_platforms() for d in p.get_devices()]\n"
        "source = 'kernel void f(global double *a) { a[0] = sin(a[1]); }'\n"
        "cl.Program(cl.Context(devices[:1]), source).build(cache_dir=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    return "" if done.returncode == 0 else done.stderr or "crashed"


def main() -> int:
    error = _error_of_a_build()
    if "unknown target CPU" in error:
        site_packages = Path(sysconfig.get_path("purelib"))
        shutil.copy(__file__, site_packages / "pocl_cpu.py")
        (site_packages / "pocl_cpu.pth").write_text("import pocl_cpu\n")
        error = _error_of_a_build()
        if not error:
            name = _processor().decode()
            print(f"PoCL does not know this processor; it is told to take {name}.")
    if error:
        lines = [line.strip() for line in error.splitlines() if "rror" in line]
        print(
            f"OpenCL cannot build a kernel here ({lines[-1] if lines else error}). "
            "Install an OpenCL driver for this machine (Debian, Ubuntu: apt install "
            "pocl-opencl-icd)."
        )
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
elif __name__ == "pocl_cpu":
    sys.meta_path.insert(0, _AfterPyOpenCL())
