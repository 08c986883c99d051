"""After a delete and ``tidy`` no file of the data folder has a word of a deleted document."""

from __future__ import annotations

from pathlib import Path

import trivium

WORDS = ("Quetzalcoatlus", "Ytterbium", "Zweibrücken", "Xochimilco", "Vrchlabí", "Wolfsburger")


def test_nothing_is_left_of_a_deleted_document(tmp_path: Path, model_dir: Path) -> None:
    title, text, tag, entity, key, value = WORDS
    folder = tmp_path / "data"
    with trivium.open(folder, model_dir=model_dir) as index:
        index.add(
            [
                {
                    "id": "a",
                    "title": title,
                    "text": f"About {text}.",
                    "tags": [tag],
                    "entities": [entity],
                    "metadata": {key: value},
                },
                *(
                    {"id": f"b{number}", "text": f"A document that stays, {number}.", "metadata": {"stays": 1}}
                    for number in range(60)
                ),
            ]
        )
        assert index.search(title).hits[0].id == "a"
        assert remaining(folder)
        assert index.delete("a")
        index.tidy()
        assert remaining(folder) == {}
        assert index.search("stays", filter={"op": "exists", "field": "metadata.stays"}).hits[0].id.startswith("b")
        warnings = index.search("stays", filter={"op": "exists", "field": f"metadata.{key}"}).warnings
        assert key in str(warnings)


def remaining(folder: Path) -> dict[str, list[str]]:
    """The words in each file, in capital letters or not."""
    found = {}
    for path in folder.rglob("*"):
        content = path.read_bytes().lower() if path.is_file() else b""
        if words := [word for word in WORDS if word.lower().encode() in content]:
            found[str(path.relative_to(folder))] = words
    return found
