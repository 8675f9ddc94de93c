"""An OpenAI-compatible server on loopback that answers with the first passage and remembers what it was asked."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rag_lab.models.truncation import fewest_tokens

UNDERSTANDING = {"class": "fuzzy", "hyde": True}


@dataclass
class LoopbackChat:
    """`prompts` holds the messages of every request; `delay_s` slows each reply; `broken` makes every request fail."""

    url: str = ""
    delay_s: float = 0.0
    broken: bool = False
    prompts: list = field(default_factory=list)
    n_tokens: int = 0  # told in all

    def spec(self, name="echo"):
        return f"openai:{name}?base_url={self.url}&concurrency=1&max_attempts=1"

    def reply(self, body):
        self.prompts.append(body["messages"])
        time.sleep(self.delay_s)
        asked = body["messages"][-1]["content"]
        if "Passages:" in asked:
            first = next(line for line in asked.splitlines() if line.startswith("[1]"))
            return json.dumps({"answer": f"See {first}", "citations": [1]})
        return json.dumps(UNDERSTANDING | {"rewritten": asked.splitlines()[-1]})


def _texts(messages):
    """The texts of messages; one that shows a picture is a list of parts."""
    for content in (message["content"] for message in messages):
        parts = [{"text": content}] if isinstance(content, str) else content
        yield from (part["text"] for part in parts if "text" in part)


def _handler(chat):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802 - the library's name
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = chat.reply(body)
            status = 500 if chat.broken else 200
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            n_read = max(7, sum(fewest_tokens(text) for text in _texts(body["messages"])))
            chat.n_tokens += n_read + 3
            usage = {"prompt_tokens": n_read, "completion_tokens": 3, "total_tokens": n_read + 3}
            data = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
            reply = json.dumps(data | {"usage": usage} if status == 200 else {"error": {"message": "out of order"}})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply.encode())))
            self.end_headers()
            with suppress(BrokenPipeError):  # a client that was killed does not wait for its reply
                self.wfile.write(reply.encode())

        def log_message(self, *args):
            pass

    return Handler


@contextmanager
def loopback_chat(**settings):
    chat = LoopbackChat(**settings)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(chat))
    server.daemon_threads = True
    chat.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
