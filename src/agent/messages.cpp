// What stands in the frames.

#include "agent/frames_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

template <class Owner, class Value>
struct NamedMember {
  const char* name;
  Value Owner::*member;
};
constexpr NamedMember<SandboxOptions, bool> sandbox_flags[] = {
    {"unix_sockets", &SandboxOptions::unix_sockets},
    {"shared_memory", &SandboxOptions::shared_memory},
    {"terminals", &SandboxOptions::terminals},
    {"pid_namespace", &SandboxOptions::pid_namespace},
    {"explain", &SandboxOptions::explain}};

constexpr NamedMember<SandboxOptions, std::vector<std::string>> sandbox_paths[] = {
    {"writable", &SandboxOptions::writable},
    {"readable", &SandboxOptions::readable},
    {"protected_paths", &SandboxOptions::protected_paths}};

constexpr NamedMember<StartRequest, bool> start_flags[] = {
    {"script", &StartRequest::has_script},
    {"tells", &StartRequest::follows_session},
    {"merge", &StartRequest::merge_streams},
    {"input", &StartRequest::has_input},
    {"wait", &StartRequest::waited_for}};

constexpr NamedMember<StartRequest, std::vector<std::string>> start_texts[] = {
    {"argv", &StartRequest::argv}, {"set", &StartRequest::set}, {"unset", &StartRequest::unset}};

// The numbers of an `end`: the bounds of each, and its value where it is missing.
struct EndNumber {
  const char* name;
  std::int64_t least;
  std::int64_t most;
  std::int64_t otherwise;
};
constexpr EndNumber end_numbers[] = {{"outcome", 0, static_cast<int>(Outcome::unknown), -1},
                                     {"exit_code", -1, 255, -2},
                                     {"signal", 0, 64, -1},
                                     {"cpu", 0, INT64_MAX, -1},
                                     {"memory", 0, INT64_MAX, -1},
                                     {"left", 0, INT64_MAX, -1},
                                     {"pid", -1, INT_MAX, -1},
                                     {"error", 0, 0xffff, 0}};

bool take_text(std::string_view& rest, std::string& text) {
  if (rest.find('\0') == std::string_view::npos) return false;
  text = take_part(rest, '\0');
  return true;
}

std::chrono::milliseconds time_in(const Json& object, const char* name,
                                  std::chrono::milliseconds otherwise) {
  return std::chrono::milliseconds(
      std::max<std::int64_t>(0, object[name].as_integer(otherwise.count())));
}

}  // namespace

inline namespace inner {

// A client adds what it wishes. Members that an agent does not know it ignores.
Json new_hello(std::chrono::milliseconds keep_alive) {
  Json hello = Json::object();
  set_member(hello, "protocol", agent_protocol);
  set_member(hello, "version", CODEEXEC_VERSION_STRING);
  set_member(hello, "keep_alive", static_cast<long long>(keep_alive.count()));
  return hello;
}

// For a client that only reads and then ends the agent: that of a container which is being
// prepared. Bytes that are no frames end the search, and it has not answered.
std::optional<Json> answer_in(std::string_view printed) {
  const std::size_t mark = printed.find(greeting_mark);
  const std::size_t end = printed.find('\n', std::min(mark, printed.size()));
  if (end == std::string_view::npos) return {};
  std::optional<Json> answer;
  FrameReader frames;
  frames.add(printed.substr(end + 1), [&answer](const Frame& frame) {
    if (auto parsed = Json::parse(frame.payload); parsed && frame.kind == FrameKind::hello)
      answer = std::move(*parsed);
    return !answer;
  });
  return answer;
}

// A message may be long, as it quotes what could not be started: it is cut to fit into one frame.
std::string end_text(const ProcessResult& result) {
  const std::int64_t numbers[] = {static_cast<int>(result.outcome),
                                  result.exit_code,
                                  result.signal,
                                  result.cpu_time.count(),
                                  static_cast<std::int64_t>(result.peak_memory),
                                  static_cast<std::int64_t>(result.left_behind),
                                  result.pid,
                                  result.system_error};
  Json end = Json::object();
  for (std::size_t i = 0; i < std::size(end_numbers); ++i)
    set_member(end, end_numbers[i].name, static_cast<long long>(numbers[i]));
  set_member(end, "held", result.pipe_held);
  set_member(end, "step", result.step);
  set_member(end, "message", std::string(utf8_prefix(result.message, 8192)));
  set_member(end, "limits", list_of(result.limits_reached));
  return end.dump();
}

// Numbers are checked against the bounds of their column, and combinations that no agent writes are
// refused: an exit without a status could be taken for a success. Texts are made printable, as they
// go into messages.
bool read_end(std::string_view text, ProcessResult& result) {
  const auto end = Json::parse(text);
  if (!end || !end->is_object()) return false;
  std::int64_t numbers[std::size(end_numbers)];
  for (std::size_t i = 0; i < std::size(end_numbers); ++i) {
    const EndNumber& number = end_numbers[i];
    numbers[i] = (*end)[number.name].as_integer(number.otherwise);
    if (numbers[i] < number.least || numbers[i] > number.most) return false;
  }
  result.outcome = static_cast<Outcome>(numbers[0]);
  result.exit_code = static_cast<int>(numbers[1]);
  result.signal = static_cast<int>(numbers[2]);
  if (result.outcome == Outcome::refused ||
      (result.outcome == Outcome::exited && result.exit_code < 0) ||
      (result.outcome == Outcome::signaled && result.signal == 0))
    return false;
  result.cpu_time = std::chrono::microseconds(numbers[3]);
  result.peak_memory = static_cast<std::uint64_t>(numbers[4]);
  result.left_behind = static_cast<std::uint64_t>(numbers[5]);
  result.pid = static_cast<int>(numbers[6]);
  result.system_error = static_cast<int>(numbers[7]);
  result.pipe_held = (*end)["held"sv].as_bool();
  result.step = printable(bounded((*end)["step"sv]));
  result.message = printable((*end)["message"sv].as_string());
  for (const std::string& limit : texts_in((*end)["limits"sv]))
    result.limits_reached.push_back(printable(limit));
  return true;
}

std::string bounded(const Json& value) { return std::string(utf8_prefix(value.as_string(), 4096)); }

// Items that are no texts are empty ones; what is no list has no items.
std::vector<std::string> texts_in(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list.items()) texts.push_back(item.as_string());
  return texts;
}

Json to_json(const SandboxOptions& options) {
  Json object = Json::object();
  set_member(object, "mode", static_cast<int>(options.mode));
  set_member(object, "network", static_cast<int>(options.network));
  for (const auto& flag : sandbox_flags) set_member(object, flag.name, options.*flag.member);
  for (const auto& paths : sandbox_paths)
    set_member(object, paths.name, list_of(options.*paths.member));
  for (const NamedLimit& limit : limit_names)
    set_member(object, limit.name, static_cast<unsigned long long>(options.limits.*limit.value));
  return object;
}

// What is missing or unknown counts as the strictest, as a client of a later version may ask for a
// mode that this agent does not know.
SandboxOptions sandbox_options_from(const Json& object) {
  SandboxOptions options;
  const std::int64_t mode = object["mode"sv].as_integer(2);
  options.mode = mode == 0   ? SandboxMode::off
                 : mode == 1 ? SandboxMode::best_effort
                             : SandboxMode::strict;
  const std::int64_t network = object["network"sv].as_integer(1);
  options.network = network >= 0 && network <= 3 ? static_cast<Network>(network) : Network::none;
  for (const auto& flag : sandbox_flags) options.*flag.member = object[flag.name].as_bool();
  for (const auto& paths : sandbox_paths) options.*paths.member = texts_in(object[paths.name]);
  for (const NamedLimit& limit : limit_names)
    options.limits.*limit.value =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, object[limit.name].as_integer()));
  return options;
}

Json to_json(const SandboxReport& report) {
  Json object = Json::object();
  set_member(object, "mode", static_cast<int>(report.mode));
  set_member(object, "network", static_cast<int>(report.network));
  set_member(object, "landlock_abi", report.landlock_abi);
  set_member(object, "enforced", list_of(report.enforced));
  set_member(object, "missing", list_of(report.missing));
  set_member(object, "places", list_of(report.places));
  set_member(object, "rules", list_of(report.rules));
  return object;
}

// The mode and the network are read as in options: unknown ones are the strictest.
SandboxReport sandbox_report_from(const Json& object) {
  SandboxReport report;
  const SandboxOptions read = sandbox_options_from(object);
  report.mode = read.mode;
  report.network = read.network;
  report.landlock_abi = static_cast<int>(object["landlock_abi"sv].as_integer() & 0xff);
  report.enforced = texts_in(object["enforced"sv]);
  report.missing = texts_in(object["missing"sv]);
  report.places = texts_in(object["places"sv]);
  report.rules = texts_in(object["rules"sv]);
  return report;
}

// The texts are separated by NUL bytes, which no path has, so that none needs to be escaped.
std::string root_list_of(std::string_view workspace, const std::vector<Root>& roots) {
  std::string list(workspace);
  for (const Root& root : roots) {
    const char permission = static_cast<char>('0' + static_cast<int>(root.permission));
    append_all(list, {"\0"sv, std::string_view(&permission, 1), root.path});
  }
  return list;
}

// Of any bytes: a digit that is no Permission becomes one by its low bits, never more than `write`.
std::vector<Root> roots_in(std::string_view list, std::string& workspace) {
  std::vector<Root> roots;
  workspace = take_part(list, '\0');
  while (!list.empty()) {
    const auto permission = static_cast<Permission>(std::min(list[0] & 3, 2));
    list.remove_prefix(1);
    roots.push_back({std::string(take_part(list, '\0')), permission});
  }
  return roots;
}

}  // namespace inner

// Without a program in argv: the agent then starts its own. It reads input, which is the question.
StartRequest StartRequest::question() {
  StartRequest request;
  request.argv.push_back({});
  request.has_input = true;
  return request;
}

// The head is JSON, and says how many texts of each kind follow; those may be megabytes, and as
// JSON all of their bytes would be escaped and parsed.
std::string StartRequest::text() const {
  Json head = Json::object();
  for (const auto& flag : start_flags)
    if (this->*flag.member) set_member(head, flag.name, true);
  for (const auto& texts : start_texts) set_member(head, texts.name, (this->*texts.member).size());
  if (terminal) {
    set_member(head, "rows", terminal->rows);
    set_member(head, "cols", terminal->cols);
  }
  if (timeout != no_limit) set_member(head, "timeout", static_cast<long long>(timeout.count()));
  set_member(head, "grace", static_cast<long long>(kill_grace.count()));
  std::string text = head.dump();
  const auto add = [&text](const std::string& part) {
    text += '\0';
    text += part;
  };
  add(work_dir);
  add(venv);
  for (const auto& texts : start_texts)
    for (const std::string& part : this->*texts.member) add(part);
  add(script);
  return text;
}

// Of any bytes, in linear time. False: a text is missing, or there is no program. What is left is
// the script, and may be anything.
bool StartRequest::read(std::string_view text) {
  std::string head_text;
  if (!take_text(text, head_text)) return false;
  const auto head = Json::parse(head_text);
  if (!head || !head->is_object()) return false;
  for (const auto& flag : start_flags) this->*flag.member = (*head)[flag.name].as_bool();
  // The start checks the size.
  if (const Json* const rows = head->find("rows"sv))
    terminal = TerminalSize{static_cast<int>(rows->as_integer() & INT_MAX),
                            static_cast<int>((*head)["cols"sv].as_integer() & INT_MAX)};
  timeout = time_in(*head, "timeout", no_limit);
  kill_grace = time_in(*head, "grace", std::chrono::milliseconds(0));
  if (!take_text(text, work_dir) || !take_text(text, venv)) return false;
  for (const auto& texts : start_texts) {
    // Each has a byte at least: a number that is too large ends with the text.
    for (std::int64_t left = (*head)[texts.name].as_integer(); left > 0; --left) {
      if (!has_nul(text)) return false;
      (this->*texts.member).push_back(std::string(take_part(text, '\0')));
    }
  }
  script = text;
  return !argv.empty();
}

}  // namespace v0_1
}  // namespace codeexec
