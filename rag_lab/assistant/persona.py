"""`@rag_lab` in JupyterLab's own chat panel: a conversation with a data set (`pip install 'rag_lab[persona]'`).

Each file of a chat is a session. Its data set and settings are the server's (`jupyter_server_config.py`):

    c.RagLabPersona.dataset = "plant_docs"
    c.RagLabPersona.settings = {"answer.name": "llm"}
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import cached_property, partial
from html import escape
from pathlib import Path

from jupyter_ai_persona_manager import BasePersona, PersonaDefaults
from jupyterlab_chat.models import Message
from traitlets import Dict, Unicode

from rag_lab.assistant.chat import MOST_ID_CHARS, Chat, quoted_citations
from rag_lab.errors import RagLabError
from rag_lab.pipeline import Pipeline

_NAME = "rag_lab"
_NO_ANSWER = "No answer: the trace of the question says why (`rag-lab ask`)."


class RagLabPersona(BasePersona):  # type: ignore[misc]
    """Answers each message of a chat as its next question; its sources follow, folded, with what they say."""

    dataset = Unicode("plant_docs", help="A data set, by its name or its folder.").tag(config=True)
    settings = Dict(help="Settings by key, as `Pipeline.set` takes them.").tag(config=True)

    @property
    def defaults(self) -> PersonaDefaults:
        """What the panel shows of it."""
        icon = str(Path(__file__).with_name("persona.svg"))
        about = f"Answers from the documents of {self.dataset}, with their sources."
        return PersonaDefaults(name=_NAME, description=about, avatar_path=icon, system_prompt="")

    @cached_property
    def conversation(self) -> Chat:
        """The session of this chat's file."""
        session = f"jupyter {self.get_chat_path(relative=True)}"[-MOST_ID_CHARS:]
        return Chat(Pipeline(self.dataset, progress=False).set(self.settings), session)

    async def process_message(self, message: Message) -> None:
        """Answer while the answer is written; a question that cannot be answered gets a sentence that says why."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[str | None]()
        say = partial(loop.call_soon_threadsafe, pieces.put_nowait)  # type: ignore[arg-type]

        async def reply() -> AsyncIterator[str]:
            while (piece := await pieces.get()) is not None:
                yield piece

        answered = loop.run_in_executor(None, self._answer, message.body.replace(f"@{_NAME}", "", 1), say)
        await self.stream_message(reply())
        await answered

    def _answer(self, question: str, say: Callable[[str | None], object]) -> None:
        try:
            trace = self.conversation.ask(question, say)
            if trace.answer is None:
                say(_NO_ANSWER)
            for one in quoted_citations(trace):
                name = escape(f"[{one.number}] {one.source}{f', page {one.page}' if one.page else ''}")
                quote = escape(" ".join(one.quote.split()))
                say(f"\n\n<details><summary>{name}</summary>{quote}</details>")
        except RagLabError as error:
            say(escape(str(error)))
        finally:
            say(None)
