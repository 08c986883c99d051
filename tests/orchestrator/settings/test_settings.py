"""The settings: read from the environment and from a file, checked, and named in errors."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from orchestrator.settings import Settings, SettingsError, load, setting_fields
from orchestrator.settings.loading import environment_of
from tests.secrets import register_secret

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"


register_secret("s3cr3t-w0rd")


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIVIUM_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIVIUM_DEFAULT_COLLECTIONS", "a, b,,")
    monkeypatch.setenv("TRIVIUM_FUSION", "rrf")
    settings = load()
    assert settings.storage.data_dir == tmp_path
    assert settings.access.default_collections == ("a", "b")
    assert settings.ranking.fusion == "rrf(k=60)"


def test_folders_are_absolute_and_a_tilde_is_the_home_folder() -> None:
    storage = load(data_dir="~/x", model_dir="y").storage
    assert storage.data_dir == Path.home() / "x"
    assert storage.model_dir == Path.cwd() / "y"


def test_default_folders_are_absolute_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("folder")
    monkeypatch.delenv("TRIVIUM_MODEL_DIR", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    for settings in (load(), load(tenant="acme"), Settings(), load(data_dir="x")):
        assert settings.storage.model_dir == home / ".cache" / "trivium"
        assert settings.storage.data_dir in {folder / ".trivium", folder / "x"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "TRIVIUM_CANDIDATES_PER_SOURCE",
            "3",
            "TRIVIUM_CANDIDATES_PER_SOURCE is '3', allowed are 10 to 1000$",
        ),
        ("TRIVIUM_VECTOR", "chroma://x", r"must be one of qdrant\+grpc://.*embedded://"),
        ("TRIVIUM_VECTOR", "qdrant+grpc://u:s3cr3t-w0rd@h", "give its key as TRIVIUM_QDRANT_API_KEY"),
        ("TRIVIUM_GRAPH", "bolt://u:s3cr3t-w0rd@h:x", "not an address: write scheme://host:port"),
        ("TRIVIUM_GRAPH", "bolt://u:s3cr/et@h:7687", "not an address"),
        ("TRIVIUM_GRAPH", "u:s3cr3t-w0rd@h:7687", "must be one of bolt://"),
        ("TRIVIUM_GRAPH", "bolt://u:s3cr#et@h:7687", "not an address"),
        ("TRIVIUM_KEYWORD", "opensearch+http://", "not an address"),
        ("TRIVIUM_KEYWORD", "opensearch+http://h/index", "not an address"),
        ("TRIVIUM_INDEX_NAME", "Über", "is 'Über', allowed are texts of the form"),
        ("TRIVIUM_OPEN_CLEARANCE", "norml", "; the nearest is normal$"),
        ("TRIVIUM_RERANK", "yess", "TRIVIUM_RERANK is 'yess', allowed are true, false$"),
        ("TRIVIUM_CACHE_BYTES", "many", "is 'many', allowed are 65536 to 68719476736$"),
        ("TRIVIUM_WEIGHTS", "vector=x", "is 'x', allowed are name=number, separated by commas$"),
        ("TRIVIUM_STRICT", "1", "TRIVIUM_STRICT is '1', allowed are true, false$"),
        ("TRIVIUM_ENTITY_EXTRACTOR", "magic", "rules://|none://|python://"),
        ("TRIVIUM_FUSION", "best", "allowed are concatenate\\(\\), dbsf"),
        (
            "TRIVIUM_OPEN_CLEARANCE",
            "all",
            "is .all., allowed are public, normal, sensitive, restricted$",
        ),
    ],
)
def test_an_invalid_value_is_reported_without_a_password(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=message) as caught:
        load()
    assert "s3cr" not in str(caught.value)


def test_the_reference_contains_the_tables_of_settings() -> None:
    """``python -m docs.settings_table`` prints them."""
    from docs.settings_table import tables

    assert tables() in REFERENCE.read_text()
    assert all(f"| `TRIVIUM_{name.upper()}` |" in tables() for name in setting_fields())


@pytest.mark.parametrize("name", ["qdrant_api_key", "reranker_api_key"])
@pytest.mark.parametrize("key", ["a key", "cl\u00e9-secret", "secret\nsecret"])
def test_a_key_that_no_header_can_contain_is_refused_and_not_shown(name: str, key: str) -> None:
    with pytest.raises(SettingsError, match=f"TRIVIUM_{name.upper()} is not allowed") as caught:
        load(**{name: key})
    assert "secret" not in str(caught.value)
    assert load(**{name: "secret\n"}).value(name).get_secret_value() == "secret"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("query_expansion", "bogus"),
        ("query_expansion", "python://nope"),
        ("reranker", "python://nope"),
        ("reranker", "chat+x://h"),
    ],
)
def test_an_invalid_address_of_a_plug_in_is_refused_at_the_start(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"TRIVIUM_{name.upper()} is "):
        load(**{name: value})


@pytest.mark.parametrize(
    "value", ["redis://", "http://host", "memory", "redis://:pa$$word@:x", "redis://host/abc", "redis://host/0/1"]
)
def test_an_invalid_cache_address_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(SettingsError, match=r"TRIVIUM_CACHE is not allowed: .*memory:// and redis://") as caught:
        load(cache=value)
    assert "pa$$word" not in str(caught.value)


@pytest.mark.parametrize("text", ["vector=2,graph=0.5", " graph = 0.5 , vector = 2,", "graph=.5,vector=2e0"])
def test_weights_are_pairs_of_source_and_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TRIVIUM_WEIGHTS", text)
    assert load().ranking.weights == {"graph": 0.5, "vector": 2.0}


def test_strengths_of_links_are_pairs_of_type_and_two_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().ranking.link_strengths == {}
    monkeypatch.setenv("TRIVIUM_LINK_STRENGTHS", "part_of=0/1, cites = 1/0.5")
    assert load().ranking.link_strengths == {"cites": (1.0, 0.5), "part_of": (0.0, 1.0)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("part_of", "write `type=forward/backward`"),
        ("part_of=1", "write `type=forward/backward`"),
        ("part_of=1/2/3", "write `type=forward/backward`"),
        ("part_of=1/x", "allowed are name=number"),
        ("part_of=0/1.5", "the strengths of part_of are 0/1.5, allowed are 0 to 1"),
    ],
)
def test_invalid_strengths_of_links_are_reported(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setenv("TRIVIUM_LINK_STRENGTHS", text)
    with pytest.raises(SettingsError, match=f"TRIVIUM_LINK_STRENGTHS is .*{message}"):
        load()


def test_weights_are_empty_by_default_and_for_an_empty_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().ranking.weights == {}
    monkeypatch.setenv("TRIVIUM_WEIGHTS", "")
    assert load().ranking.weights == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vector", "write `source=weight`, with commas between them"),
        ("vector=1,0.5", "write `source=weight`"),
        ("vector=-1", r"the weight of vector is -1.0, allowed are 0 to 1000"),
        ("graph=1001", "the weight of graph is 1001.0, allowed are 0 to 1000"),
        ("graph=nan", "the weight of graph is nan, allowed are 0 to 1000"),
        ("graph=much", "allowed are name=number"),
    ],
)
def test_invalid_weights_are_reported(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setenv("TRIVIUM_WEIGHTS", text)
    with pytest.raises(SettingsError, match=f"TRIVIUM_WEIGHTS is .*{message}"):
        load()


def test_current_names_cause_no_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("TRIVIUM_CANDIDATES_PER_SOURCE", "70")
    with caplog.at_level(logging.DEBUG):
        load()
    assert caplog.messages == []


@pytest.mark.parametrize(
    "name", ["vector", "graph", "keyword", "reranker", "cache", "qdrant_api_key", "reranker_api_key"]
)
def test_no_setting_that_may_contain_a_secret_is_shown_in_an_error(name: str) -> None:
    with pytest.raises(SettingsError, match=f"TRIVIUM_{name.upper()} is not allowed: ") as caught:
        load(**{name: "\u00e9 : s3cr3t-w0rd"})
    assert "s3cr" not in str(caught.value)


def test_settings_are_changed_by_their_flat_names() -> None:
    settings = Settings.of(cache_ttl_s=5, tenant="acme")
    changed = settings.changed(cache_ttl_s=6, candidates_per_source=20)
    assert (settings.cache.ttl_s, changed.cache.ttl_s) == (5, 6)
    assert (changed.value("cache_ttl_s"), changed.value("candidates_per_source")) == (6, 20)
    assert changed.access.tenant == "acme"
    with pytest.raises(KeyError):
        settings.changed(no_such_setting=1)


def test_every_setting_has_a_name_of_its_own_and_a_description() -> None:
    fields = setting_fields()
    assert len(fields) == sum(len(type(group).model_fields) for _, group in Settings())
    assert all(info.description for _, _, info in fields.values())


def test_a_settings_file_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.env"
    monkeypatch.setenv("TRIVIUM_SETTINGS_FILE", str(file))
    with pytest.raises(SettingsError, match="which cannot be read"):
        load()
    file.write_text("TRIVIUM_DEPHT=100\n")
    with pytest.raises(SettingsError, match="there is no setting 'TRIVIUM_DEPHT'"):
        load()
    for line in ("TRIVIUM_COLLAPSE none", "TRIVIUM_COLLAPSE", "= none"):
        file.write_text(f"# settings\n{line}\n")
        with pytest.raises(SettingsError, match=f"{file}, line 2: allowed are lines of the form NAME=value"):
            load()
    file.write_text("TRIVIUM_CANDIDATES_PER_SOURCE=77\nTRIVIUM_BOOSTS=centrality\n")
    assert (load().sources.candidates, load().ranking.boosts) == (77, {"centrality": 1.0})
    monkeypatch.setenv("TRIVIUM_CANDIDATES_PER_SOURCE", "88")
    assert load().sources.candidates == 88
    file.write_text("TRIVIUM_CANDIDATES_PER_SOURCE=1\n")
    monkeypatch.delenv("TRIVIUM_CANDIDATES_PER_SOURCE")
    with pytest.raises(SettingsError, match="TRIVIUM_CANDIDATES_PER_SOURCE is '1'"):
        load()


def test_settings_survive_the_environment_of_another_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register_secret("s3cr3t-key")
    settings = load(
        data_dir=tmp_path, weights="graph=2", boosts="recency=0.3,importance", default_collections="a,b", rerank=True,
        qdrant_api_key="s3cr3t-key", keyword="opensearch+https://user:s3cr3t-w0rd@host:9200",
        centrality_weight=0.25, cache_ttl_s=1.5,
    )  # fmt: skip
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    assert load() == settings


def test_no_more_copies_acknowledge_a_write_than_there_are() -> None:
    assert load(replication_factor=3, qdrant_write_consistency=3).server_indexes.qdrant_write_consistency == 3
    assert load().server_indexes.replication_factor is None
    with pytest.raises(SettingsError, match=r"TRIVIUM_REPLICATION_FACTOR allows 1 to 1"):
        load(qdrant_write_consistency=2)
    with pytest.raises(
        SettingsError,
        match=r"TRIVIUM_QDRANT_WRITE_CONSISTENCY is 3: .*TRIVIUM_REPLICATION_FACTOR allows 1 to 2",
    ):
        load(replication_factor=2, qdrant_write_consistency=3)


UNKNOWN = "TRIVIUM_TENNANT is no setting; the nearest is TRIVIUM_TENANT"


def test_an_unknown_variable_is_logged_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRIVIUM_TENNANT", "acme")
    monkeypatch.setenv("TRIVIUM_SERVICE_PORT_8080_TCP", "1")  # from Kubernetes
    monkeypatch.setenv("TRIVIUM_PORT_8080_TCP_ADDR", "1")
    for _ in range(2):
        load()
    logged = [each.message for each in caplog.records if "is no setting" in each.message]
    assert logged == [f"{UNKNOWN}: it is ignored (an error with TRIVIUM_STRICT=true)"]


def test_an_unknown_variable_is_an_error_if_settings_are_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_TENNANT", "acme")
    monkeypatch.setenv("TRIVIUM_STRICT", "true")
    with pytest.raises(SettingsError, match=f"^{UNKNOWN}$"):
        load()
