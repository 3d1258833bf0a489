// The client's end of a connection to an agent.

#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "paths/paths_internal.hpp"
#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_preface = std::size_t{64} << 10;
constexpr std::size_t longest_account = 1024;
constexpr std::size_t longest_agent = std::size_t{64} << 20;

// What transports write when they fail, and what to do about it.
constexpr HelpRow place_troubles[] = {
    {"place_agent: ", "the agent cannot be put there"},
    {"host key verification failed",
     "its host key is not known, or another one than before: connect once by hand and compare it"},
    {"permission denied (", "it wants a key that is loaded, and no password can be asked for here"},
    {"could not resolve", "no machine has this name"},
    {"connection refused", "nothing listens there: is it up, and is the port right?"},
    {"timed out", "it does not answer: is it up, and reachable from here?"},
    {"no route to host", "it cannot be reached from here"},
    {"exec format error", "the agent there is for another processor"},
    {"cannot execute", "the agent there is not a program that runs there"},
    {"unknown option", "the agent there is of another version"},
};
constexpr auto packed_place_troubles = pack_help<place_troubles>();
// Not in a container, which has no such options.
constexpr HelpRow no_agent_there[] = {
    {"not found|no such file",
     "there is no such program there: install codeexec-mcp, name it (place_agent_path), or let it "
     "be copied (place_agent)"},
};
constexpr auto packed_no_agent_there = pack_help<no_agent_there>();

struct PlaceFact {
  const char* name;
  std::string PlaceFacts::*member;
};
constexpr PlaceFact place_facts[] = {{"version", &PlaceFacts::version},
                                     {"machine", &PlaceFacts::machine},
                                     {"host", &PlaceFacts::host},
                                     {"home", &PlaceFacts::home}};

}  // namespace

inline namespace inner {

Nonce::Nonce(const std::string& folder) {
  auto opened = open_canonical_directory(folder);
  if (!opened) {
    problem_ = opened.error().message;
    return;
  }
  folder_ = std::move(*opened);
  const UniqueFd file(::openat(folder_.get(), name_.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  int error = file ? write_all(file.get(), content_) : errno;
  if (error == 0 && ::fchmod(file.get(), 0644) != 0) error = errno;
  if (error != 0)
    problem_ = concat("cannot make a file in %: %", {in_quotes(folder), errno_text(error)});
  path_ = concat("%/%", {folder, name_});
}

Nonce::~Nonce() {
  if (folder_) ::unlinkat(folder_.get(), name_.c_str(), 0);
}

Json new_hello(std::chrono::milliseconds keep_alive) {
  Json hello = Json::object();
  set_member(hello, "protocol", place_protocol);
  set_member(hello, "version", CODEEXEC_VERSION_STRING);
  set_member(hello, "keep_alive", static_cast<long long>(keep_alive.count()));
  return hello;
}

std::optional<Json> answer_in(std::string_view printed) {
  const std::size_t mark = printed.find(greeting_mark);
  const std::size_t end = printed.find('\n', std::min(mark, printed.size()));
  if (end == std::string_view::npos) return {};
  std::optional<Json> answer;
  PlaceFrames frames;
  frames.add(printed.substr(end + 1), [&answer](const Frame& frame) {
    if (auto told = Json::parse(frame.payload); told && frame.kind == FrameKind::hello)
      answer = std::move(*told);
    return !answer;
  });
  return answer;
}

}  // namespace inner

Expected<std::shared_ptr<PlaceLink>> PlaceLink::open(const Wanted& wanted,
                                                     const std::optional<CancelToken>& cancel) {
  const CancellationPause pause;
  auto link = new_shared<PlaceLink>(wanted);
  if (auto ok = link->line_.start(wanted.transport); !ok)
    return with_prefix("cannot reach %: ", {wanted.name}, ok.error());
  for (const UniqueFd* fd : {&link->line_.input, &link->line_.out}) widen_pipe(fd->get());
  wanted.meanwhile();
  if (!make_pipe(link->wake_out_, link->wake_in_)) return system_error(errno, "cannot make a pipe");
  set_nonblocking(link->wake_out_);
  set_nonblocking(link->wake_in_);
  if (auto ok = link->greet(wanted, cancel); !ok) return ok.failure();
  if (const int error = start_thread(&link->thread_, thread_main, link.get()); error != 0)
    return system_error(error, "cannot start a thread");
  link->has_thread_ = true;
  return link;
}

PlaceLink::~PlaceLink() {
  if (owner_ != ::getpid()) {
    has_thread_ = false;
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    // The agent kills all that it has started, and ends.
    line_.input.reset();
  }
  wake();
  if (has_thread_) ::pthread_join(thread_, nullptr);
  if (lost() || !has_thread_) return;
  std::vector<pollfd> set = {{line_.child.exit_event.get(), POLLIN, 0}};
  wait_for_events(set, later(Clock::now(), std::chrono::milliseconds(500)));
}

bool PlaceLink::is_lost() const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!lost()) return false;
  }
  wait_for_event(settled_, {}, Clock::time_point::max());
  return true;
}

std::string PlaceLink::reason() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

void* PlaceLink::thread_main(void* self) {
  auto& link = *static_cast<PlaceLink*>(self);
  while (link.pump(-1, Clock::time_point::max())) {
  }
  return nullptr;
}

// The error of an agent that has not answered.
SharedError PlaceLink::failure() const {
  std::string said = said_.text();
  std::string_view help = help_in(said, packed_place_troubles.table());
  if (help.empty() && !is_container_) help = help_in(said, packed_no_agent_there.table());
  while (!said.empty() && (said.back() == '\n' || said.back() == '\r')) said.pop_back();
  return make_error(ErrorCode::io, "cannot reach %: %%%%%",
                    {name_, help, help.empty() ? "" : "; ", reason_,
                     said.empty() ? "" : "; it said: ", printable(said)});
}

Expected<void> PlaceLink::greet(const Wanted& wanted, const std::optional<CancelToken>& cancel) {
  if (!wanted.agent.empty()) {
    const auto file = read_whole_file(wanted.agent, longest_agent, "agent"sv);
    if (!file) return file.failure();
    cargo_ = *file;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      send(bring_text(cargo_));
    }
    if (auto ok = wait_for_agent(wanted, cancel, Life::speaking); !ok) return ok;
    cargo_ = {};
    queue_.bytes.shrink_to_fit();
  }
  std::optional<Nonce> nonce;
  Json hello = wanted.hello;
  if (!wanted.workspace.empty()) {
    nonce.emplace(wanted.workspace);
    if (!nonce->problem().empty())
      return make_error(ErrorCode::io,
                        "workspace: %, by which % could show that it has the same files",
                        {nonce->problem(), name_});
    set_member(hello, "nonces", list_of({nonce->path()}));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    send(FrameKind::hello, 0, hello.dump());
  }
  if (auto ok = wait_for_agent(wanted, cancel, Life::answered); !ok) return ok;
  if (auto ok = take_greeting(wanted, nonce ? nonce->content() : std::string()); !ok) return ok;
  const std::lock_guard<std::mutex> lock(mutex_);
  said_ = Capture(longest_account);
  if (!lost()) life_ = Life::open;
  return {};
}

// Waits until an agent speaks or has answered.
Expected<void> PlaceLink::wait_for_agent(const Wanted& wanted,
                                         const std::optional<CancelToken>& cancel, Life until) {
  const Clock::time_point start = Clock::now();
  while (life_ < until) {
    if (cancel && cancel->cancelled()) return cancelled_before_start();
    // A copy may take a second more for each 32 kB.
    const Clock::time_point deadline =
        later(start, wanted.connect_timeout + std::chrono::milliseconds(brought_ / 32));
    if (Clock::now() >= deadline) {
      const std::lock_guard<std::mutex> lock(mutex_);
      lose("it did not answer within % s", {seconds_text(wanted.connect_timeout)});
      break;
    }
    pump(cancel ? cancel->descriptor() : -1, deadline);
  }
  if (lost() && !greeting_) return failure();
  return {};
}

Expected<void> PlaceLink::take_greeting(const Wanted& wanted, std::string_view nonce) {
  const Json& told = *greeting_;
  if (told["protocol"sv] != Json(place_protocol))
    return make_error(ErrorCode::unsupported,
                      "the agent in % speaks protocol %, and this program %%",
                      {name_, printable(told["protocol"sv].dump()), place_protocol,
                       ": install codeexec-mcp " CODEEXEC_VERSION_STRING " there"});
  if (told.find("error"))
    return make_error(ErrorCode::unsupported, "the agent in % said: %",
                      {name_, printable(bounded(told["error"sv]))});
  for (const PlaceFact& fact : place_facts) facts_.*fact.member = bounded(told[fact.name]);
  facts_.uid = static_cast<std::uint64_t>(told["uid"sv].as_integer());
  facts_.sandbox = sandbox_report_from(told["sandbox"sv]);
  resizes_ = told["resizes"sv].as_bool();
  if (wanted.hello["connections"sv].as_bool() && !told["connections"sv].as_bool())
    return make_error(ErrorCode::unsupported,
                      "network: 'allow' needs an agent of version % in %, which has %",
                      {CODEEXEC_VERSION_STRING, name_, printable(facts_.version)});
  ground_ = told["ground"sv].as_string();
  const Json& seen = told["nonces"sv][0];
  if (!nonce.empty() && seen.as_string() != nonce)
    return make_error(
        ErrorCode::unsupported,
        "workspace: % is not the same folder in % (%): mount it there under the same path, or let "
        "it be only there (place_workspace remote) or copied (place_workspace copy)",
        {in_quotes(wanted.workspace), name_,
         seen.is_string() ? printable(bounded(seen)) : "it may not be looked into"});
  return {};
}

// Adds the pipes of commands, under the mutex.
void PlaceLink::watch(std::vector<pollfd>& set, std::vector<Watched>& watched,
                      Clock::time_point& deadline) {
  const auto add = [&](PlaceStreams& streams) {
    for (const Channel channel : {Channel::out, Channel::err, Channel::input}) {
      const bool is_input = channel == Channel::input;
      const int fd = is_input ? streams.input_fd() : streams.flow(channel).writer.get();
      const bool is_closing = is_input && streams.source == PlaceStreams::Source::closing;
      // Input is read only while the queue is short: the rest waits in its pipe.
      if (is_input ? fd < 0 || (!is_closing && streams.input_window == 0) ||
                         queue_.size() >= longest_payload
                   : streams.flow(channel).waiting.empty())
        continue;
      set.push_back({fd, is_closing ? short{0} : is_input ? short{POLLIN} : short{POLLOUT}, 0});
      watched.push_back({streams.id, channel});
      if (is_input && !streams.input.empty()) deadline = Clock::now();
    }
  };
  for (const auto& [id, command] : commands_)
    if (command) add(command->streams_);
  for (auto& [id, connection] : connections_) add(connection);
}

// Waits for an event and handles it. False: the link is being destroyed.
bool PlaceLink::pump(int cancel, Clock::time_point deadline) {
  std::vector<pollfd> set;
  std::vector<Watched> watched;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return false;
    set = {{wake_out_.get(), POLLIN, 0},
           {lost() ? -1 : line_.out.get(), POLLIN, 0},
           {lost() ? -1 : line_.err.get(), POLLIN, 0},
           {lost() || queue_.empty() ? -1 : line_.input.get(), POLLOUT, 0},
           {cancel, POLLIN, 0}};
    if (speaks())
      deadline = std::min(
          {deadline, later(last_heard_, keep_alive_), later(last_sent_, ping_after(keep_alive_))});
    watch(set, watched, deadline);
  }
  wait_for_events(set, deadline);
  const Clock::time_point woke = Clock::now();  // what comes from now on is not read here
  std::unique_lock<std::mutex> lock(mutex_);
  if (closing_) return false;
  char few[4096];
  if (set[0].revents) (void)!::read(wake_out_.get(), few, sizeof few);
  if (set[2].revents && !lost()) {
    const ssize_t size = ::read(line_.err.get(), few, sizeof few);
    if (size > 0) said_.add({few, static_cast<std::size_t>(size)});
    if (size == 0) line_.err.reset();
  }
  if (set[1].revents && !lost()) receive();
  if (set[3].revents && !lost()) flush();
  for (std::size_t i = 0; i < watched.size(); ++i) {
    PlaceStreams* const streams = find(watched[i].id);
    if (!streams) continue;
    const bool is_input = watched[i].channel == Channel::input;
    if (!set[i + 5].revents && !(is_input && !streams->input.empty())) continue;
    if (is_input)
      read_input(*streams);
    else if ((streams->id & connection_bit) != 0)
      serve(*streams);
    else
      streams->flow(watched[i].channel).write();
  }
  check_life(woke);
  if (lost() && !settled_.cancelled()) settle(lock);
  return true;
}

void PlaceLink::check_life(Clock::time_point now) {
  // Before an agent speaks, connect_timeout holds.
  if (!speaks()) return;
  if (now >= later(last_heard_, keep_alive_))
    return lose("nothing was heard from it for % ms", {keep_alive_.count()});
  if (now < later(last_sent_, ping_after(keep_alive_))) return;
  send(FrameKind::ping, 0, {});
  last_sent_ = now;
}

void PlaceLink::receive() {
  if (!buffer_) buffer_.reset(new char[longest_payload]);
  const ssize_t size = ::read(line_.out.get(), buffer_.get(), longest_payload);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    // The last words of the transport are in the other pipe.
    char said[4096];
    const ssize_t more = line_.err ? ::read(line_.err.get(), said, sizeof said) : 0;
    if (more > 0) said_.add({said, static_cast<std::size_t>(more)});
    return lose("it was closed at the other end");
  }
  last_heard_ = Clock::now();
  take_bytes({buffer_.get(), static_cast<std::size_t>(size)});
}

void PlaceLink::take_bytes(std::string_view bytes) {
  std::string rest;
  if (!speaks()) {
    const std::size_t from =
        unmarked_.size() - std::min(unmarked_.size(), greeting_mark.size() + 8);
    unmarked_ += bytes;
    if (!cargo_.empty() && unmarked_.find(bring_mark, from) != std::string::npos) {
      unmarked_.clear();
      brought_ = cargo_.size();
      return send(std::exchange(cargo_, {}));
    }
    const std::size_t mark = unmarked_.find(greeting_mark, from);
    const std::size_t end = unmarked_.find('\n', mark);
    if (mark == std::string::npos || end == std::string::npos) {
      if (unmarked_.size() > longest_preface) {
        lose("64 KiB came, and no greeting of an agent");
      }
      return;
    }
    said_.add(std::string_view(unmarked_).substr(0, mark));
    const std::size_t number = mark + greeting_mark.size();
    const std::string version = unmarked_.substr(number, end - number);
    if (version != std::to_string(place_protocol)) {
      life_ = Life::answered;
      greeting_ = Json::object();
      return set_member(*greeting_, "protocol", printable(version));
    }
    life_ = Life::speaking;
    rest = unmarked_.substr(end + 1);
    unmarked_ = {};
    bytes = rest;
  }
  if (!reader_.add(bytes, [this](const Frame& frame) { return !lost() && take_frame(frame); }))
    lose("what came from it is not of this protocol");
}

// False: no agent sends such a frame.
bool PlaceLink::take_frame(const Frame& frame) {
  const std::string_view payload = frame.payload;
  if (frame.kind == FrameKind::ping) return frame.id == 0 && (payload.empty() || payload == "\n"sv);
  if (frame.kind == FrameKind::hello) {
    auto greeting = Json::parse(payload);
    if (greeting_ || !greeting || !greeting->is_object()) return false;
    life_ = Life::answered;
    greeting_ = std::move(*greeting);
    return true;
  }
  if (!greeting_) return false;
  if (frame.kind == FrameKind::bye) return has_left_ = frame.id == 0 && payload.empty();
  if ((frame.id & connection_bit) != 0) return take_for_connection(frame);
  const auto at = commands_.find(frame.id);
  if (at == commands_.end()) return false;
  if (!at->second) {
    if (frame.kind == FrameKind::end) commands_.erase(at);
    return true;
  }
  if (!at->second->streams_.running) return false;
  PlaceCommand& command = *at->second;
  switch (frame.kind) {
    case FrameKind::out:
      return command.streams_.out.take(payload);
    case FrameKind::err:
      return !command.request_.merge_streams && command.streams_.err.take(payload);
    case FrameKind::started:
      if (!command.request_.waited_for || command.started_ || payload.size() != 4) return false;
      command.started_ = true;
      command.pid_ = static_cast<int>(number_in(payload) & INT_MAX);
      command.begun_.cancel();
      return true;
    case FrameKind::credit:
      return command.streams_.take_credit(frame, Channel::input);
    case FrameKind::input_closed:
      command.streams_.input_reader.reset();
      return payload.empty();
    case FrameKind::told:
      command.told_ += payload;
      return command.request_.tells && command.told_.size() <= longest_session_text;
    case FrameKind::end:
      return take_end(command, payload);
    default:
      return false;
  }
}

bool PlaceLink::take_end(PlaceCommand& command, std::string_view text) {
  const bool ok = read_end(text, command.end_.emplace());
  if (ok)
    command.come_to_an_end();
  else
    command.end_.reset();
  return ok;
}

PlaceStreams* PlaceLink::find(std::uint32_t id) {
  if (const auto at = connections_.find(id); at != connections_.end()) return &at->second;
  const auto at = commands_.find(id);
  return at != commands_.end() && at->second ? &at->second->streams_ : nullptr;
}

void PlaceLink::read_input(PlaceStreams& streams) {
  using Source = PlaceStreams::Source;
  if (streams.source == Source::closing) {
    streams.source = Source::nothing;
    return send(FrameKind::signal, streams.id, "\x01"sv);  // SIGHUP
  }
  const std::size_t most = std::min(longest_payload, streams.input_window);
  std::string_view bytes = streams.input.substr(0, most);
  if (bytes.empty()) {
    if (!buffer_) buffer_.reset(new char[longest_payload]);
    const ssize_t size = ::read(streams.input_fd(), buffer_.get(), most);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size > 0) bytes = {buffer_.get(), static_cast<std::size_t>(size)};
  } else {
    streams.input.remove_prefix(bytes.size());
  }
  if (bytes.empty()) streams.input_reader.reset();
  if (bytes.empty() && streams.source == Source::socket) streams.source = Source::closing;
  streams.input_window -= bytes.size();
  send(bytes.empty() ? FrameKind::input_end : FrameKind::input, streams.id, bytes);
}

// Under the mutex. What the pipe does not take at once goes into the queue.
void PlaceLink::send(std::string_view bytes) {
  if (lost() || !line_.input) return;
  const bool waits = !queue_.empty();
  queue_.bytes += bytes;
  if (waits) return;
  flush();
  if (!queue_.empty()) wake();
}

void PlaceLink::send(FrameKind kind, std::uint32_t id, std::string_view payload) {
  std::string frame;
  put_frame(frame, kind, id, payload);
  send(frame);
}

void PlaceLink::flush() {
  const ssize_t size = queue_.write_to(line_.input.get());
  if (size > 0) last_sent_ = Clock::now();
  if (size >= 0 || errno == EAGAIN || errno == EINTR) return;
  // receive() finds the end of the other pipe, too, and the reason with it.
  queue_.clear();
  line_.input.reset();
}

void PlaceLink::wake() {
  if (wake_in_) (void)!::write(wake_in_.get(), "", 1);
}

// Ends the connection. Output that came before still goes to its readers.
void PlaceLink::lose(const char* reason, Pieces values) {
  if (lost()) return;
  if (!speaks()) said_.add(unmarked_);
  reason_ = concat(reason, values);
  // The transport may say why, such as that a job was cancelled.
  if (life_ == Life::open && said_.total_bytes() != 0) {
    std::string said(without_line_ends(said_.text()));
    std::replace(said.begin(), said.end(), '\n', ' ');
    append_all(reason_, "; it said: %", {printable(said)});
  }
  life_ = life_ == Life::open ? Life::lost : Life::failed;
  line_.end();
  queue_.clear();
}

// Asks for the reason, once, and ends all commands with it.
void PlaceLink::settle(std::unique_lock<std::mutex>& lock) {
  if (life_ == Life::lost && account_) {
    lock.unlock();
    const std::string told = account_();
    lock.lock();
    if (!told.empty()) append_all(reason_, "; %", {told});
  }
  settled_.cancel();
  connections_.clear();
  for (const auto& [id, command] : commands_) {
    if (!command || !command->streams_.running) continue;
    command->lost_ = true;
    command->come_to_an_end();
  }
}

}  // namespace v0_1
}  // namespace codeexec
