"""What an evaluation says, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.evaluation.comparison import SIGNIFICANCE, Difference, can_differ
from orchestrator.evaluation.judged_runs import Evaluation, best_text_source
from orchestrator.evaluation.judgments import first_of
from orchestrator.evaluation.measures import MAIN_MEASURE
from orchestrator.evaluation.runs import REFERENCE_RUN, TEXT_RUN


def conclusion(evaluation: Evaluation) -> str:
    """Which run is the best one, by how much, and how likely that is by chance."""
    values = evaluation.main_values
    if not any(values.values()):
        return f"No run found a relevant document among its first ten: {MAIN_MEASURE} is 0 for all of them."
    # Of equal runs, the reference.
    best = max(values, key=lambda name: (values[name], name == REFERENCE_RUN))
    by_pair = {(each.run, each.against): each for each in evaluation.comparisons}
    if evaluation.against is not None:
        compared = [by_pair[best, evaluation.against]] if best != evaluation.against else []
    else:
        compared = [by_pair[REFERENCE_RUN, name] for name in (best_text_source(values), TEXT_RUN)]
        if best != REFERENCE_RUN:
            compared.insert(0, by_pair[REFERENCE_RUN, best])
    parts = [f"{best} has the highest {MAIN_MEASURE}, {values[best]:.4f}"]
    if best != REFERENCE_RUN and evaluation.against is None:
        parts.append(f"{REFERENCE_RUN} has {values[REFERENCE_RUN]:.4f}")
    parts += [_against(each) for each in compared]
    count = sum(map(can_differ, evaluation.comparisons))
    return f"{'; '.join(parts)}. Each p is corrected for {count} comparisons; below {SIGNIFICANCE:g} is significant."


def remarks(evaluation: Evaluation) -> Iterator[str]:
    """What is wrong with the judgments: how many, and the first of them."""
    if ids := evaluation.unknown_documents:
        yield f"{_counted(ids, 'judged id', 'judged ids')} that no document has: {first_of(ids)}; counted as not found"
    if ids := evaluation.without_relevant:
        yield f"{_counted(ids, 'query', 'queries')} without a relevant document: {first_of(ids)}; all figures are 0"
    if ids := evaluation.unjudged:
        yield f"{_counted(ids, 'query', 'queries')} without judgments: {first_of(ids)}; left out"


def _against(each: Difference) -> str:
    if not each.difference:
        return f"{each.run} is as good as {each.against} (p {each.corrected_p:.4f})"
    amount = f"{abs(each.difference):.4f}" if each.relative is None else f"{abs(each.relative):.1%}"
    direction = "better" if each.difference > 0 else "worse"
    return f"{each.run} is {amount} {direction} than {each.against} (p {each.corrected_p:.4f})"


def _counted(items: Sequence[str], one: str, several: str) -> str:
    return f"{len(items)} {one if len(items) == 1 else several}"
