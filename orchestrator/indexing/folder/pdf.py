"""The text of a PDF."""

from __future__ import annotations

from adapters.ports import optional_packages
from orchestrator.indexing.folder.decode import NoText, Unreadable


def read(content: bytes) -> tuple[str, dict[str, str]]:
    """The pages, with an empty line between them, and what the file says of itself: its title, keywords, date.

    :raises Unreadable: if it is no PDF, or has a password.
    :raises NoText: if it has none: its pages may be images.
    :raises Unavailable: if the package for PDF is not installed.
    """
    with optional_packages.extra("documents"):  # noqa: S610, no part of Django
        import pypdfium2  # noqa: PLC0415
    try:
        with pypdfium2.PdfDocument(content) as document:
            given = document.get_metadata_dict(skip_empty=True)
            pages = [_text(document, index) for index in range(len(document))]
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"the PDF cannot be read: {error}") from error
    fields = {"title": given.get("Title"), "keywords": given.get("Keywords"), "date": given.get("CreationDate")}
    fields["author"] = given.get("Author")
    if not any(pages):
        raise NoText("PDF files without text")
    return "\n\n".join(page for page in pages if page), {key: value for key, value in fields.items() if value}


def _text(document: object, index: int) -> str:
    page = document[index]  # type: ignore[index]
    text_page = page.get_textpage()
    text: str = text_page.get_text_bounded()
    text_page.close()
    page.close()
    return text.replace("\r\n", "\n").replace("\x02", "").strip()
