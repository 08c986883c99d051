"""``make console-pictures``: pictures of the console on the demo's documents, in dist/console; one is docs/console.png.

Needs Chromium and npm.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.orchestrator.http.console import tools
from tests.orchestrator.served import serving
from tests.servers.start import find_program

_TARGET = Path("dist/console")
_PICTURE = Path(__file__).parent / "console.png"
_QUERY = "run a subprocess and capture its output"
_DOCUMENT = '["subprocess.run","python"]'


def main() -> None:
    """Take them. The index is that of ``make demo``, in the data folder."""
    chromium = find_program("chromium", "the package chromium of Debian")
    npm = find_program("npm", "the package npm of Debian")
    _TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, serving(dict(os.environ)) as (_, address):
        tools.install(npm, Path(folder))
        script = str(tools.HERE / "pictures.mjs")
        variables = {"address": address, "target": str(_TARGET), "query": _QUERY, "document": _DOCUMENT}
        ended = tools.run([script], chromium, Path(folder), **variables)
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    shutil.copy(_TARGET / "search-1280-light.png", _PICTURE)


if __name__ == "__main__":
    main()
