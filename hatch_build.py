"""When the package is built: builds the embedding model, and compiles the walk and the search of HNSW graphs.

Without a C++ compiler these are done by numpy and faiss.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

_MODULES = ("fusion/walk_kernel", "adapters/vector/hnsw_kernel")
_COMPILED = [f"/{name}.*.{suffix}" for name in _MODULES for suffix in ("so", "pyd")]
_MODEL = "adapters/encoders/model"
# No fused multiply-add: the results have to be those of numpy, to the last bit.
_FLAGS = [] if sys.platform == "win32" else ["-O3", "-ffp-contract=off"]


class BuildHook(BuildHookInterface[Any]):
    """Builds all of it beside its sources, also for an editable installation.

    Git ignores what is built. The wheel gets it as an artifact.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: D102  # see the base class
        del version
        _build_model(Path(self.root))
        build_data["artifacts"].append(f"/{_MODEL}/*")
        compiled = [path.exists() for path in _compile()]
        if not all(compiled):
            self.app.display_warning("no C++ compiler works: searches of vectors and of the graph take longer")
        if any(compiled):
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"] += _COMPILED


def _build_model(root: Path) -> None:
    spec = spec_from_file_location("build_model", root / "adapters/encoders/model_build.py")
    assert spec  # noqa: S101  # the file is there
    assert spec.loader  # noqa: S101
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.build(root / _MODEL)


def _compile() -> list[Path]:
    """The paths of the extension modules, whether they could be compiled or not."""
    sources = {name.replace("/", "."): f"{name}.pyx" for name in _MODULES}
    with tempfile.TemporaryDirectory() as folder:
        extensions = [Extension(name, [source], extra_compile_args=_FLAGS) for name, source in sources.items()]
        modules = cythonize(extensions, build_dir=folder, quiet=True)
        for module in modules:
            module.optional = True  # cythonize would drop it
        command = build_ext(
            Distribution({"name": "trivium", "packages": ["adapters", "fusion"], "ext_modules": modules})
        )
        command.inplace = True
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        paths = [Path(command.get_ext_fullpath(name)) for name in sources]
        for path in paths:
            path.unlink(missing_ok=True)  # of an earlier source
        command.run()
    return paths
