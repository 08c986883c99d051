"""The metadata keys of a tenant have a maximum number, whichever process or thread writes."""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from adapters import Damaged, Document, Scope
from orchestrator.indexing import metadata_keys
from orchestrator.indexing.metadata_keys import MetadataKeys
from orchestrator.indexing.ndjson import InvalidLine, ParsedLine, ValidLine
from tests.conftest import SCOPE
from tests.read_only import on_a_read_only_disk


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_keys, "MAX_METADATA_KEYS", 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "metadata-keys"


def line(number: int, *keys: str) -> ParsedLine:
    return ValidLine(number, Document(id=str(number), text="x", metadata=dict.fromkeys(keys, 1)))


def refused(number: int, key: str, count: int = 3) -> ParsedLine:
    return InvalidLine(
        number,
        f"metadata: '{key}' is not one of the {count} keys that this tenant's documents have, allowed are 3",
    )


def test_a_document_with_a_key_too_many_is_refused_and_the_others_are_not(folder: Path) -> None:
    other = InvalidLine(3, "no JSON")
    lines = [line(1, "a", "b"), line(2, "c", "d"), other, line(4, "b", "c"), line(5), line(6, "e"), line(7, "c")]
    checked = MetadataKeys(folder).checked(lines, SCOPE)
    assert list(checked) == [lines[0], refused(2, "c", 2), other, *lines[3:5], refused(6, "e"), lines[6]]


def test_keys_count_in_later_writes_and_after_a_restart_and_in_other_processes(folder: Path) -> None:
    first, second = MetadataKeys(folder), MetadataKeys(folder)
    for each, key in ((first, "a"), (second, "b"), (first, "c")):
        assert list(each.checked([line(1, key)], SCOPE)) == [line(1, key)]
    for each in (first, second, MetadataKeys(folder)):
        assert list(each.checked([line(1, "a", "b", "c"), line(2, "d")], SCOPE)) == [
            line(1, "a", "b", "c"),
            refused(2, "d"),
        ]


def test_the_keys_of_a_tenant_do_not_count_for_another(folder: Path) -> None:
    keys = MetadataKeys(folder)
    for scope in (SCOPE, Scope("other"), Scope(environment="other")):
        lines = [line(1, *(f"{scope.tenant} {scope.environment} {n}" for n in range(3)))]
        assert list(keys.checked(lines, scope)) == lines


def test_threads_do_not_lose_each_others_keys(folder: Path) -> None:
    keys = MetadataKeys(folder)
    with ThreadPoolExecutor(8) as threads:
        checked = [*threads.map(lambda n: keys.checked([line(n, str(n))], SCOPE), range(64))]
    assert sum(isinstance(each, ValidLine) for (each,) in checked) == 3


def test_on_a_read_only_disk_no_keys_are_added(python: str, folder: Path) -> None:
    MetadataKeys(folder).checked([line(1, "a")], SCOPE)
    program = """if True:
        import sys, pathlib
        from adapters import Document, Scope, Unavailable
        from orchestrator.indexing.metadata_keys import MetadataKeys
        from orchestrator.indexing.ndjson import ValidLine
        keys = MetadataKeys(pathlib.Path(sys.argv[1]))
        for metadata in ({"a": 1}, {"b": 1}):
            try:
                print(len(keys.checked([ValidLine(1, Document(id="a", text="x", metadata=metadata))], Scope())))
            except Unavailable as error:
                print(error)
    """
    command = [*on_a_read_only_disk(folder), python, "-c", program, folder]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.stdout == "1\nthe metadata keys cannot be read or written\n", done.stderr


def test_a_damaged_file_is_reported_and_named_for_operators(folder: Path) -> None:
    keys = MetadataKeys(folder)
    keys.checked([line(1, "a")], SCOPE)
    (path,) = folder.glob("*.keys")
    path.write_bytes(path.read_bytes()[:-1])
    assert list(keys.checked([line(2, "a")], SCOPE)) == [line(2, "a")]
    for each in (keys, MetadataKeys(folder)):
        with pytest.raises(Damaged) as error:
            each.checked([line(2, "b")], SCOPE)
        assert str(path) in error.value.for_operators
        assert list(each.checked([line(2, "b")], Scope("other"))) == [line(2, "b")]
        assert each.damaged() == [str(path)]
    path.unlink()
    assert list(keys.checked([line(2, "b")], SCOPE)) == [line(2, "b")]
    assert keys.damaged() == []


def used(*keys: str) -> Callable[[Scope, Sequence[str]], Awaitable[bool | None]]:
    async def has_documents(scope: Scope, asked: Sequence[str]) -> bool:
        return scope == SCOPE and not set(keys).isdisjoint(asked)

    return has_documents


@pytest.mark.anyio
async def test_keys_that_no_document_has_are_forgotten_and_make_room(folder: Path) -> None:
    keys, other = MetadataKeys(folder), MetadataKeys(folder)
    for each in (keys, other):
        each.checked([line(1, "a", "b", "c")], SCOPE)
    keys.checked([line(1, "a")], Scope("another"))
    await keys.recount(used("b"))
    for each in (keys, other, MetadataKeys(folder)):
        assert each.keys(SCOPE) == {"b"}
        assert each.keys(Scope("another")) == frozenset()
    assert list(other.checked([line(1, "d", "e")], SCOPE)) == [line(1, "d", "e")]
    assert keys.damaged() == []


@pytest.mark.anyio
async def test_nothing_is_forgotten_while_writes_are_not_applied(folder: Path) -> None:
    async def unknown(scope: Scope, keys: Sequence[str]) -> bool | None:
        return None

    keys = MetadataKeys(folder)
    keys.checked([line(1, "a")], SCOPE)
    await keys.recount(unknown)
    assert keys.keys(SCOPE) == {"a"}


@pytest.mark.anyio
async def test_the_keys_of_a_write_that_ends_during_a_recount_are_counted(folder: Path) -> None:
    """The write of the document waits for the end of the recount, and adds its key again."""
    keys = MetadataKeys(folder)
    keys.checked([line(1, "a")], SCOPE)
    adding: list[Future[None]] = []

    async def without_the_new_document(scope: Scope, asked: Sequence[str]) -> bool:
        if not adding:  # nothing is locked yet: the document is written after it was looked for
            adding.append(threads.submit(lambda: None))
        elif len(adding) == 1:
            adding.append(threads.submit(keys.add, {"a"}, SCOPE))
        return False

    with ThreadPoolExecutor(1) as threads:
        await keys.recount(without_the_new_document)
        for each in adding:
            each.result(10)
    assert keys.keys(SCOPE) == {"a"}
