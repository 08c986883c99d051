"""Which terms of a query made the score of a document, from OpenSearch's explanation of it, which is Lucene's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adapters.keyword.bm25_explanation import Explained, best_form, summed, term_score
from adapters.model.term_score import TermScore

_WEIGHT = re.compile(r"weight\((words|exact):(.*) in \d+\) \[", re.DOTALL)


def lucene_term_scores(explained: Explained) -> tuple[TermScore, ...]:
    """The terms in an explanation.

    :raises ValueError: if it is not that of a sum of scores of terms.
    """
    return summed(_terms(explained))


def _terms(explained: Explained) -> Iterator[TermScore]:
    if weight := _WEIGHT.match(explained.description):
        field, term = weight.groups()
        if not explained.details:
            raise ValueError("the explanation of a weight has no score")
        words = term[1:-1] if " " in term else term  # a phrase is in quotes
        yield term_score(words, field == "exact", explained.value, explained.details[0])
    elif explained.description.startswith("max of"):
        yield best_form(term for each in explained.details for term in _terms(each))
    else:
        for each in explained.details:
            yield from _terms(each)
