// One command in a container.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Each command is an exec of its own: a shell that gets this script by its standard input, then the
// request, and after that orders, a signal's name each. It works in ash, dash and bash, needs no
// other program, and puts marks between what the command writes: 0x01, a letter, the random _i.
//
//   P  the command has begun              E  it has ended: exit status and OOM kills; none is left
//   X  it cannot begin: what failed       K  everything was killed
//   S  after it: what the command leaves to its session
//
// What belongs to the command bears the limit _b on its resident set, which Linux keeps for every
// process and does not enforce: it survives setsid, a daemon's double fork and an empty
// environment. `_z` sends a signal to all of these until no new one is found; those that got
// SIGKILL cannot fork any more. If told so, it finds strays, too (`_y`): what bears neither the
// limit of the container's first process nor that of a living exec, whose parent is outside and
// therefore 0. A limit can only be lowered, so that a command which changes its own makes strays.
// Where an exec's parent is seen, the processes are not the container's alone, and nobody is one.
// A shell reads byte by byte: the two that live as long as the container, its first process and the
// first child of that, are looked at ahead (`_h`). With _root, what became root's by sudo is killed
// by sudo.
//
// While the command runs, a watchdog reads the orders. When the input ends (a kill, the client's or
// the host's death) it kills everything. `3<&0` stands before the `&`, which redirects standard
// input.
constexpr std::string_view exec_script = R"sh(_h() {
  _u= _m= _j=
  [ "$PPID" = 0 ] || return
  for _d in /proc/1 /proc/[0-9]*; do
    _p=${_d#/proc/} _s=
    { IFS= read -r _s <"$_d/stat"; } 2>/dev/null
    set -- ${_s##*) }
    [ $_p = 1 ] && _u=${23}
    [ "$2" = 1 ] && [ "${23}" = "$_u" ] && [ $_p -lt ${_m:-$((_p+1))} ] && _m=$_p
  done
  _j="1 $_m"
}
_y() {
  set -- ${1##*) }
  case "$_u/$2/${23}" in /* | */0/* | */ | */"$_u") return 1;; esac
  case $_a in *" ${23} "*) return 1;; esac
  _v=${23}
  for _x in /proc/[0-9]*; do
    _l=
    { IFS= read -r _l <"$_x/stat"; } 2>/dev/null
    case $_l in *" $_v "*)
      set -- ${_l##*) }
      [ "$2" = 0 ] && [ "$1" != Z ] && [ "${23}" = "$_v" ] && { _a="$_a$_v "; return 1; };;
    esac
  done
  return 0
}
_z() {
  _k=' ' _n=0 _a=' '
  while [ $_n -lt 64 ]; do
    _n=$((_n+1)) _f=
    for _d in /proc/[0-9]*; do
      _p=${_d#/proc/}
      case "$_k$2 $$ $_j " in *" $_p "*) continue;; esac
      _s=
      { IFS= read -r _s <"$_d/stat"; } 2>/dev/null
      case $_s in
        *" $_b "*) ;;
        *) [ "$3$PPID" = strays0 ] && _y "$_s" || continue;;
      esac
      kill -"$1" "$_p" 2>/dev/null || ${_root:+sudo -n kill "-$1" "$_p"} >/dev/null 2>&1
      _k="$_k$_p " _f=1
    done
    [ "$_f" ] || return 0
  done
}
_g() {
  _o=0
  for _f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r $_f ] && while read -r _x _y; do [ "$_x" = oom_kill ] && _o=$_y; done <$_f
  done
}
_r() {
  cd -- "$1" 2>&1 && unset OLDPWD || { printf '\001X%s:work_dir\n' $_i; exit 125; }
  _g; _q=$_o
  exec 3<&0 4>&2 </dev/null 2>/dev/null
  { trap '' HUP INT QUIT TERM
    read -r _e _x </proc/self/stat
    while IFS= read -r _l <&3; do _z "$_l" "$_e"; done
    _z KILL "$_e" strays
    printf '\001K%s\n' $_i; printf '\001K%s\n' $_i >&4
    kill -KILL $$; } &
  exec 3<&-
  trap : HUP INT QUIT TERM
  printf '\001P%s:%s\n' $_i $$; printf '\001P%s\n' $_i >&4
  ( exec 2>&4 4>&-; _c ); _t=$?
  _z KILL $!
  [ "$_w" ] && { printf '\001S%s\n' $_i; cat $_w; rm -f $_w; }
  _g; printf '\001E%s:%s:%s\n' $_i $_t $((_o-_q)); printf '\001E%s\n' $_i >&4
  kill -KILL $!
  _z KILL 0 strays
  exit $_t
}
ulimit -m $((_b/1024)) || { printf '\001X%s:mark\n' $_i; exit 125; }
[ -w "$HOME" ] || export HOME=/tmp
case $USER:$_uid in :?*)
  _x=
  { while IFS=: read -r _x _s _p _l && [ "$_p" != "$_uid" ]; do :; done </etc/passwd; } 2>/dev/null
  export USER="${_x:-user$_uid}" LOGNAME="${_x:-user$_uid}";;
esac
_h
)sh";

}  // namespace

ProcessOptions ContainerExecutor::Exec::Where::call(bool with_input,
                                                    const std::vector<std::string>& words,
                                                    std::chrono::milliseconds timeout) const {
  std::vector<std::string> arguments = words_of({"exec"});
  if (with_input) add_words(arguments, {"-i"});
  if (!user.empty()) add_words(arguments, {"-u", user});
  add_words(arguments, {container});
  arguments.insert(arguments.end(), words.begin(), words.end());
  return engine_call(engine, arguments, timeout);
}

auto ContainerExecutor::Exec::start(const Where& where) -> Expected<std::shared_ptr<Exec>> {
  const std::string id = random_hex(16);
  std::uint64_t number = 0;
  for (const char c : id.substr(0, 9)) number = number * 16 + hex_value(c);
  if (id.empty()) return system_error(errno, {"cannot get random bytes for a command"});
  auto carrier = std::make_shared<Exec>(where, id);
  // Far above what any machine has, and below 2^53.
  carrier->mark_ = std::to_string(((std::uint64_t{1} << 40) + number) * 1024);
  if (auto ok = carrier->line_.start(where.call(true, words_of({"sh"}), no_limit)); !ok)
    return ok.error();
  const std::string uid = where.user.substr(0, where.user.find(':'));
  const std::string script =
      concat({"_i=", id, " _b=", carrier->mark_, " _uid=", is_number(uid) ? uid : "",
              where.sudo ? " _root=1\n" : " _root=\n", exec_script});
  // It fits into the pipe, which is empty.
  const ssize_t written = write_to_pipe(carrier->line_.input.get(), script);
  // What a client that has ended already says of it is told by begin().
  if (written != static_cast<ssize_t>(script.size()) && errno != EPIPE)
    return system_error(errno, {"cannot write to an exec"});
  return carrier;
}

bool ContainerExecutor::Exec::waits() const {
  std::vector<pollfd> set = {{line_.exit_event.get(), POLLIN, 0}, {line_.out.get(), POLLIN, 0}};
  wait_for_events(set, Clock::now());
  return !set[0].revents && !set[1].revents;
}

Expected<void> ContainerExecutor::Exec::connect_input() {
  return input_.start(
      where_.call(true, words_of({"sh", "-c", "exec cat >\"$1\"", "sh", input_path()}), no_limit));
}

// In the words of the shell, or in the engine's, which come on either stream.
Error ContainerExecutor::Exec::failure() const {
  if (out_.end() == 'X') return make_error(ErrorCode::not_found, {printable(out_.noise())});
  ProcessResult said;
  said.outcome = Outcome::exited;
  said.err = concat({err_.noise(), out_.noise()});
  return engine_error(where_.engine, said, "start a command in a container");
}

auto ContainerExecutor::Exec::begin(std::string_view& request, Clock::time_point deadline,
                                    const std::optional<CancelToken>& cancel) -> Start {
  char buffer[4096];
  struct {
    const UniqueFd& fd;
    Framing& framing;
    bool open;
  } streams[] = {{line_.out, out_, true}, {line_.err, err_, true}};
  while (!out_.begun() || !err_.begun()) {
    if (out_.end() == 'X') {
      failed_step_ = out_.text();
      return Start::failed;
    }
    if (!streams[0].open && !streams[1].open) {
      // The engine has not started the shell, or the shell has gone with what it was told.
      const std::string said = err_.noise() + out_.noise();
      for (const char* words : {"No such container", "is not running", "is paused", "is restarting",
                                "stopped state", "OCI runtime", "no such container"})
        if (said.find(words) != std::string::npos) return Start::refused;
      if (said.find("unable to find user") == std::string::npos) return Start::lost;
      failed_step_ = "user";
      return Start::failed;
    }
    if (cancel && cancel->cancelled()) return Start::cancelled;
    if (Clock::now() >= deadline) return Start::slow;
    // Both are read until both have begun: the client has one connection for the two, and waits for
    // room in a pipe that is full before it passes on what belongs to the other.
    const auto fd_of = [&](std::size_t i) { return streams[i].open ? streams[i].fd.get() : -1; };
    std::vector<pollfd> set = {{fd_of(0), POLLIN, 0},
                               {fd_of(1), POLLIN, 0},
                               {request.empty() ? -1 : line_.input.get(), POLLOUT, 0},
                               {cancel ? cancel->descriptor() : -1, POLLIN, 0}};
    wait_for_events(set, deadline);
    if (set[2].revents) {
      const ssize_t size = write_to_pipe(line_.input.get(), request);
      if (size > 0) request.remove_prefix(static_cast<std::size_t>(size));
      if (size < 0 && errno == EPIPE) request = {};
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (!set[i].revents) continue;
      const ssize_t size = ::read(streams[i].fd.get(), buffer, sizeof buffer);
      if (size > 0)
        streams[i].framing.begin({buffer, static_cast<std::size_t>(size)});
      else if (size == 0)
        streams[i].open = false;
    }
  }
  pid_ = leading_number(out_.text(), -1);
  return Start::begun;
}

std::string ContainerExecutor::Exec::kill_all() {
  kill();
  ProcessResult result;
  const ProcessResult* last = nullptr;
  while (const std::optional<ProcessOptions> measure = next_measure(last)) {
    result = run_process(*measure);
    last = &result;
  }
  return message_.empty() ? "whatever of it had begun was killed" : message_;
}

void ContainerExecutor::Exec::take(Stream stream, std::string_view bytes,
                                   FunctionRef<void(std::string_view)> use) {
  Framing& framing = stream == Stream::out ? out_ : err_;
  if (bytes.empty()) return framing.take(framing.take_rest(), use);
  framing.take(bytes, use);
}

bool ContainerExecutor::Exec::signal(int number) {
  const char* const order = number == SIGTERM   ? "TERM\n"
                            : number == SIGCONT ? "CONT\n"
                            : number == SIGINT  ? "INT\n"
                            : number == SIGHUP  ? "HUP\n"
                            : number == SIGSTOP ? "STOP\n"
                            : number == SIGKILL ? "KILL\n"
                                                : nullptr;
  if (!order || !line_.input) return false;
  signalled_ = true;
  return write_to_pipe(line_.input.get(), order) > 0;
}

void ContainerExecutor::Exec::kill() {
  killed_ = true;
  line_.input.reset();
}

std::optional<ProcessOptions> ContainerExecutor::Exec::next_measure(const ProcessResult* last) {
  // A client that nobody reads from could hold up every other exec of the container.
  line_.end();
  const auto tells_of_no_container = [last] {
    return says(*last, "No such container") || says(*last, "is not running");
  };
  switch (measures_++) {
    case 0: {
      Where where = where_;
      if (where.sudo) where.user = "0:0";
      const std::string script =
          concat({"_b=$1 _root=\n", exec_script.substr(0, exec_script.find("_g()")),
                  "_h\n_z KILL 0 strays\necho killed"});
      return where.call(false, words_of({"sh", "-c", script, "codeexec", mark_}),
                        std::chrono::seconds(5));
    }
    case 1:
      if (last->succeeded() && says(*last, "killed")) {
        if (!killed_) message_ = "its shell was killed; all that it left was killed after it";
        return std::nullopt;
      }
      if (tells_of_no_container()) {
        message_ = "its container was stopped";
        container_ended_ = true;
        return std::nullopt;
      }
      return engine_call(where_.engine, words_of({"kill", where_.container}),
                         where_.engine.call_timeout);
    default:
      container_ended_ = true;
      message_ = last->succeeded() || tells_of_no_container()
                     ? "its container had to be killed"
                     : concat({"some of its processes may still be running: ",
                               engine_error(where_.engine, *last, "kill the container").message});
      return std::nullopt;
  }
}

void ContainerExecutor::Exec::finish(ProcessResult& result) {
  line_.end();
  input_.end();
  result.message = message_;
  result.outcome = Outcome::signaled;
  result.signal = SIGKILL;
  if (out_.end() != 'E') return;
  const std::string& told = out_.text();
  const std::size_t colon = std::min(told.find(':'), told.size());
  const int status = leading_number(told, -1);
  const std::string_view oom_kills =
      std::string_view(told).substr(std::min(colon + 1, told.size()));
  if (leading_number(oom_kills, 0) > 0) result.limits_reached.push_back("memory");
  // After a signal of ours, 128 and more is what a shell makes of it.
  result.signal = (killed_ || signalled_) && status > 128 ? status - 128 : 0;
  if (result.signal != 0) return;
  result.outcome = Outcome::exited;
  result.exit_code = status;
}

}  // namespace v0_1
}  // namespace codeexec
