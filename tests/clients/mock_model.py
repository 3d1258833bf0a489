"""A model that is none: it speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and
Gemini generateContent on loopback, streamed or not, and asks for the tool calls of a list, one each
turn. It keeps what each request says: the tools, and their results as the model would see them.
"""

import gzip
import itertools
import json
import re
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FINISHED = "The list of calls is done."
MODELS = ["gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro"]


class Call:
    """A call that the model asks for: a tool, found by the end of its name, and arguments."""

    def __init__(self, tool, **arguments):
        self.tool = tool
        self.arguments = arguments

    def name_among(self, names):
        found = [name for name in names if name == self.tool or name.endswith(self.tool)]
        return min(found, key=len) if found else None


def text_of(value):
    """All text of a result, however its parts are nested, as the model would read it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text_of(part) for part in value)
    if isinstance(value, dict):
        for key in ("text", "content", "output", "error"):
            if key in value:
                return text_of(value[key])
    return json.dumps(value)


# Each API: the tools that a request offers, the results in it, and an answer in its form. An answer
# has a call (name, arguments) or a text.

class Anthropic:
    @staticmethod
    def tools(body):
        return {tool["name"]: tool for tool in body.get("tools", [])}

    @staticmethod
    def results(body):
        return [part.get("content") for message in body.get("messages", [])
                if isinstance(message["content"], list)
                for part in message["content"] if part.get("type") == "tool_result"]

    @staticmethod
    def answer(body, number, call, text):
        if call:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0],
                     "input": call[1]}
            empty = dict(block, input={})
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        else:
            block = {"type": "text", "text": text}
            empty = dict(block, text="")
            delta = {"type": "text_delta", "text": text}
        reason = "tool_use" if call else "end_turn"
        usage = {"input_tokens": 100, "output_tokens": 10}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant",
                   "model": body.get("model", MODELS[1]), "content": [block],
                   "stop_reason": reason, "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            return message
        return [
            {"type": "message_start",
             "message": dict(message, content=[], stop_reason=None)},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "usage": usage,
             "delta": {"stop_reason": reason, "stop_sequence": None}},
            {"type": "message_stop"}]


class Responses:
    @staticmethod
    def tools(body):
        found = {}
        for tool in body.get("tools", []):
            # Codex puts the tools of a server into a namespace.
            for inner in tool.get("tools", []) if tool.get("type") == "namespace" else [tool]:
                if inner.get("name") or inner.get("type"):
                    found[inner.get("name") or inner["type"]] = dict(
                        inner, namespace=tool["name"] if inner is not tool else None)
        return found

    @staticmethod
    def results(body):
        items = body.get("input", [])
        return [item.get("output") for item in items if isinstance(items, list)
                and item.get("type", "").endswith("_call_output")]

    @staticmethod
    def answer(body, number, call, text):
        if call:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                    "name": call[0], "arguments": json.dumps(call[1]), "status": "completed"}
            namespace = Responses.tools(body)[call[0]]["namespace"]
            if namespace:
                item["namespace"] = namespace
        else:
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]}
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
                 "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens_details": {"reasoning_tokens": 0}}
        response = {"id": f"resp_{number}", "object": "response", "created_at": 0,
                    "model": body.get("model", MODELS[0]), "status": "completed",
                    "output": [item], "error": None, "incomplete_details": None,
                    "instructions": None, "metadata": {}, "parallel_tool_calls": False,
                    "temperature": 1, "tool_choice": "auto", "tools": [], "top_p": 1,
                    "usage": usage}
        if not body.get("stream"):
            return response
        place = {"item_id": item["id"], "output_index": 0}
        if call:
            deltas = [dict(place, type="response.function_call_arguments.delta",
                           delta=item["arguments"]),
                      dict(place, type="response.function_call_arguments.done",
                           arguments=item["arguments"])]
        else:
            deltas = [dict(place, type="response.output_text.delta", content_index=0, delta=text)]
        events = [
            {"type": "response.created", "response": dict(response, status="in_progress",
                                                          output=[])},
            {"type": "response.output_item.added", "output_index": 0,
             "item": dict(item, status="in_progress")},
            *deltas,
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response}]
        return [dict(event, sequence_number=at) for at, event in enumerate(events)]


class Chat:
    @staticmethod
    def tools(body):
        return {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or []}

    @staticmethod
    def results(body):
        # smolagents gives a result as a text of its user.
        return [message.get("content") for message in body.get("messages", [])
                if message.get("role") == "tool" or (message.get("role") == "user" and
                text_of(message.get("content")).startswith("Observation:"))]

    @staticmethod
    def answer(body, number, call, text):
        message = {"role": "assistant", "content": None if call else text}
        if call:
            message["tool_calls"] = [
                {"index": 0, "id": f"call_{number}", "type": "function",
                 "function": {"name": call[0], "arguments": json.dumps(call[1])}}]
        reason = "tool_calls" if call else "stop"
        base = {"id": f"chatcmpl-{number}", "created": 0, "model": body.get("model", MODELS[0])}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return dict(base, object="chat.completion", choices=[choice], usage=usage)
        base["object"] = "chat.completion.chunk"
        choice = {"index": 0, "delta": message, "finish_reason": None}
        return [dict(base, choices=[choice]),
                dict(base, choices=[dict(choice, delta={}, finish_reason=reason)]),
                dict(base, choices=[], usage=usage)]


class Gemini:
    @staticmethod
    def tools(body):
        return {tool["name"]: tool for group in body.get("tools", [])
                for tool in group.get("functionDeclarations", [])}

    @staticmethod
    def results(body):
        return [part["functionResponse"].get("response") for content in body.get("contents", [])
                for part in content.get("parts", []) if "functionResponse" in part]

    @staticmethod
    def answer(body, number, call, text):
        part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": text}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP",
                     "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODELS[2]}


class Request:
    """What one request with tools said."""

    def __init__(self, api, body):
        self.body = body
        self.tools = api.tools(body)
        self.results = [text_of(result) for result in api.results(body)]
        # What it names as tools in a text, of all that has the form of such a name.
        self.names = set(self.tools) | set(re.findall(r"\bmcp_\w+", json.dumps(body)))


class MockModel:
    """Serves until it is closed. `requests` has those that offer tools, in their order."""

    def __init__(self, calls=()):
        self.calls = list(calls)
        self.requests = []
        self.problems = []
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,),
                                                                 {"model": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, api, body):
        request = Request(api, body)
        call, text = None, FINISHED
        if request.tools:
            with self.lock:
                self.requests.append(request)
            call, text = self.next_step(request)
        return api.answer(body, next(self.numbers), call, text)

    # How many results it has says how far the client is.
    def next_step(self, request):
        at = len(request.results)
        if at < len(self.calls):
            call = self.calls[at]
            name = call.name_among(request.tools)
            if name:
                return (name, call.arguments), None
            # Qwen Code names the tools of servers in a text, and has one that calls them.
            name = call.name_among(request.names)
            if name and "tool_call" in request.tools:
                return ("tool_call", {"name": name, "arguments": call.arguments}), None
            return None, f"no tool {call.tool}"
        # An agent of smolagents ends by a tool.
        if "final_answer" in request.tools:
            return ("final_answer", {"answer": FINISHED}), None
        return None, FINISHED


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def read_body(self):
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        encoding = self.headers.get("content-encoding")
        if encoding == "gzip":
            return gzip.decompress(data)
        return zlib.decompress(data) if encoding == "deflate" else data

    def send(self, kind, data):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_json(self, value):
        self.send("application/json", json.dumps(value).encode())

    def send_events(self, api, events):
        lines = [(f"event: {event['type']}\n" if "type" in event else "") +
                 f"data: {json.dumps(event)}\n\n" for event in events]
        if api is Chat:
            lines.append("data: [DONE]\n\n")
        self.send("text/event-stream", "".join(lines).encode())

    def do_HEAD(self):
        self.send("application/json", b"")

    def do_GET(self):
        models = [{"id": name, "object": "model", "type": "model", "display_name": name,
                   "created_at": "2026-01-01T00:00:00Z"} for name in MODELS]
        is_list = "models" in self.path
        self.send_json({"object": "list", "data": models, "models": []} if is_list else {})

    def do_POST(self):
        path = self.path.split("?")[0]
        data = self.read_body()
        endings = {"/messages": Anthropic, "/responses": Responses, "/chat/completions": Chat,
                   ":generateContent": Gemini, ":streamGenerateContent": Gemini}
        api = next((api for ending, api in endings.items() if path.endswith(ending)), None)
        if api is None:
            counts = {"input_tokens": len(data) // 4, "totalTokens": len(data) // 4}
            return self.send_json(counts if "okens" in path else {})
        try:
            answer = self.model.answer(api, json.loads(data))
        except Exception as error:  # a form of a request that this does not know
            self.model.problems.append(f"{path}: {type(error).__name__}: {error}")
            return self.send_json({"error": {"message": str(error)}})
        if path.endswith(":streamGenerateContent"):
            answer = [answer]
        return self.send_events(api, answer) if isinstance(answer, list) else \
            self.send_json(answer)
