from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adapters import Unavailable
from adapters.encoders import model_files
from adapters.encoders.minilm import MiniLM
from adapters.ports.encoders import MAX_QUERY_CHARS, EncodedText, Matrix

pytestmark = pytest.mark.anyio

TEXTS = ["The cat sits on the mat.", "A feline rests on a rug.", "Stock markets fell sharply.", "", "日本語 🦊"]


def encoded(model: MiniLM, *texts: str) -> list[Matrix]:
    return model.encode_texts(list(map(EncodedText, texts)))


async def test_similar_texts_have_similar_vectors_of_unit_length(model: MiniLM) -> None:
    vectors = np.concatenate(encoded(model, *TEXTS))
    assert vectors.shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]


async def test_a_query_and_a_document_of_the_same_text_have_the_same_vector(model: MiniLM) -> None:
    assert model.encode(TEXTS[0]) @ encoded(model, TEXTS[0])[0][0] > 0.999


async def test_a_batch_gives_the_vectors_of_its_single_texts(model: MiniLM) -> None:
    texts = [f"{'word ' * n} number {n}" for n in range(0, 200, 9)]
    together = np.concatenate(encoded(model, *texts))
    single = np.concatenate([encoded(model, text)[0] for text in texts])
    # Dynamic quantisation takes its scale from the whole batch, so equal only up to that.
    assert (together * single).sum(axis=1).min() > 0.97


async def test_a_long_text_has_a_vector_for_each_of_its_windows(model: MiniLM) -> None:
    filler = "nothing of interest happens here " * 100  # 500 tokens
    (windows,), (query,) = (
        encoded(model, filler + "The recipe needs flour, eggs and butter. " * 5 + filler),
        encoded(model, "a cake recipe with flour and eggs"),
    )
    cosines = windows @ query[0]
    assert cosines.argmax() in {2, 3}
    assert cosines.max() > cosines[0] + 0.2


@pytest.mark.parametrize(("words", "windows"), [(0, 1), (254, 1), (255, 2), (444, 2), (445, 3), (100_000, 32)])
async def test_windows_overlap_and_are_bounded(model: MiniLM, words: int, windows: int) -> None:
    assert encoded(model, "x " * words)[0].shape == (windows, 384)


async def test_every_token_is_in_a_window_and_a_short_passage_in_one_as_a_whole(model: MiniLM) -> None:
    for count in range(1, 1_000, 7):
        windows = model._windows(EncodedText("x " * count))
        assert 190 * (len(windows) - 1) + len(windows[-1]) == count
        assert all(len(window) == 254 for window in windows[:-1])
        assert len(windows) == 1 or len(windows[-1]) > 64


async def test_as_much_of_what_is_around_a_text_is_encoded_as_fits_into_its_window(model: MiniLM) -> None:
    def windows(**fields: str) -> list[int]:
        return [len(each) for each in model._windows(EncodedText(**fields))]

    def ids(text: str) -> list[int]:
        return model.tokens.tokenizer.encode(text, add_special_tokens=False).ids

    (window,) = model._windows(EncodedText("text", "title", "one two", "three four"))
    assert window == ids("title one two text three four")
    (window,) = model._windows(EncodedText("x " * 250, "", "one two three", "four"))
    assert window == ids("one two three" + " x" * 250 + " four")
    (window,) = model._windows(EncodedText("x " * 250, "title", "one two three", "four five"))
    assert window == ids("title three" + " x" * 250 + " four five")
    assert windows(text="x " * 254, before="one", after="two") == [254]
    assert windows(text="x " * 300, before="one", after="two") == windows(text="x " * 300)


async def test_a_long_query_is_cut_before_it_is_split_into_tokens(model: MiniLM) -> None:
    """The first word is one token, so many more would be read if all characters were split."""
    word = "x" * MAX_QUERY_CHARS
    assert np.array_equal(model.encode(f"{word} flour and eggs"), model.encode(word))
    assert not np.array_equal(model.encode(f"{word[1_000:]} flour and eggs"), model.encode(word[1_000:]))


@pytest.mark.skipif(sys.platform != "linux", reason="only there threads have priorities of their own")
@pytest.mark.parametrize(("niceness", "of_threads"), [(0, 10), (15, 15)])
def test_documents_are_encoded_at_a_low_priority(python: str, niceness: int, of_threads: int) -> None:
    """The niceness that the kernel reports while a process of this niceness encodes the documents."""
    code = """
import os, pathlib, sys
os.setpriority(os.PRIO_PROCESS, 0, int(sys.argv[1]))  # before there are threads
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from adapters.encoders.minilm import MiniLM
from adapters.ports.encoders import EncodedText

model, seen = MiniLM(), set()
with ThreadPoolExecutor(1) as pool:
    encoding = pool.submit(model.encode_texts, [EncodedText("word " * 200)] * 50)
    while not encoding.done():
        for path in pathlib.Path("/proc/self/task").glob("*/stat"):
            with suppress(OSError):  # the thread has ended
                seen.add(int(path.read_text().rpartition(")")[2].split()[16]))
encoding.result()
print(*sorted(seen), os.getpriority(os.PRIO_PROCESS, 0))
"""
    command = [python, "-c", code, str(niceness)]
    printed = subprocess.check_output(command, cwd=Path(__file__).parents[3], text=True)
    assert printed.split() == [*map(str, sorted({niceness, of_threads})), str(niceness)]


def test_nothing_is_reported_to_anyone(python: str, tmp_path: Path) -> None:
    """onnxruntime stores an identifier of the machine in the home directory before it reports anything."""
    code = "from adapters.encoders.minilm import MiniLM; MiniLM().encode('a')"
    env = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    env |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([python, "-c", code], env=env, cwd=Path(__file__).parents[3], check=True)
    assert list(tmp_path.rglob("*")) == []


# Its files


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the installed files, in the place of which they are used."""
    folder = tmp_path / "model"
    shutil.copytree(model_files._FOLDER, folder)
    monkeypatch.setattr(model_files, "_FOLDER", folder)
    return folder


def test_the_installed_files_are_those_that_were_built(installed: Path) -> None:
    assert MiniLM().identity == "minilm-l6-int8-r2h-53aa5117"
    assert sorted(path.name for path in installed.iterdir()) == ["manifest.json", "model.onnx", "tokenizer.json"]


@pytest.mark.parametrize("name", ["manifest.json", "model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_files_that_are_not_what_was_built_are_refused(installed: Path, name: str, damage: str) -> None:
    path = installed / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(Unavailable, match=r"the embedding model .*: install Trivium again"):
        MiniLM()
