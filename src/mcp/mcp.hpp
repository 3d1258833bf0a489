// A Model Context Protocol server over stdio, for any tools.
#pragma once

#include "base/base.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

// The protocol revisions 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25 (opened by `initialize`)
// and 2026-07-28 (stateless) are spoken from one process, decided for each message by itself.
// A client of 2026-07-28 with the extension io.modelcontextprotocol/tasks gets a task in place of a
// result that takes longer than a second; one of 2025-11-25 may ask for a task with each call.
// Handlers need not know.
namespace mcp {

// Blocks of a tool's answer: the protocol's ContentBlock objects.
Json text_block(std::string text);
Json image_block(std::string_view bytes, std::string mime_type);
Json audio_block(std::string_view bytes, std::string mime_type);
// An embedded resource: its text, or its bytes (sent as base64).
Json resource_text_block(std::string uri, std::string mime_type, std::string text);
Json resource_blob_block(std::string uri, std::string mime_type, std::string_view bytes);
// A reference the client may fetch by itself. Empty strings are left out.
Json resource_link_block(std::string uri, std::string name, std::string mime_type = {},
                         std::string description = {});

// A JSON-RPC error in place of a result. The model does not see it; the client's program does.
struct RpcError {
  int code = -32603;
  std::string message = {};
  std::optional<Json> data = {};
};

// The answer of a tool. `is_error` shows the model that the tool failed; the content says why.
struct ToolResult {
  // Blocks, made as above or objects of any other kind. Text in them that is not UTF-8 is repaired
  // with U+FFFD when it is sent.
  std::vector<Json> content = {};
  std::optional<Json> structured = {};  // structuredContent; required of tools with output_schema
  bool is_error = false;
  Json meta = {};  // `_meta`: an object, or null for none. Prefix own keys with your domain.
  // When set, it is sent in place of all this, for the client's program: no model sees it.
  std::optional<RpcError> rpc_error = {};

  static ToolResult text(std::string text);
  static ToolResult error(std::string message);
  // The value, and the same value as a text block for clients that show only text.
  static ToolResult with_structured(Json value);
};

// Any kind but null.
using ParameterType = Json::Kind;

// One argument of a tool. The tool's input schema and the check of every call are both made from
// it. The schema has only what every provider of models takes: one type, enumerations of strings,
// minimum and maximum. So the check accepts more than it says: null, a text that is exactly a
// number or a boolean where one is wanted ("2.5", "true"), and the other name. It accepts less in
// two places: the schema does not say `greater_than`, nor that unknown arguments are refused.
struct Parameter {
  std::string name = {};
  std::string other_name = {};  // which models use, too; the schema does not have it
  ParameterType type = ParameterType::string;
  std::string description = {};
  bool required = false;
  bool nullable = false;                    // null is accepted, and means: left out
  Json default_value = {};                  // in the schema, and from Call::argument()
  std::optional<double> minimum = {};       // of integers and numbers: inclusive
  std::optional<double> greater_than = {};  // of integers and numbers: exclusive lower bound
  std::optional<double> maximum = {};       // of integers and numbers: inclusive
  std::vector<std::string> choices = {};    // of strings: the only values allowed, unless empty
  std::optional<ParameterType> items = {};  // of arrays: the type of every item
  std::vector<Parameter> fields = {};       // of items that are objects: what each has
};

// What a handler sees of one tools/call. Copies refer to the same call and may outlive the handler.
// Thread: any.
class Call {
 public:
  const std::string& tool() const noexcept;
  // As they were sent: an object.
  const Json& arguments() const noexcept;
  // The argument with the name and type of its parameter, or the parameter's default when it was
  // left out or is null.
  const Json& argument(std::string_view name) const noexcept;
  // The request's `_meta`: an object, or null.
  const Json& meta() const noexcept;
  // The id of the request, as JSON.
  const std::string& request_id() const noexcept;
  // The client's name and version as it gives them, separated by a blank, of at most 256 bytes; or
  // empty. Nothing vouches for it.
  const std::string& client() const noexcept;
  // Cancelled when the client cancels the call or the server ends. A handler should then return
  // soon: what it returns to a client that cancelled is dropped.
  const CancelToken& cancel_token() const noexcept;
  bool wants_progress() const noexcept;
  // The client has a task in place of the answer, or gets one when the call takes long: it does not
  // wait for the answer, however long the call takes.
  bool runs_as_task() const noexcept;
  // Reports to the client how far the call is. Ignored when the client did not ask, when `progress`
  // is not finite or not greater than before, and once the call is answered or cancelled. More than
  // 20 in a second (after the first 32) are dropped, and so is what a client is too slow to read.
  void progress(double progress, std::optional<double> total = {},
                std::string_view message = {}) const;
  // Bytes of JSON the result may have. A longer one is replaced by an error that says so, so a
  // handler with a long answer shortens it by itself.
  std::size_t max_result_bytes() const noexcept;
  // Asks the person at the client, and waits for {"action":"accept"|"decline"|"cancel"}. One that
  // accepts also has "content", an object that fits the schema. `requested_schema` is a JSON Schema
  // of type object; its properties are strings, numbers, booleans or choices. One question at a
  // time, and before the handler returns. In revision 2026-07-28 the question is the answer to the
  // request, and the client makes the call again with what the person says; if it does not in time,
  // the call is cancelled, as no request waits for its result.
  //   Blocks:  for `timeout` at the most, and for an hour. Other calls go on meanwhile.
  //   Errors:  unsupported when the client does not offer this (nor any before 2025-06-18); limit
  //            with ETIMEDOUT when the time is over, and without when 16 calls ask already; io with
  //            ECANCELED when the call is cancelled or the session ends; parse when the client
  //            answers anything else; invalid_argument.
  Expected<Json> elicit(std::string_view message, const Json& requested_schema,
                        std::chrono::milliseconds timeout) const;
  // The client's roots, with ServerOptions::ask_roots: an array of at most 100 objects {"uri",
  // "name"?}, as it sent them, unchecked; null stands for one that is no object or has more than
  // 64 KiB. The pointer stays the same until the client answers anew. In the 2025 revisions (and
  // before) it is asked when it is initialized and when it says that its roots have changed. In
  // 2026-07-28, which deprecates roots and has no such news, it is asked once: by the answer to the
  // first call that comes here, as in elicit(). A client that answers with an error keeps the roots
  // that it has named before.
  //   Blocks:  until `timeout` after the client was asked; the call that asks in 2026-07-28 for a
  //            minute.
  //   Errors:  unsupported when the client does not offer this; limit with ETIMEDOUT when it has
  //            not answered in time; io with ECANCELED when the session ends; parse when it has
  //            answered anything else.
  Expected<std::shared_ptr<const Json>> roots(std::chrono::milliseconds timeout) const;
  // Returns a function that sends clients that listen the news that `uri` has changed. It may be
  // kept for longer than the call, which it does not keep, and does nothing after the session. The
  // uri must begin with ServerOptions::announced. A client of the 2025 revisions that has set a log
  // level of info or debug gets `data` in notifications/message. One of 2026-07-28 that listens to
  // this very uri gets notifications/resources/updated. Never waits: a client that does not read
  // gets none.
  Function<void(std::string_view uri, const Json& data)> announcer() const;

  struct State;  // the server's side of it

 private:
  explicit Call(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

struct Tool {
  std::string name = {};  // 1 to 64 of A-Z a-z 0-9 _ - .
  std::string title = {};
  std::string description = {};
  // Checked before the handler is called; a call that breaks them is answered with the reason.
  std::vector<Parameter> parameters = {};
  // Instead of `parameters`: a JSON Schema of type object. The handler then checks by itself. It is
  // sent as it is, with "properties":{} when it has none: some providers refuse it otherwise.
  Json input_schema = {};
  // A JSON Schema of type object for ToolResult::structured, or null for none. A result that is no
  // error and breaks its type, enum, const, required, properties, additionalProperties, items or
  // bounds of numbers is answered with an RpcError that says where.
  Json output_schema = {};
  // Hints for the client's user interface; those that are not set are left out. The protocol's
  // defaults are: not read-only, destructive, not idempotent, open world.
  std::optional<bool> read_only = {};
  std::optional<bool> destructive = {};
  std::optional<bool> idempotent = {};
  std::optional<bool> open_world = {};
  bool tasks = true;  // 2025-11-25: a client may run it as a task; false: such a call is an error
  // Runs on one of the server's threads, several calls at a time. An exception becomes an error
  // result with its text.
  Function<ToolResult(const Call&)> handler = {};
};

struct ServerOptions {
  std::string name = "codeexec";
  std::string title = {};
  std::string version = "0.1.0";
  std::string website = {};
  std::string instructions = {};  // the model gets them at the start
  std::string announced = {};     // how the URIs of Call::announcer() begin; empty: there are none
  bool ask_roots = false;         // asks the client for its roots, see Call::roots()
  // How the names of clients begin that show their model structuredContent in place of the text.
  // They get the text alone, and no output schemas. An empty text: so do all.
  std::vector<std::string> text_only_clients = {};
  // Where messages come from and go to. 0 and 1 are moved away while serving: 0 then is /dev/null
  // and 1 is a copy of 2, so that no library writes into the protocol's stream and no child
  // inherits it.
  int in_fd = 0;
  int out_fd = 1;
  std::size_t max_line = std::size_t{16} << 20;    // bytes of one incoming message
  std::size_t max_reply = std::size_t{8} << 20;    // bytes of one outgoing message; at least 4096
  std::size_t max_queued = std::size_t{16} << 20;  // bytes waiting for a client that does not read
  // Memory for the messages of calls that run or wait; with more, a call is refused unless it is
  // the only one.
  std::size_t max_open_bytes = std::size_t{64} << 20;
  std::size_t max_concurrent = 16;  // handlers running at a time
  std::size_t max_waiting = 256;    // calls waiting for one; more are refused
  // One line about something odd, without newline. Called from the server's threads, one at a time.
  // Empty: a line on descriptor 2, dropped when it cannot be written at once.
  Function<void(std::string_view)> log = {};
};

class Server {
 public:
  explicit Server(ServerOptions options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Makes a tool known; tools are listed in this order. Not while serving.
  //   Errors: invalid_argument (message names the tool and the field).
  Expected<void> add(Tool tool);

  // Answers messages until the input ends, `stop` is cancelled or the output has no more readers;
  // all three are success. At the end of input running calls get 300 ms to finish, then all calls
  // are cancelled and get 600 ms, then what is queued is written: it returns within 1.5 s.
  // Changes no signal disposition; a broken pipe raises no SIGPIPE.
  //   Blocks:  the calling thread; handlers run on threads that end before it returns.
  //   Errors:  invalid_argument (message names the option), io; limit when a handler did not return
  //            in time: its thread goes on, and what the handler refers to must stay alive.
  Expected<void> serve(const CancelToken& stop = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
