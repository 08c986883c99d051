"""``make bench-quality``: what all sources together are worth on data sets, measured as ``trivium evaluate`` measures.

Printed are the figures of our run, the gain over the best single source and over the best that sees nothing but the
text, with the paired test; then the mean gain over the sets that have a graph. A folder with ``mentions_cap.jsonl`` is
evaluated once more with those mentions in place of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import mean

import anyio
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from orchestrator.evaluation import evaluate as figures
from orchestrator.evaluation import measures, runner
from orchestrator.evaluation.dataset import read as read_dataset
from orchestrator.evaluation.evaluate import OURS, ByRun
from orchestrator.evaluation.measures import MAIN
from orchestrator.evaluation.runs import RUNS, SINGLE
from orchestrator.evaluation.work import Work
from orchestrator.settings import read

_console = Console(width=180)
_SHOWN = (MAIN, "R@5", "R@10", "R@100")
_OTHERS = ("vector+keyword", "hybrid/rrf", "hybrid/centrality", "hybrid/relationship", "hybrid/ten", "auto")
_LEAST = -0.01
"""How far our run may be under the best single source, relatively."""


def main() -> None:
    """Evaluate every folder that is named."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folders", type=Path, nargs="+", help="BEIR folders with judged queries")
    arguments.add_argument("--work", type=Path, default=Path("benchmarks/.data/quality"), help="where indexes are kept")
    chosen = arguments.parse_args()
    ours = Table(title=f"{OURS}, default settings", title_justify="left")
    others = Table(title=f"{MAIN} of the others", title_justify="left")
    for table, columns in (
        (ours, ("set", *_SHOWN, "best single", "gain", "p", "best text", "gain", "p", "graph counts")),
        (others, ("set", *SINGLE, *_OTHERS)),
    ):
        for column in columns:
            table.add_column(column, justify="left" if column == "set" else "right", no_wrap=True)
    gains, worst = [], 0.0
    for folder in chosen.folders:
        for name, variant in _variants(folder):
            with variant as path:
                by_run, guard = _evaluated(path, chosen.work)
            single = max(SINGLE, key=lambda each: measures.mean(by_run[each][MAIN]))
            over_single, over_text = _over(by_run, single), _over(by_run, figures.best_text(by_run))
            ours.add_row(
                name,
                *(f"{measures.mean(by_run[OURS][each]):.4f}" for each in _SHOWN),
                *_told(over_single),
                *_told(over_text),
                f"{guard:.0%}",
            )
            others.add_row(name, *(f"{measures.mean(by_run[each][MAIN]):.4f}" for each in (*SINGLE, *_OTHERS)))
            worst = min(worst, over_single.relative or 0.0)
            if (folder / "edges.jsonl").exists():
                gains.append(over_text.relative or 0.0)
    _console.print(ours)
    _console.print(others)
    if gains:
        _console.print(f"mean gain over the best text source, {len(gains)} sets with a graph: {mean(gains):+.1%}")
    _console.print(f"furthest under the best single source: {worst:+.1%} (allowed: {_LEAST:+.0%})")
    raise SystemExit(0 if worst >= _LEAST else 1)


def _evaluated(folder: Path, work_folder: Path) -> tuple[ByRun, float]:
    dataset = read_dataset(folder)
    work = Work.of(read(data_dir=work_folder), dataset)
    with Progress(console=_console, transient=True) as progress:
        task = progress.add_task(f"{dataset.name}: encoding", total=None)
        indexed = anyio.run(work.index, lambda count: progress.advance(task, count))
        answers = work.answers(indexed.index_version)
        task = progress.add_task(f"{dataset.name}: asking", total=len(dataset.queries) * len(RUNS))
        runner.ask_all(work, answers, 1, lambda count: progress.advance(task, count))
    return figures.judged(figures.as_runs(runner.collect(work, answers), dataset), dataset), work.guard()


def _over(by_run: ByRun, other: str) -> measures.Difference:
    return measures.compare(OURS, other, by_run[OURS][MAIN], by_run[other][MAIN])


def _told(difference: measures.Difference) -> tuple[str, str, str]:
    relative = "-" if difference.relative is None else f"{difference.relative:+.1%}"
    return f"{difference.against} {difference.baseline:.4f}", relative, f"{difference.p:.4f}"


def _variants(folder: Path) -> Iterator[tuple[str, AbstractContextManager[Path]]]:
    yield folder.name, _as_it_is(folder)
    if (folder / "mentions_cap.jsonl").exists():
        yield f"{folder.name}, capitalised", _with_capitalised(folder)


@contextmanager
def _as_it_is(folder: Path) -> Iterator[Path]:
    yield folder


@contextmanager
def _with_capitalised(folder: Path) -> Iterator[Path]:
    """The same set with its cheap graph: mentions that are the phrases themselves, behind ``c:``."""
    with tempfile.TemporaryDirectory() as made:
        variant = Path(made, f"{folder.name}-capitalised")
        variant.mkdir()
        for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv", "edges.jsonl"):
            (variant / name).symlink_to((folder / name).resolve())
        with (folder / "mentions_cap.jsonl").open() as mentions, (variant / "mentions.jsonl").open("w") as written:
            for line in mentions:
                mention = json.loads(line)
                written.write(json.dumps({**mention, "entity": mention["entity"].removeprefix("c:")}) + "\n")
        yield variant


if __name__ == "__main__":
    main()
