"""Compiles the walk and the sorting when the package is built. Without a C++ compiler both are done by numpy."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

_MODULES = ("walk_kernel", "sort_kernel")
_BUILT = [f"/fusion/{name}.*.{suffix}" for name in _MODULES for suffix in ("so", "pyd")]
"""Git ignores them; the wheel must not."""
# No fused multiply-add: the results have to be those of numpy, to the last bit.
_FLAGS = [] if sys.platform == "win32" else ["-O2", "-ffp-contract=off"]


class CompiledKernels(BuildHookInterface[Any]):
    """Builds the extension modules beside their sources, also for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: D102  # see the base class
        del version
        sources = {f"fusion.{name}": f"fusion/{name}.pyx" for name in _MODULES}
        with tempfile.TemporaryDirectory() as folder:
            extensions = [Extension(name, [source], extra_compile_args=_FLAGS) for name, source in sources.items()]
            modules = cythonize(extensions, build_dir=folder, quiet=True)
            for module in modules:
                module.optional = True  # cythonize would drop it
            command = build_ext(Distribution({"name": "trivium", "packages": ["fusion"], "ext_modules": modules}))
            command.inplace, command.build_temp = True, folder
            command.ensure_finalized()
            built = [Path(command.get_ext_fullpath(name)) for name in sources]
            for path in built:
                path.unlink(missing_ok=True)  # of an earlier source
            command.run()
        if not all(path.exists() for path in built):
            self.app.display_warning("no C++ compiler works: walks over the graph and sorting take longer")
        if any(path.exists() for path in built):
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"] += _BUILT
