"""``make bench-cpu``: CPU time of a hybrid search without the response cache, and of an L1 hit, in one process.

CPU time is that of the whole process, with all its threads. Medians over several rounds are printed, and the fastest
rounds, which depend less on other processes that share the processor. The processes are started several times, because
the layout of their memory makes one process faster than another. With ``--against COMMAND`` another release of the
service is measured alternately with this one, round by round, and the ratios of the medians are printed; exit code 1 if
one exceeds its limit.

``COMMAND FOLDER`` starts a process that behaves like :mod:`benchmarks.cpu_process`: it has its own index of
``FOLDER/documents.ndjson``, writes one line to its standard output when it is ready, then reads rounds from its
standard input (JSON: ``queries``; ``hits``: number of L1 hits) and writes one line for each (JSON: ``search_us`` and
``hit_us``: CPU time per search and per L1 hit, in µs; ``ids``: for each query, those of its hits). Its environment has
``TRIVIUM_QUERY_ENCODER``, which is ``model`` or ``static``.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks.claims import out, report
from benchmarks.corpus import build_corpus, corpus_folder

_OWN_COMMAND = (sys.executable, "-m", "benchmarks.cpu_process")
_MAX_SEARCH_RATIO, _MAX_HIT_RATIO = 1.0, 1.1


@dataclass(frozen=True, slots=True)
class Round:
    """CPU time per search and per L1 hit, in µs, and for each query the ids of its hits."""

    search_us: float
    hit_us: float
    ids: Sequence[Sequence[str]]


class MeasuredProcess:
    """A process that measures rounds."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait_until_ready(self) -> None:
        """Return when the process is ready: it may build its index first."""
        self._read_line()

    def measure(self, queries: Sequence[str], hits: int) -> Round:
        """Measure one round."""
        assert self._process.stdin  # noqa: S101  # it is a pipe
        self._process.stdin.write(json.dumps({"queries": queries, "hits": hits}) + "\n")
        self._process.stdin.flush()
        return Round(**json.loads(self._read_line()))

    def _read_line(self) -> str:
        assert self._process.stdout  # noqa: S101  # it is a pipe
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended with exit code {self._process.wait()}")
        return line


def main() -> None:
    """Measure this release, and another one if its command is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=5, help="number of times that the processes are started")
    parser.add_argument("--rounds", type=int, default=20, help="rounds per start")
    parser.add_argument("--queries", type=int, default=40, help="searches per round; each query occurs once")
    parser.add_argument("--hits", type=int, default=500, help="L1 hits per round")
    parser.add_argument("--encoders", nargs="+", choices=("model", "static"), default=("model", "static"))
    parser.add_argument("--against", metavar="COMMAND", help="measures another release: see the docstring")
    arguments = parser.parse_args()
    folder = corpus_folder(arguments.passages)
    queries = build_corpus(folder, arguments.passages)
    rounds = arguments.rounds + 1  # the first one of a start is not counted
    if arguments.starts * rounds * arguments.queries > len(queries):
        raise SystemExit(f"there are only {len(queries):,} queries: choose fewer rounds or fewer queries")
    commands = [_OWN_COMMAND, *([tuple(shlex.split(arguments.against))] if arguments.against else [])]
    passed = True
    for encoder in arguments.encoders:
        remaining = iter(queries)
        measured: list[list[Round]] = [[] for _ in commands]
        for _ in range(arguments.starts):
            batches = [list(islice(remaining, arguments.queries)) for _ in range(rounds)]
            by_command = _run_rounds(commands, folder, encoder, batches, arguments.hits)
            for total, new in zip(measured, by_command, strict=True):
                total.extend(new[1:])
        passed &= _print(encoder, measured)
    raise SystemExit(0 if passed else 1)


def _run_rounds(
    commands: Sequence[Sequence[str]], folder: Path, encoder: str, batches: Sequence[Sequence[str]], hits: int
) -> list[list[Round]]:
    """Start a process for each command, and run the rounds alternately; returns those of each command."""
    measured: list[list[Round]] = [[] for _ in commands]
    with ExitStack() as stack:
        processes = [stack.enter_context(_started(command, folder, encoder)) for command in commands]
        for number, batch in enumerate(batches):
            indexes = range(len(processes))
            for index in indexes if number % 2 else reversed(indexes):  # neither release is always the first
                measured[index].append(processes[index].measure(batch, hits))
    return measured


@contextmanager
def _started(command: Sequence[str], folder: Path, encoder: str) -> Iterator[MeasuredProcess]:
    env = os.environ | {"TRIVIUM_QUERY_ENCODER": encoder}
    arguments = [*command, str(folder)]
    with subprocess.Popen(arguments, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            measured = MeasuredProcess(process)
            measured.wait_until_ready()
            yield measured
        finally:
            process.terminate()


def _print(encoder: str, measured: Sequence[Sequence[Round]]) -> bool:
    """Print the medians, and the ratios if there are two releases; returns whether these are within their limits."""
    searches = [[each.search_us for each in rounds] for rounds in measured]
    hits = [[each.hit_us for each in rounds] for rounds in measured]
    if len(measured) == 1:
        text = f"search {median(searches[0]):.0f} µs, L1 hit {median(hits[0]):.1f} µs; fastest rounds "
        out.print(f"{encoder}: {text}{min(searches[0]):.0f} and {min(hits[0]):.1f} µs", highlight=False)
        return True
    pairs = [pair for own, other in zip(*measured, strict=True) for pair in zip(own.ids, other.ids, strict=True)]
    equal = sum(own == other for own, other in pairs) / len(pairs)
    out.print(f"{encoder}: {equal:.1%} of {len(pairs):,} queries have the same hits", highlight=False)
    return all(
        [
            _report_ratio(f"{encoder}: search", searches, _MAX_SEARCH_RATIO),
            _report_ratio(f"{encoder}: L1 hit", hits, _MAX_HIT_RATIO),
        ]
    )


def _report_ratio(name: str, measured_us: Sequence[Sequence[float]], max_ratio: float) -> bool:
    own, other = map(median, measured_us)
    own_min, other_min = map(min, measured_us)
    text = f"{own:.1f} µs, the other release {other:.1f} µs, ratio {own / other:.3f}; "
    text += f"fastest rounds {own_min:.1f} and {other_min:.1f} µs, ratio {own_min / other_min:.3f}"
    return report(own / other <= max_ratio, f"{name}, at most {max_ratio:g} times the other release", text)


if __name__ == "__main__":
    main()
