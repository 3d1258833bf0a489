// Frames, and what stands in them.

#include "place/place_internal.hpp"

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

constexpr std::size_t frame_head = 9;

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

constexpr NamedMember<PlaceRequest, bool> start_flags[] = {{"script", &PlaceRequest::has_script},
                                                           {"tells", &PlaceRequest::tells},
                                                           {"merge", &PlaceRequest::merge_streams},
                                                           {"input", &PlaceRequest::has_input},
                                                           {"wait", &PlaceRequest::waited_for}};

constexpr NamedMember<PlaceRequest, std::vector<std::string>> start_texts[] = {
    {"argv", &PlaceRequest::argv}, {"set", &PlaceRequest::set}, {"unset", &PlaceRequest::unset}};

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

std::string number_bytes(std::size_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(static_cast<unsigned char>(value >> shift));
  return bytes;
}

std::uint32_t number_in(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void put_frame(std::string& out, FrameKind kind, std::uint32_t id, std::string_view payload) {
  out += number_bytes(payload.size());
  out += static_cast<char>(kind);
  out += number_bytes(id);
  out += payload;
}

std::string credit_text(Channel channel, std::size_t bytes) {
  return static_cast<char>(channel) + number_bytes(bytes);
}

bool read_credit(const Frame& frame, Channel& channel, std::size_t& bytes) {
  if (frame.payload.size() != 5 || static_cast<unsigned char>(frame.payload[0]) > 2) return false;
  channel = static_cast<Channel>(frame.payload[0]);
  bytes = number_in(frame.payload.substr(1));
  return true;
}

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

SandboxOptions sandbox_options_from(const Json& object) {
  SandboxOptions options;
  // An unknown value counts as the strictest.
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
  set_member(object, "rules", list_of(report.rules));
  return object;
}

SandboxReport sandbox_report_from(const Json& object) {
  SandboxReport report;
  const SandboxOptions read = sandbox_options_from(object);
  report.mode = read.mode;
  report.network = read.network;
  report.landlock_abi = static_cast<int>(object["landlock_abi"sv].as_integer() & 0xff);
  report.enforced = texts_in(object["enforced"sv]);
  report.missing = texts_in(object["missing"sv]);
  report.rules = texts_in(object["rules"sv]);
  return report;
}

void widen_pipe([[maybe_unused]] int fd) {
#if defined(__linux__)
  constexpr int bytes = 256 << 10;
  ::fcntl(fd, F_SETPIPE_SZ, bytes);
#endif
}

}  // namespace inner

std::size_t PlaceWindow::credit(std::size_t held, std::size_t commands) {
  const std::size_t open = left + held;
  if (allowed - open < allowed / 2) return 0;
  const std::size_t most = std::max(stream_window, most_window / commands);
  if (most <= open) return 0;
  allowed = most;
  left = most - held;
  return most - open;
}

ssize_t PlaceQueue::write_to(int fd) {
  const ssize_t size = write_to_pipe(fd, std::string_view(bytes).substr(written));
  if (size <= 0) return size;
  written += static_cast<std::size_t>(size);
  // No more is moved than was written before.
  if (written >= bytes.size() - written) {
    bytes.erase(0, written);
    written = 0;
  }
  return size;
}

bool PlaceFrames::add(std::string_view bytes, FunctionRef<bool(const Frame&)> use) {
  while (!bytes.empty()) {
    // A frame that came in pieces is put together, any other is used where it lies.
    const auto move_in = [&](std::size_t size) {
      const std::size_t missing = size - std::min(size, held_.size());
      held_ += bytes.substr(0, missing);
      bytes.remove_prefix(std::min(missing, bytes.size()));
      return held_.size() >= size;
    };
    if (left_ > 0) {
      const std::string_view piece = bytes.substr(0, left_);
      left_ -= piece.size();
      bytes.remove_prefix(piece.size());
      if (!use({static_cast<FrameKind>(kind_), id_, piece})) return false;
      continue;
    }
    const bool whole_head = held_.empty() && bytes.size() >= frame_head;
    if (!whole_head && !move_in(frame_head)) return true;
    const std::string_view head = whole_head ? bytes : std::string_view(held_);
    const std::size_t payload = number_in(head);
    if (payload > longest_payload) return false;
    const Frame frame = {static_cast<FrameKind>(head[4]), number_in(head.substr(5)), {}};
    if (payload > 0 && (frame.kind == FrameKind::input || frame.kind == FrameKind::out ||
                        frame.kind == FrameKind::err)) {
      kind_ = static_cast<unsigned char>(frame.kind);
      id_ = frame.id;
      left_ = payload;
      if (whole_head) bytes.remove_prefix(frame_head);
      held_.clear();
      continue;
    }
    const std::size_t size = frame_head + payload;
    if (whole_head && bytes.size() >= size) {
      if (!use({frame.kind, frame.id, bytes.substr(frame_head, payload)})) return false;
      bytes.remove_prefix(size);
      continue;
    }
    if (!move_in(size)) return true;
    const bool goes_on = use({frame.kind, frame.id, std::string_view(held_).substr(frame_head)});
    held_.clear();
    if (!goes_on) return false;
  }
  return true;
}

PlaceRequest PlaceRequest::question() {
  PlaceRequest request;
  request.argv.push_back({});
  request.has_input = true;
  return request;
}

std::string PlaceRequest::text() const {
  Json head = Json::object();
  for (const auto& flag : start_flags)
    if (this->*flag.member) set_member(head, flag.name, true);
  for (const auto& texts : start_texts) set_member(head, texts.name, (this->*texts.member).size());
  if (terminal_rows != 0) set_member(head, "rows", terminal_rows);
  if (terminal_rows != 0) set_member(head, "cols", terminal_cols);
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

bool PlaceRequest::read(std::string_view text) {
  std::string head_text;
  if (!take_text(text, head_text)) return false;
  const auto head = Json::parse(head_text);
  if (!head || !head->is_object()) return false;
  for (const auto& flag : start_flags) this->*flag.member = (*head)[flag.name].as_bool();
  // The start checks them.
  terminal_rows = static_cast<int>((*head)["rows"sv].as_integer() & INT_MAX);
  terminal_cols = static_cast<int>((*head)["cols"sv].as_integer() & INT_MAX);
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
