from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.settings import Settings, SettingsError, read
from tests.secrets import keep_out

README = Path(__file__).parents[2] / "README.md"


keep_out("s3cr3t-w0rd")


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIVIUM_DEFAULT_COLLECTIONS", "a, b,,")
    monkeypatch.setenv("TRIVIUM_FUSION", "rrf")
    chosen = read()
    assert (chosen.data_dir, chosen.default_collections, chosen.fusion) == (tmp_path, ("a", "b"), "rrf(k=60)")


def test_folders_are_absolute_and_of_the_user() -> None:
    chosen = read(data_dir="~/x", model_dir="y")
    assert chosen.data_dir == Path.home() / "x"
    assert chosen.model_dir == Path.cwd() / "y"


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("TRIVIUM_DEPTH", "3", "TRIVIUM_DEPTH is '3': input should be greater than or equal to 10"),
        ("TRIVIUM_VECTOR", "chroma://x", r"must be one of qdrant\+grpc://.*embedded://"),
        ("TRIVIUM_VECTOR", "qdrant+grpc://u:s3cr3t-w0rd@h", "give its key as TRIVIUM_QDRANT_API_KEY"),
        ("TRIVIUM_GRAPH", "bolt://u:s3cr3t-w0rd@h:x", "not an address: write scheme://host:port"),
        ("TRIVIUM_GRAPH", "bolt://u:s3cr/et@h:7687", "not an address"),
        ("TRIVIUM_GRAPH", "u:s3cr3t-w0rd@h:7687", "must be one of bolt://"),
        ("TRIVIUM_GRAPH", "bolt://u:s3cr#et@h:7687", "not an address"),
        ("TRIVIUM_KEYWORD", "opensearch+http://", "not an address"),
        ("TRIVIUM_KEYWORD", "opensearch+http://h/index", "not an address"),
        ("TRIVIUM_INDEX_NAME", "Über", "should match pattern"),
        ("TRIVIUM_EXTRACTOR", "magic", "rules://|none://|python://"),
        ("TRIVIUM_FUSION", "best", "allowed are concatenate\\(\\), dbsf"),
        ("TRIVIUM_OPEN_CLEARANCE", "all", "TRIVIUM_OPEN_CLEARANCE is 'all': input should be 'public'"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=complaint) as caught:
        read()
    assert "s3cr" not in str(caught.value)


def test_the_readme_s_table_is_the_settings() -> None:
    """``python -m docs.settings_table`` prints it."""
    from docs.settings_table import table

    assert table(Settings) in README.read_text()


@pytest.mark.parametrize("name", ["qdrant_api_key", "reranker_api_key"])
@pytest.mark.parametrize("key", ["a key", "cl\u00e9-secret", "secret\nsecret"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(name: str, key: str) -> None:
    with pytest.raises(SettingsError, match=f"TRIVIUM_{name.upper()} is not allowed") as caught:
        read(**{name: key})
    assert "secret" not in str(caught.value)
    assert read(**{name: "secret\n"}).model_dump()[name].get_secret_value() == "secret"


@pytest.mark.parametrize(
    ("name", "value"),
    [("expander", "bogus"), ("expander", "python://nope"), ("reranker", "python://nope"), ("reranker", "chat+x://h")],
)
def test_an_address_that_is_none_is_refused_at_the_start(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"TRIVIUM_{name.upper()} is "):
        read(**{name: value})


@pytest.mark.parametrize("value", ["redis://", "http://host", "memory", "redis://:pa$$word@:x"])
def test_a_cache_that_is_none_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(SettingsError, match=r"TRIVIUM_CACHE is not allowed: .*memory:// and redis://") as caught:
        read(cache=value)
    assert "pa$$word" not in str(caught.value)
