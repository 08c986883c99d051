"""An agent that answers from documents, over MCP. Start the service first:
TRIVIUM_DATA_DIR=example-data trivium serve --port 8080

`decide` stands for a language model: it gets what was said so far, and returns the next call of a tool, or an answer.
"""

import re
import sys

import anyio
from mcp.client import Client

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
Call = tuple[str, dict[str, object]]


def decide(question: str, answers: list[str]) -> Call | str:
    """Search, read the best hit, answer with its sentence and its source."""
    if not answers:
        return "hybrid_search", {"query": question, "limit": 3, "max_tokens": 1_000}
    found = re.search(r"id: (\S+)", answers[0])
    if found is None:
        return "I do not know."
    if len(answers) == 1:
        return "get_document", {"id": found[1]}
    return f"{answers[1].rsplit(chr(10), 1)[-1]} [{found[1]}]"


async def main() -> None:
    async with Client(f"{ADDRESS}/mcp") as client:
        film = {"id": "prestige", "title": "The Prestige", "text": "A film by Christopher Nolan, of 2006."}
        await client.call_tool("store_document", film)
        question, answers = "who directed The Prestige?", list[str]()
        while not isinstance(step := decide(question, answers), str):
            tool, arguments = step
            result = await client.call_tool(tool, arguments)
            answers.append(result.content[0].text)
        print(step)


anyio.run(main)
