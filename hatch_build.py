"""Compiles the walk when the package is built. Without a C compiler the package is built all the same, and slower."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

_MODULE, _SOURCE = "fusion.walk_kernel", "fusion/walk_kernel.pyx"
_BUILT = ["/fusion/walk_kernel.*.so", "/fusion/walk_kernel.*.pyd"]  # git ignores them; the wheel must not
# No fused multiply-add: the results have to be those of numpy, to the last bit.
_FLAGS = [] if sys.platform == "win32" else ["-O2", "-ffp-contract=off"]


class CompiledWalk(BuildHookInterface[Any]):
    """Builds the extension module beside its source, also for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: D102  # see the base class
        del version
        with tempfile.TemporaryDirectory() as folder:
            extension = Extension(_MODULE, [_SOURCE], extra_compile_args=_FLAGS)
            (module,) = cythonize([extension], build_dir=folder, quiet=True)
            module.optional = True  # cythonize would drop it
            command = build_ext(Distribution({"name": "trivium", "packages": ["fusion"], "ext_modules": [module]}))
            command.inplace, command.build_temp = True, folder
            command.ensure_finalized()
            built = Path(command.get_ext_fullpath(_MODULE))
            built.unlink(missing_ok=True)  # of an earlier source
            command.run()
        if not built.exists():
            self.app.display_warning("no C compiler works: the walk over the graph is not compiled and takes longer")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"] += _BUILT
