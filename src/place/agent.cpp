// The agent: the program in a place that starts the commands there.

#include "place/connections_internal.hpp"
#include "place/copy_internal.hpp"
#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "paths/paths.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// One thread drives all: the orders, the commands, the answers. It holds at most queue_limit bytes
// and a frame of each command's output, a window of each command's input, and one request.
//
//   run() --> waits for hello --> greeted_ --> ending_ --> returns, when no command is left
//             no other frame      orders       the input has ended, or is wrong, or silent: all
//             is accepted                      commands are killed, and nothing more is sent
class PlaceAgent {
 public:
  PlaceAgent(int in, int out) : in_(in), out_(out) {}
  PlaceAgent(const PlaceAgent&) = delete;
  PlaceAgent& operator=(const PlaceAgent&) = delete;
  int run();

 private:
  using State = Process::State;

  static constexpr std::size_t queue_limit = std::size_t{64} << 10;
  static constexpr std::size_t most_commands = 1024;

  struct Running {
    std::uint32_t id = 0;
    std::shared_ptr<State> state = {};
    std::size_t credit[2] = {stream_window, stream_window};
    PlaceWindow input_window = {};
    std::uint64_t oom_kills = 0;  // at the start, in its container
    bool has_input = false;
    bool input_watched = false;  // until the client has been sent input_closed
    UniqueFd told = UniqueFd();
  };

  void loop();
  // So many bytes may be added to the queue.
  std::size_t room() const {
    const std::size_t left = queue_limit - std::min(queue_limit, queue_.size());
    return left < longest_payload / 2 ? 0 : left;
  }
  void make_room(Running& command);
  void receive();
  bool take(const Frame& frame);
  bool greet(std::string_view text);
  Expected<void> settle(const Json& hello, Json& answer);
  Expected<void> settle_ground(const Json& hello, std::string& ground);
  Expected<void> settle_sandbox(const Json& hello, std::string_view ground, Json& answer);
  Expected<void> make_copy(bool is_marked, std::string& ground);
  bool start(std::uint32_t id, std::string_view text);
  Expected<void> prepare(PlaceRequest& request, Running& command, UniqueFd& passed,
                         ProcessOptions& options);
  Expected<void> give_proxy(Running& command, ProcessOptions& options);
  void pass_on(std::uint32_t id, Stream stream, std::string_view bytes);
  void watch_input(Running& command);
  Running* find(std::uint32_t id);
  void send(FrameKind kind, std::uint32_t id, std::string_view payload);
  void stay_heard();  // sends what waits, and something where that is due
  void flush();
  void end(const char* why);

  const int in_;
  const int out_;
  bool ending_ = false;
  bool killing_ = false;
  std::string problem_ = {};  // why it ends; empty: the input has ended
  bool greeted_ = false;
  bool ends_lines_ = false;  // the way to the client holds back what ends in no newline
  bool contained_ = false;
  bool has_proxy_ = false;                          // the client has one
  bool is_remote_ = false;                          // the workspace is only here
  std::string ground_ = {};                         // of questions
  std::shared_ptr<const PrivateFolder> copy_ = {};  // what the workspace lies in
  long uid_ = -1;                                   // that commands become
  long gid_ = -1;
  std::chrono::milliseconds keep_alive_ = std::chrono::seconds(30);
  Clock::time_point last_heard_ = Clock::now();
  Clock::time_point last_sent_ = Clock::now();
  std::optional<Environment> environment_ = {};
  Sandbox sandbox_ = {};
  std::shared_ptr<const PrivateFolder> home_ = {};  // of commands in a sandbox
  std::vector<std::string> weak_variables_ = {};    // that any other setting of them replaces
  PlaceFrames reader_ = {};
  std::unique_ptr<char[]> bytes_{new char[longest_payload]};
  State::ReadBuffer buffer_ = {};
  std::string request_ = {};  // the parts so far
  std::uint32_t request_id_ = 0;
  PlaceQueue queue_ = PlaceQueue();
  UniqueFd oom_score_ = UniqueFd();
  std::string own_oom_score_ = {};
  std::list<Running> commands_ = {};
  PlaceConnections connections_{[this](FrameKind kind, std::uint32_t id, std::string_view payload) {
    send(kind, id, payload);
  }};
};

int PlaceAgent::run() {
#if defined(__linux__)
  // Afterwards the file belongs to root.
  constexpr char oom_file[] = "/proc/self/oom_score_adj";
  if (const auto text = read_whole_file(oom_file, 16, "file"sv)) own_oom_score_ = *text;
  oom_score_.reset(above_standard_streams(::open(oom_file, O_WRONLY | O_CLOEXEC)));
  // Commands run as the same user. They must not read this program's memory and variables, nor
  // write to its descriptors, through /proc.
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
  const int flags = ::fcntl(out_, F_GETFL);
  ::fcntl(out_, F_SETFL, flags | O_NONBLOCK);
  for (const int fd : {in_, out_}) widen_pipe(fd);
  queue_.bytes = concat("%%\n", {greeting_mark, place_protocol});
  flush();
  loop();
  std::string bye;
  put_frame(bye, FrameKind::bye, 0, {});
  if (queue_.empty()) (void)write_to_pipe(out_, bye);
  ::fcntl(out_, F_SETFL, flags);
  if (problem_.empty()) return 0;
  std::fprintf(stderr, "codeexec place: %s\n", problem_.c_str());
  return 1;
}

void PlaceAgent::loop() {
  std::vector<pollfd> set;
  while (!ending_ || !commands_.empty()) {
    const bool full = queue_.size() > 4 * queue_limit;
    set.clear();
    set.push_back({ending_ ? -1 : in_, full ? short{0} : short{POLLIN}, 0});
    set.push_back({ending_ || queue_.empty() ? -1 : out_, POLLOUT, 0});
    // Before the hello there is no deadline: a client that has gone ends the pipe.
    Clock::time_point deadline =
        ending_ || !greeted_
            ? Clock::time_point::max()
            : std::min(later(last_heard_, keep_alive_), later(last_sent_, ping_after(keep_alive_)));
    // The first command becomes the last one, so that each gets its share of the room.
    if (commands_.size() > 1) commands_.splice(commands_.end(), commands_, commands_.begin());
    const std::size_t polled = commands_.size();
    for (Running& command : commands_) {
      make_room(command);
      command.state->add_descriptors(set);
      deadline = std::min(deadline, command.state->deadline());
    }
    deadline = std::min(deadline, connections_.watch(set, room(), commands_.size()));
    // The commands have not looked at kill_asked yet.
    if (std::exchange(killing_, false)) deadline = Clock::now();
    wait_for_events(set, deadline);
    const Clock::time_point woke = Clock::now();
    connections_.serve(set, bytes_.get());
    if (set[0].revents) receive();
    std::size_t left = polled;
    for (auto at = commands_.begin(); left > 0; --left) {
      Running& command = *at;
      command.state->step(set, buffer_);
      if (!command.state->over()) {
        if (command.input_watched) watch_input(command);
        ++at;
        continue;
      }
      ProcessResult& result = command.state->result;
      if (contained_ && oom_kills_here() > command.oom_kills && result.limits_reached.empty())
        result.limits_reached.push_back("memory");
      if (command.told) {
        const std::string told = read_session_text(command.told);
        for (std::size_t i = 0; i < told.size(); i += longest_payload)
          send(FrameKind::told, command.id, std::string_view(told).substr(i, longest_payload));
      }
      connections_.remove(command.id);
      send(FrameKind::end, command.id, end_text(result));
      at = commands_.erase(at);
    }
    if (ending_) continue;
    // What has come since the wait is not read yet.
    if (woke >= later(last_heard_, keep_alive_))
      end("nothing was heard for the time of keep_alive");
    stay_heard();
  }
}

// A stream is read only as far as the client has room for it. The output of a command that is
// killed with the connection is dropped.
void PlaceAgent::make_room(Running& command) {
  const std::size_t most = room() == 0 ? 0 : longest_payload;
  for (const Stream stream : {Stream::out, Stream::err})
    command.state->room(stream) =
        ending_ ? longest_payload : std::min(most, command.credit[stream == Stream::out ? 0 : 1]);
}

void PlaceAgent::receive() {
  const ssize_t size = ::read(in_, bytes_.get(), longest_payload);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) return end(size < 0 ? "the input cannot be read" : nullptr);
  last_heard_ = Clock::now();
  if (!reader_.add({bytes_.get(), static_cast<std::size_t>(size)}, [this](const Frame& frame) {
        // Many that come at once may take long to start.
        if (frame.kind == FrameKind::start) stay_heard();
        return !ending_ && take(frame);
      }))
    end("what came in is not of this protocol");
}

void PlaceAgent::end(const char* why) {
  if (ending_) return;
  ending_ = killing_ = true;
  if (why) problem_ = why;
  connections_.clear();
  for (Running& command : commands_) {
    command.state->kill_asked.store(true);
    make_room(command);
  }
}

auto PlaceAgent::find(std::uint32_t id) -> Running* {
  for (Running& command : commands_)
    if (command.id == id) return &command;
  return nullptr;
}

// An order for a command that has just ended is ignored: the client could not know.
bool PlaceAgent::take(const Frame& frame) {
  const std::string_view payload = frame.payload;
  if (frame.kind == FrameKind::ping) return true;
  if (frame.kind == FrameKind::hello) return !greeted_ && greet(payload);
  if (!greeted_) return false;
  if (frame.kind == FrameKind::request || frame.kind == FrameKind::start) {
    if (!request_.empty() && frame.id != request_id_) return false;
    if (request_.size() + payload.size() > longest_request) return false;
    request_id_ = frame.id;
    request_ += payload;
    if (frame.kind == FrameKind::request) return true;
    const std::string request = std::exchange(request_, {});
    return start(frame.id, request);
  }
  if ((frame.id & connection_bit) != 0) return connections_.take(frame);
  Running* const command = find(frame.id);
  const auto is = [&frame](FrameKind kind, std::size_t size) {
    return frame.kind == kind && frame.payload.size() == size;
  };
  if (frame.kind == FrameKind::input) {
    if (!command) return true;
    if (!command->has_input || !command->input_window.use(payload.size())) return false;
    command->state->give_input(payload);
    return true;
  }
  if (is(FrameKind::input_end, 0)) {
    if (command) command->state->end_input();
    return true;
  }
  if (is(FrameKind::resize, 8)) {
    const TerminalSize size = {static_cast<int>(number_in(payload) & INT_MAX),
                               static_cast<int>(number_in(payload.substr(4)) & INT_MAX)};
    if (command && command->state->resize(size)) command->state->apply_size();
    return size.is_valid();
  }
  if (is(FrameKind::signal, 1)) {
    const int number = static_cast<unsigned char>(payload[0]);
    if (!command || number == 0 || number > 64) return number <= 64;
    if (number == SIGKILL)
      command->state->kill_asked.store(true);
    else
      command->state->signal_tree(number);
    return true;
  }
  Channel channel{};
  std::size_t bytes = 0;
  if (frame.kind != FrameKind::credit || !read_credit(frame, channel, bytes)) return false;
  if (!command) return true;
  if (channel == Channel::input) return false;
  std::size_t& credit = command->credit[channel == Channel::out ? 0 : 1];
  if (bytes > most_window - credit) return false;
  credit += bytes;
  return true;
}

bool PlaceAgent::greet(std::string_view text) {
  const auto hello = Json::parse(text);
  if (!hello || !(*hello)["protocol"sv].is_integer()) return false;
  greeted_ = true;
  ends_lines_ = (*hello)["lines"sv].as_bool();
  Json answer = Json::object();
  set_member(answer, "protocol", place_protocol);
  set_member(answer, "version", CODEEXEC_VERSION_STRING);
  set_member(answer, "resizes", true);
  set_member(answer, "connections", true);
  if (const auto ok = settle(*hello, answer); !ok) set_member(answer, "error", ok.error().message);
  send(FrameKind::hello, 0, answer.dump());
  return true;
}

// Prepares the place as a hello asks for it, and describes it in the answer.
Expected<void> PlaceAgent::settle(const Json& hello, Json& answer) {
  const auto refusal = [](const char* why, Pieces values = {}) {
    return make_error(ErrorCode::unsupported, why, values);
  };
  if (hello["protocol"sv].as_integer() != place_protocol) return refusal("another protocol");
  keep_alive_ = std::chrono::milliseconds(
      std::max<std::int64_t>(1000, hello["keep_alive"sv].as_integer(keep_alive_.count())));
  set_member(answer, "nonces", answers_to(hello["nonces"sv]));
  if (const Json* const wanted = hello.find("prepare"sv)) {
    // A container may have the machine's process table, but never its mounts.
    const Json& mounts = hello["mounts"sv];
    if (mounts.is_string() && mounts.as_string() != own_namespace("mnt"))
      set_member(answer, "lacks", prepare_container(*wanted));
    return {};
  }
  has_proxy_ = hello["connections"sv].as_bool();
  // No other proxy is reached.
  if (has_proxy_)
    for (const std::string& variable : offline_variables(Network::allow))
      ::unsetenv(variable.substr(0, variable.find('=')).c_str());
  contained_ = hello["container"sv].as_bool();
  if (contained_ && !settle_in_container(hello, uid_, gid_))
    return refusal("unable to find user %", {hello["user"sv].as_string()});
  utsname system{};
  if (::uname(&system) == 0) {
    set_member(answer, "machine", system.machine);
    set_member(answer, "host", system.nodename);
  }
  std::string ground = hello["ground"sv].as_string();
  if (auto ok = settle_ground(hello, ground); !ok) return ok;
  set_member(answer, "ground", ground);
  return settle_sandbox(hello, ground, answer);
}

// Finds the workspace, or makes the copy of it, and the variables of commands.
Expected<void> PlaceAgent::settle_ground(const Json& hello, std::string& ground) {
  is_remote_ = hello["remote"sv].as_bool();
  if (is_remote_ && !hello["found"sv].as_bool())
    if (auto ok = find_ground(ground); !ok) return ok;
  if (const Json* const copy = hello.find("copy"sv)) {
    if (auto ok = make_copy(hello["marked"sv].as_bool(), ground); !ok) return ok;
    ground_ = copy_ground(ground, *copy).dump();
  } else {
    ground_ = Json(ground).dump();
  }
  EnvironmentOptions variables;
  variables.keep_all = true;
  if (is_remote_) roots_in(ground, variables.workspace);
  variables.auto_venv = hello["auto_venv"sv].as_bool();
  variables.venv_path = hello["venv"sv].as_string();
  look_at_home(variables.venv_path);
  auto environment = Environment::create(variables);
  if (!environment) return environment.failure();
  environment_ = std::move(*environment);
  return {};
}

// Makes the sandbox of commands, and their home where they are in one.
Expected<void> PlaceAgent::settle_sandbox(const Json& hello, std::string_view ground,
                                          Json& answer) {
  SandboxOptions wanted = sandbox_options_from(hello["sandbox"sv]);
  const char* const path = std::getenv("PATH");
  if (path) wanted.search_path = path;
  const char* home = std::getenv("HOME");
  if (wanted.mode != SandboxMode::off) {
    auto folder = PrivateFolder::create("private_home", "codeexec-home-"sv);
    if (!folder) return folder.failure();
    home_ = std::move(*folder);
    home = home_->path().c_str();
    wanted.writable.push_back(home_->path());
    std::string workspace;
    const std::vector<Root> roots = roots_in(ground, workspace);
    if (roots.empty() && !workspace.empty()) wanted.writable.push_back(workspace);
    for (const Root& root : roots)
      if (root.permission != Permission::none)
        (root.permission == Permission::write ? wanted.writable : wanted.readable)
            .push_back(root.path);
    weak_variables_ = offline_variables(wanted.network);
    add_toolchains(*environment_, weak_variables_);
  }
  set_member(answer, "uid", static_cast<unsigned long long>(::getuid()));
  set_member(answer, "home", home ? home : "");
  auto sandbox = Sandbox::create(wanted);
  if (!sandbox) return with_prefix("sandbox: ", {}, sandbox.error());
  sandbox_ = std::move(*sandbox);
  if (wanted.network == Network::allow && sandbox_.report().network == Network::host)
    return make_error(ErrorCode::unsupported, "network: 'allow' cannot be had: %",
                      {joined(sandbox_.report().missing, "; "sv)});
  set_member(answer, "sandbox", to_json(sandbox_.report()));
  return {};
}

// The workspace becomes a folder of this side, and so do the roots in it or around it.
Expected<void> PlaceAgent::make_copy(bool is_marked, std::string& ground) {
  std::string workspace;
  std::vector<Root> roots = roots_in(ground, workspace);
  const std::string there = workspace;
  auto folder = PrivateFolder::for_copy(workspace, is_marked);
  if (!folder) return folder.failure();
  copy_ = std::move(*folder);
  for (Root& root : roots)
    root.path = codeexec::is_within(root.path, there) ? workspace + root.path.substr(there.size())
                                                      : workspace;
  ground = ground_of(workspace, roots);
  return {};
}

bool PlaceAgent::start(std::uint32_t id, std::string_view text) {
  PlaceRequest request;
  if (id == 0 || (id & connection_bit) != 0 || find(id) || !request.read(text)) return false;
  ProcessOptions options;
  options.on_output = [this, id](Stream stream, std::string_view bytes) {
    pass_on(id, stream, bytes);
  };
  UniqueFd passed;
  UniqueFd folder;
  Running& command = commands_.emplace_back();
  command.id = id;
  if (contained_) command.oom_kills = oom_kills_here();
  command.has_input = command.input_watched = request.has_input;
  auto ready = prepare(request, command, passed, options);
  if (ready && is_remote_ && !options.work_dir.empty()) {
    // The command enters the folder that is checked here, whatever its name leads to later.
    auto opened = PathRules().open_found(options.work_dir);
    if (opened)
      folder = opened.take();
    else
      ready = opened.error();
    options.work_dir_fd = folder.get();
  }
  command.state = new_run(std::move(options));
  State& state = *command.state;
  if (!ready) {
    state.result.message = ready.error().message;
    state.result.system_error = ready.error().system_error;
    state.result.step = "setup";
  }
  // A command has the highest score from its start, which needs no right: if memory runs out in a
  // container, the kernel kills a command and not this agent, which all commands need.
  if (contained_) (void)write_all(oom_score_.get(), "1000"sv);
  const bool started = ready && state.start(false);
  if (contained_) (void)write_all(oom_score_.get(), own_oom_score_);
  if (!started) {
    connections_.remove(id);
    send(FrameKind::end, id, end_text(state.result));
    commands_.pop_back();
    return true;
  }
  state.forget_start();
  if (request.waited_for)
    send(FrameKind::started, id, number_bytes(static_cast<std::size_t>(state.result.pid)));
  return true;
}

Expected<void> PlaceAgent::prepare(PlaceRequest& request, Running& command, UniqueFd& passed,
                                   ProcessOptions& options) {
  if (commands_.size() > most_commands)
    return with_message(system_error(EAGAIN, ""), "too many commands run in this place");
  Variables extra;
  const auto add = [&extra](std::string_view name, std::string_view value) {
    extra.push_back({std::string(name), std::string(value)});
  };
  if (home_) {
    add("HOME"sv, home_->path());
    add("TMPDIR"sv, home_->temporary());
  }
  for (std::string_view value : request.set) {
    const std::string_view name = take_part(value, '=');
    add(name, value);
  }
  auto environment = environment_->resolve(request.work_dir, extra);
  if (!environment) return environment.failure();
  for (std::string& variable : environment->variables) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (is_one_of(name, request.unset)) continue;
    if (!request.venv.empty() && name == "PATH"sv)
      variable.insert(name.size() + 1, concat("%/bin:", {request.venv}));
    options.environment.push_back(std::move(variable));
  }
  options.sandbox = sandbox_;
  if (has_proxy_ && !request.argv[0].empty())
    if (auto ok = give_proxy(command, options); !ok) return ok;
  for (const std::string& variable : weak_variables_)
    if (!value_of(options.environment, std::string_view(variable).substr(0, variable.find('='))))
      options.environment.push_back(variable);
  if (request.argv[0].empty()) {
    request.argv = words_of({"/proc/self/exe", "--place"});
    options.environment.push_back(concat("%=%", {question_variable, ground_}));
    options.sandbox = {};
  }
  options.argv.swap(request.argv);
  options.work_dir.swap(request.work_dir);
  options.keep_input_open = request.has_input;
  options.merge_streams = request.merge_streams;
  options.terminal_rows = request.terminal_rows;
  options.terminal_cols = request.terminal_cols;
  options.timeout = request.timeout;
  options.kill_grace = request.kill_grace;
  options.uid = uid_;
  options.gid = gid_;
  options.supervised = true;
  options.max_output = 0;
  if (request.has_script) {
    auto script = anonymous_file(request.script);
    if (!script) return script.failure();
    passed = std::move(*script);
  } else if (request.tells) {
    if (auto ok = make_session_pipe(command.told, passed); !ok) return ok;
  }
  options.pass_fd = passed.get();
  return {};
}

// A command in a sandbox has a network with a socket of its own. All in a container have one
// network, so each gets a port there.
Expected<void> PlaceAgent::give_proxy(Running& command, ProcessOptions& options) {
  if (contained_) {
    unsigned port = 0;
    UniqueFd socket = listen_for_proxy(port);
    if (!socket) return system_error(errno, "network: a socket for the proxy");
    connections_.add(command.id, std::move(socket));
    weak_variables_ = offline_variables(Network::allow, port);
  }
  options.on_listener = [this, id = command.id](UniqueFd listener) {
    connections_.add(id, std::move(listener));
  };
  return {};
}

void PlaceAgent::pass_on(std::uint32_t id, Stream stream, std::string_view bytes) {
  Running* const command = find(id);
  if (!command || ending_) return;
  const std::size_t which = stream == Stream::out ? 0 : 1;
  command->credit[which] -= bytes.size();
  command->state->room(stream) -= bytes.size();
  send(which == 0 ? FrameKind::out : FrameKind::err, id, bytes);
}

// Reports how much of the input the program has read, and when it reads no more.
void PlaceAgent::watch_input(Running& command) {
  const State& state = *command.state;
  if (!state.takes_input()) {
    command.input_watched = false;
    return send(FrameKind::input_closed, command.id, {});
  }
  const std::size_t credit = command.input_window.credit(state.waiting_input(), commands_.size());
  if (credit != 0) send(FrameKind::credit, command.id, credit_text(Channel::input, credit));
}

void PlaceAgent::send(FrameKind kind, std::uint32_t id, std::string_view payload) {
  if (ending_) return;
  put_frame(queue_.bytes, kind, id, payload);
  if (ends_lines_) put_frame(queue_.bytes, FrameKind::ping, 0, "\n"sv);
}

void PlaceAgent::stay_heard() {
  if (Clock::now() >= later(last_sent_, ping_after(keep_alive_))) send(FrameKind::ping, 0, {});
  flush();
}

void PlaceAgent::flush() {
  if (ending_ || queue_.empty()) return;
  const ssize_t size = queue_.write_to(out_);
  if (size > 0)
    last_sent_ = Clock::now();
  else if (size < 0 && errno != EAGAIN && errno != EINTR)
    end("nobody reads the output");
}

int place_main(int in, int out) {
  if (const char* const start = std::getenv(start_variable)) {
    (void)!::chdir(start);
    ::unsetenv(start_variable);
  }
  const char* const ground = std::getenv(question_variable);
  return ground ? answer_question(ground, in, out) : PlaceAgent(in, out).run();
}

}  // namespace v0_1
}  // namespace codeexec
