"""``python -m benchmarks.flame_graph stacks.txt picture.svg``: a flame graph of sampled stacks.

The stacks are lines ``outer;…;inner count``, as sampling profilers write them (py-spy: ``record --format raw``). Only
those of one function are drawn, by default that which processes a request, without what surrounds it in each stack.
Width is the share of the samples (Gregg: "The Flame Graph", ACM Queue 14(2), 2016).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

_WIDTH, _ROW, _CHAR = 1_200, 17, 6.6
_MIN_SHARE = 0.004
_COLOURS = ("#f4a261", "#e9c46a", "#e76f51", "#f2b880")


def main() -> None:
    """Read the stacks, write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacks", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--root", default="RequestResponseCycle.run_asgi,_compute_and_store", help="names in frames")
    arguments = parser.parse_args()
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in arguments.stacks.read_text("utf-8").splitlines():
        frames, _, count = line.rpartition(" ")
        if stack := _below(frames.split(";"), arguments.root.split(",")):
            stacks[stack] += int(count)
    total = stacks.total()
    if not total:
        raise SystemExit(f"{arguments.stacks}: no stack has a frame named {arguments.root}")
    boxes = list(_boxes(sorted(stacks.items()), 0, 0.0, total))
    height = (max(depth for depth, *_ in boxes) + 1) * _ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="monospace" '
        f'font-size="11"><title>{total:,} samples</title>'
    ]
    for depth, start, share, name in boxes:
        x, y, width = start * _WIDTH, depth * _ROW, share * _WIDTH
        colour = _COLOURS[sum(name.encode()) % len(_COLOURS)]
        text = escape(name[: int(width / _CHAR)])
        lines.append(
            f'<g><title>{escape(name)}: {share:.1%}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
            f'height="{_ROW - 1}" fill="{colour}"/><text x="{x + 2:.1f}" y="{y + 12}">{text}</text></g>'
        )
    arguments.picture.write_text("\n".join([*lines, "</svg>\n"]), "utf-8")


def _below(frames: Sequence[str], roots: Sequence[str]) -> tuple[str, ...]:
    """The frames from the first one on that has one of the names, repeated ones once; empty if there is none."""
    first = next((at for at, frame in enumerate(frames) if any(root in frame for root in roots)), None)
    return () if first is None else tuple(name for name, _ in groupby(map(_name, frames[first:])))


def _name(frame: str) -> str:
    """``function (file.py)`` without the number of the line."""
    return frame.rpartition(":")[0] + ")" if ":" in frame and frame.endswith(")") else frame


def _boxes(
    stacks: Sequence[tuple[tuple[str, ...], int]], depth: int, start: float, total: int
) -> Iterator[tuple[int, float, float, str]]:
    """Depth, start, share and name of each box; stacks are sorted, and equal above ``depth``."""
    for name, group in groupby((each for each in stacks if len(each[0]) > depth), key=lambda each: each[0][depth]):
        inner = list(group)
        share = sum(count for _, count in inner) / total
        if share >= _MIN_SHARE:
            yield depth, start, share, name
            yield from _boxes(inner, depth + 1, start, total)
        start += share


if __name__ == "__main__":
    main()
