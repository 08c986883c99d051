"""How well confidence separates queries that a corpus answers from others: a part of ``make bench-quality``.

Queries that the corpus cannot answer: questions of the other data sets, random words of those questions, and questions
in other languages. None of them is among those that the calibration uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.bootstrap import open_service
from orchestrator.evaluation.dataset import Dataset
from orchestrator.evaluation.judged_runs import descending_scores
from orchestrator.evaluation.measures import MAIN_MEASURE, mean, measure_run
from orchestrator.evaluation.runs import make_request
from orchestrator.evaluation.workspace import Workspace
from orchestrator.measurement.unanswerable import random_words
from orchestrator.service.service import Service

_COUNT, _RANDOM_WORDS = 200, 40
MIN_CONFIDENCE = 0.5
_OTHER_LANGUAGES = """
Welche Brücke führt über den Fluss in der Altstadt?
Warum verlieren Bäume im Herbst ihre Blätter?
Wie alt wird eine Schildkröte?
Wer hat den Roman über den Bäcker geschrieben?
Combien de temps faut-il pour traverser le désert ?
Pourquoi les flamants sont-ils roses ?
Qui a peint le plafond de la chapelle ?
¿Por qué cambian de color las hojas?
¿Quién construyó el acueducto de la ciudad?
¿A qué hora cierra la biblioteca?
Perché il cielo è rosso al tramonto?
Chi ha scritto la musica di questo film?
Waarom drijft ijs op water?
Wie schilderde het meisje bij het raam?
Varför flyttar fåglar söderut?
Dlaczego liście zmieniają kolor?
Почему листья меняют цвет осенью?
なぜ空は青いのですか
为什么树叶会变颜色
לאן נוסעת הרכבת הזאת
"""


@dataclass(frozen=True, slots=True)
class ConfidenceReport:
    """The fraction of unanswerable queries without hits, and how far the main measure falls, relatively."""

    rejected: float
    loss: float


async def measure_confidence(workspace: Workspace, others: Mapping[str, Dataset]) -> ConfidenceReport:
    """Measure with ``min_confidence`` 0.5.

    :param others: other data sets, by name.
    """
    async with open_service(workspace.settings) as service:
        await service.maintenance.optimize(lambda _: None)
        queries = _unanswerable(others)
        rejected = [not await _hits(service, text, MIN_CONFIDENCE) for text in queries]
        dataset = workspace.dataset
        values = []
        for minimum in (0.0, MIN_CONFIDENCE):
            run = {id_: descending_scores(await _hits(service, text, minimum)) for id_, text in dataset.queries.items()}
            values.append(mean(measure_run(dataset.judgments, run)[MAIN_MEASURE]))
    return ConfidenceReport(float(np.mean(rejected)), 1 - values[1] / values[0])


def _unanswerable(others: Mapping[str, Dataset]) -> list[str]:
    rng = np.random.default_rng(1)
    foreign = _OTHER_LANGUAGES.strip().splitlines()
    words = sorted({word for dataset in others.values() for text in dataset.queries.values() for word in text.split()})
    shuffled = random_words(words, _RANDOM_WORDS, rng)
    questions: list[str] = []
    count = _COUNT - len(foreign) - len(shuffled)
    for number, dataset in enumerate(others.values()):
        some = count // len(others) + (number < count % len(others))
        texts = sorted(dataset.queries.values())
        questions += rng.choice(texts, min(some, len(texts)), replace=False).tolist()
    return [*questions, *shuffled, *foreign]


async def _hits(service: Service, text: str, min_confidence: float) -> Sequence[str]:
    request = make_request(text, {"mode": "hybrid", "limit": 10, "min_confidence": min_confidence})
    response = await service.search.search(request, service.anonymous, "confidence")
    return [hit.id for hit in response.hits]
