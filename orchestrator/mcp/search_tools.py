"""``hybrid_search``, ``memory_search`` and ``explain_search``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import anyio.to_thread
import msgspec

from adapters.model.filter import EVERYTHING, Filter, metadata_keys
from orchestrator.mcp import search_answers
from orchestrator.mcp.answers import Answer
from orchestrator.mcp.arguments import HybridSearch, MemorySearch, SearchArguments
from orchestrator.mcp.caller import Caller
from orchestrator.planning.errors import BadRequest
from orchestrator.planning.filters import MEMORY, request_filter
from orchestrator.planning.planner import MAX_QUERY_CHARS
from orchestrator.results.lines import one_line
from orchestrator.results.tokens import Measure
from orchestrator.results.unknown_names import MAX_KEYS, NO_COLLECTION
from orchestrator.schema.decode import InvalidInput
from orchestrator.schema.hits import SearchHit
from orchestrator.schema.search import MAX_TOKENS, SearchResponse
from orchestrator.schema.search_input import search_request

_MAX_UNKNOWN, _MAX_LISTED = 5, 30
"""Names in an error: of those that there are not, and of those that there are."""
_NAME_CHARS = 80
_ARGUMENTS = {"filter": "filters", "neighbors": "expand_neighbors"}
"""The names of arguments by that of the field of a request."""
_response_decoder = msgspec.json.Decoder(SearchResponse)


async def hybrid_search(arguments: HybridSearch, caller: Caller) -> Answer:
    """Search the documents."""
    response = await _respond(caller, arguments, _fields(arguments))
    return await _answer(caller, arguments, response, "hybrid_search")


async def explain_search(arguments: HybridSearch, caller: Caller) -> Answer:
    """Search the documents, and say how each score was computed."""
    response = await _respond(caller, arguments, {**_fields(arguments), "explain": True})
    return await _answer(caller, arguments, response, "explain_search")


async def memory_search(arguments: MemorySearch, caller: Caller) -> Answer:
    """Search the collection ``memory``."""
    response = await _respond(caller, arguments, {"collections": (MEMORY,)})
    return await _answer(caller, arguments, response, "memory_search")


def _fields(arguments: HybridSearch) -> dict[str, Any]:
    return {
        "collections": arguments.collections,
        "include_memory": arguments.include_memory,
        "neighbors": arguments.expand_neighbors,
    }


async def _respond(caller: Caller, arguments: SearchArguments, fields: dict[str, Any]) -> SearchResponse:
    """The response to a search.

    :raises BadRequest: if a value is not allowed; also if no document has one of the collections or metadata keys:
        an agent that searched for it would take the answer for one about it.
    """
    if not arguments.query:  # of a service, it would list documents
        raise BadRequest(f"query: '', allowed are texts of 1 to {MAX_QUERY_CHARS} characters")
    shown = {} if fields.get("neighbors") else {"text_chars": 0}
    try:
        request = search_request(
            {
                "query": arguments.query,
                "limit": arguments.limit,
                "filter": arguments.filters,
                "min_confidence": arguments.min_confidence,
                **shown,
                **fields,
            }
        )
        _require_conditions(request.filter)
        encoded = await caller.service.search.respond(request, caller.principal, caller.request_id)
    except (BadRequest, InvalidInput) as error:
        raise BadRequest(_in_terms_of_arguments(str(error))) from error
    caller.record(encoded)
    response = _response_decoder.decode(encoded.content)
    unknown = response.warnings
    if request.collections == (MEMORY,):  # there may be no memory yet
        unknown = tuple(each for each in unknown if not each.startswith(NO_COLLECTION))
    if unknown:
        raise BadRequest(await _with_allowed(unknown, caller))
    return response


def _require_conditions(condition: Filter | None) -> None:
    """Check that a filter has conditions whose names can all be looked up.

    :raises BadRequest: if it has not.
    """
    if condition is None:
        return
    if request_filter(condition) == EVERYTHING:
        raise BadRequest("filter: it has no condition; leave it out to search everything")
    if (keys := len(metadata_keys(condition))) > MAX_KEYS:
        raise BadRequest(f"filter: {keys} keys of the metadata, allowed are {MAX_KEYS}")


def _in_terms_of_arguments(message: str) -> str:
    field = re.match(r"[a-z_]+", message)
    name = _ARGUMENTS.get(field[0]) if field else None
    return message if name is None or field is None else f"{name}{message[field.end() :]}"


async def _with_allowed(unknown: Sequence[str], caller: Caller) -> str:
    """Names that no document has, and the names of collections that the caller may see, or where to find the fields."""
    more = f"; and {len(unknown) - _MAX_UNKNOWN} more" if len(unknown) > _MAX_UNKNOWN else ""
    message = "; ".join(unknown[:_MAX_UNKNOWN]) + more
    if not any(each.startswith(NO_COLLECTION) for each in unknown):
        return f"{message}; list_collections shows the fields of the documents"
    listed = (await caller.service.documents.collections(caller.principal)).collections
    names = [one_line(each.name, _NAME_CHARS) for each in sorted(listed, key=lambda each: -each.documents)]
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"{message}; there are the collections {', '.join(names[:_MAX_LISTED]) or 'none'}{more}"


async def _answer(caller: Caller, arguments: SearchArguments, response: SearchResponse, tool: str) -> Answer:
    measure = caller.service.search.measure
    return await anyio.to_thread.run_sync(_rendered, measure, arguments, response, tool)


def _rendered(measure: Measure, arguments: SearchArguments, response: SearchResponse, tool: str) -> Answer:
    """The answer. Blocks."""
    if arguments.structured:
        return _structured(measure, arguments, response, tool)
    is_explained = tool == "explain_search"
    has_neighbors = isinstance(arguments, HybridSearch) and arguments.expand_neighbors > 0
    blocks = [_block(position, hit, has_neighbors, is_explained) for position, hit in enumerate(response.hits, start=1)]
    head = search_answers.head(response)
    if is_explained:
        head = "\n".join((head, *search_answers.explanation(response)))
    if not blocks:
        blocks = [_advice(arguments, response)]

    def on_cut(kept: int, needed: int) -> str:
        more = f"{kept} of {len(response.hits)} hits are shown, because max_tokens is {arguments.max_tokens}."
        if needed > MAX_TOKENS:
            return f"{more} For the others call {tool} with a smaller limit, and get_document with their ids."
        return f"{more} For all of them call {tool} with the same arguments and max_tokens: {needed}."

    text, _ = measure.fitted(head, blocks, arguments.max_tokens, on_cut)
    return Answer(text)


def _block(position: int, hit: SearchHit, has_neighbors: bool, is_explained: bool) -> str:
    block = search_answers.block(position, hit, has_neighbors)
    return f"{block}\n{search_answers.reasons(hit)}" if is_explained else block


def _advice(arguments: SearchArguments, response: SearchResponse) -> str:
    """What to try if nothing was found."""
    least = arguments.min_confidence
    if response.confidence is not None and least is not None and response.confidence < least:
        return f"min_confidence is {least:g}: the documents probably do not answer this query."
    if arguments.filters:
        return "Try other words, or fewer filters: list_collections shows the fields and examples of their values."
    return "Try other words: list_collections shows what there is."


def _structured(measure: Measure, arguments: SearchArguments, response: SearchResponse, tool: str) -> Answer:
    hits = [
        {"id": hit.id, "collection": hit.collection, "score": round(hit.score, 6), "url": hit.url}
        for hit in response.hits
    ]
    content: dict[str, Any] = {
        "total": response.total.value,
        "total_is_exact": response.total.relation == "eq",
        "hits": hits,
        "confidence": response.confidence,
        "degraded": [f"{each.source}: {each.reason}" for each in response.degraded],
    }
    needed = measure.tokens(msgspec.json.encode(content).decode())
    said = f"{len(hits)} hits in the structured content"
    if needed > arguments.max_tokens:
        whole = len(hits)
        while hits and measure.tokens(msgspec.json.encode(content).decode()) > arguments.max_tokens:
            hits.pop()
        content["cut"] = f"max_tokens is {arguments.max_tokens}"
        said = (
            f"{len(hits)} of {whole} hits in the structured content, because max_tokens is {arguments.max_tokens}. "
            f"For all of them call {tool} with the same arguments and max_tokens: {min(needed + 20, MAX_TOKENS)}"
        )
    failed = f"; degraded: {len(response.degraded)} parts of the search failed" if response.degraded else ""
    return Answer(f"{said}{failed}", content)
