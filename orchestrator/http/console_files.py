"""``GET /``: the console, static files of the package. It is a client of the API like any other.

The page may load nothing from elsewhere and run no script that is not one of these files, and a text never becomes
markup (Content Security Policy Level 3, Trusted Types).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from mimetypes import guess_type
from typing import NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from orchestrator.http.endpoint import serves
from orchestrator.http.errors import HttpError
from orchestrator.http.request_context import HttpContext
from orchestrator.http.routes import CONSOLE, CONSOLE_FILE

_FOLDER = "console"
_PAGE = "index.html"
_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _File(NamedTuple):
    content: bytes
    media_type: str
    etag: str


router = APIRouter()


@serves(router, CONSOLE)
async def page(context: HttpContext) -> Response:
    """The page."""
    return _response(context, _PAGE)


@serves(router, CONSOLE_FILE)
async def file(context: HttpContext) -> Response:
    """A script, a style sheet or an image."""
    return _response(context, context.request.path_params["id"])


def _response(context: HttpContext, name: str) -> Response:
    if not context.service.settings.server.console:
        raise HttpError(404, "the console is switched off by TRIVIUM_CONSOLE")
    if (found := _files().get(name)) is None:
        raise HttpError(404, f"the console has no file {name[:80]!r}")
    headers = {**_HEADERS, "ETag": found.etag}
    known = context.headers.get(b"if-none-match", b"").decode("latin-1").split(",")
    if any(each.strip().removeprefix("W/") in (found.etag, "*") for each in known):
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)


@cache
def _files() -> Mapping[str, _File]:
    """The files by path, read once."""
    root = files(__package__).joinpath(_FOLDER)
    found = {}
    for name, each in _below(root, ""):
        content = each.read_bytes()
        media_type = guess_type(name)[0] or "text/plain"
        found[name] = _File(content, media_type, f'"{sha256(content).hexdigest()[:32]}"')
    return found


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _below(each, f"{prefix}{each.name}/")
        else:
            yield prefix + each.name, each
