"""A chain of LangChain that answers from documents. Start the service first:
TRIVIUM_DATA_DIR=example-data trivium serve --port 8080

`model` stands for a language model: it says the first line of its prompt.
"""

import sys

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from orchestrator.client import Client
from orchestrator.client.langchain import TriviumRetriever

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"


def context(documents: list[Document]) -> str:
    return "\n".join(f"{each.page_content} [{each.id}]" for each in documents)


with Client(ADDRESS) as client:
    text = "A film by Christopher Nolan about two magicians."
    client.index([{"id": "prestige", "title": "The Prestige", "text": text}])

prompt = PromptTemplate.from_template("{context}\n\nAnswer from the lines above: {question}")
model = RunnableLambda(lambda value: value.to_string().splitlines()[0])
retriever = TriviumRetriever(url=ADDRESS, k=3)
chain = {"context": retriever | context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
print(chain.invoke("who directed The Prestige?"))
