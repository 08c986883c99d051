"""Documents with real dates: a part of ``make bench-quality``.

The documents are the commits of this checkout, with the files that they change. Some queries ask for the newest commit
of a file, others for one commit by its subject. Random dates and importances are tried as well: they must not matter
unless a request asks for a boost.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from time import time
from typing import get_args

import anyio
import msgspec
from rich.table import Table

from adapters import Document
from benchmarks.claims import out, report
from benchmarks.known_item import reciprocal_ranks
from orchestrator.schema.search import ProfileName

_ROOT = Path(__file__).parents[1]
_MAX_FILES = 30
"""Commits of more files are left out: they are about none of them."""
_MIN_COMMITS = 3
"""Commits of a file that is asked for."""
_QUERIES = 150
_HALF_LIFE_DAYS = 2.0
_STRENGTHS = (0.1, 0.3, 1.0)
_MAX_LOSS = 0.1
"""How far the weakest boost may be below no boost where the newest is not asked for, relatively."""


@dataclass(frozen=True, slots=True)
class _Commit:
    document: Document
    files: list[str]


def main() -> None:
    """Print a table, and check the claims."""
    commits = [commit for commit in _commits() if len(commit.files) <= _MAX_FILES]
    if len(commits) < _QUERIES:
        out.print(f"{len(commits)} commits: not enough for queries with dates")
        return
    documents = [commit.document for commit in commits]
    by_subject = [(each.title, each.id) for each in random.Random(0).sample(documents, _QUERIES)]
    newest = _of_newest(commits)
    runs: dict[str, Mapping[str, object]] = {"no boost": {}} | {
        f"recency {strength:g}": {"boosts": {"recency": {"strength": strength, "half_life_days": _HALF_LIFE_DAYS}}}
        for strength in _STRENGTHS
    }
    found = {
        "the newest": anyio.run(reciprocal_ranks, documents, newest, runs),
        "one by its subject": anyio.run(reciprocal_ranks, documents, by_subject, runs),
    }
    table = Table(title=f"{len(documents)} commits with their dates: MRR@10", title_justify="left")
    for column in ("queries for", *runs):
        table.add_column(column, justify="left" if column == "queries for" else "right")
    for name, by_run in found.items():
        table.add_row(name, *(f"{by_run[run]:.3f}" for run in runs))
    out.print(table)
    wanted, others = found["the newest"], found["one by its subject"]
    gentle, strongest = (f"recency {strength:g}" for strength in (_STRENGTHS[0], _STRENGTHS[-1]))
    claims = [
        report(
            wanted[strongest] > wanted[gentle] > wanted["no boost"],
            "the stronger the boost, the better the queries for the newest",
            ", ".join(f"{wanted[run]:.3f}" for run in runs),
        ),
        report(
            others[gentle] >= (1 - _MAX_LOSS) * others["no boost"],
            f"a gentle boost costs other queries at most {_MAX_LOSS:.0%}",
            f"{others[gentle]:.3f} of {others['no boost']:.3f}",
        ),
        anyio.run(_random_fields_do_not_matter, documents, by_subject),
    ]
    raise SystemExit(0 if all(claims) else 1)


async def _random_fields_do_not_matter(documents: Sequence[Document], queries: Sequence[tuple[str, str]]) -> bool:
    rng = random.Random(1)
    now = datetime.fromtimestamp(time(), UTC)
    with_fields = [
        msgspec.structs.replace(
            each, created_at=now - timedelta(days=rng.uniform(0, 3_000)), importance=rng.uniform(0, 10)
        )
        for each in documents
    ]
    without = [msgspec.structs.replace(each, created_at=None) for each in documents]
    runs = {profile: {"profile": profile} for profile in get_args(ProfileName)}
    before = await reciprocal_ranks(without, queries, runs)
    after = await reciprocal_ranks(with_fields, queries, runs)
    shown = ", ".join(f"{run} {before[run]:.4f} and {after[run]:.4f}" for run in runs)
    return report(before == after, "random dates and importances change no default", shown)


def _commits() -> list[_Commit]:
    """The commits of this checkout, the newest first."""
    separator = "\x1e"
    git = which("git")
    if git is None:
        raise SystemExit("git is not installed: the commits of this checkout cannot be read")
    log = subprocess.run(
        [git, "log", f"--format={separator}%H%x1f%ct%x1f%s%x1f%b%x1f", "--name-only"],
        cwd=_ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    commits = []
    for entry in log.split(separator)[1:]:
        hash_, seconds, subject, body, names = entry.split("\x1f")
        files = names.split()
        text = "\n".join((body.strip(), *files)).strip()
        date = datetime.fromtimestamp(int(seconds), UTC)
        commits.append(_Commit(Document(id=hash_, title=subject, text=text, created_at=date), files))
    return commits


def _of_newest(commits: Sequence[_Commit]) -> list[tuple[str, str]]:
    """Queries for the newest commit of a file."""
    by_file: dict[str, list[_Commit]] = {}
    for commit in commits:
        for file in commit.files:
            by_file.setdefault(file, []).append(commit)
    files = sorted(file for file, changes in by_file.items() if len(changes) >= _MIN_COMMITS)
    chosen = random.Random(2).sample(files, min(_QUERIES, len(files)))
    return [(f"change of {file}", by_file[file][0].document.id) for file in chosen]


if __name__ == "__main__":
    main()
