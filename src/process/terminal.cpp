// A terminal for a program: its device and its screen.

#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "terminal/terminal.hpp"
#include "terminal/terminal_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The program's end of a terminal. It is not opened by its name, which may be another terminal's
// among the mounts of this process. -1 and errno on failure.
int open_terminal_end(int terminal) {
  constexpr int flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
#if defined(TIOCGPTPEER) && defined(TIOCSPTLCK)
  const int unlocked = 0;
  if (::ioctl(terminal, TIOCSPTLCK, &unlocked) != 0) return -1;
  return ::ioctl(terminal, TIOCGPTPEER, flags);
#else
  if (::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return -1;
  const char* const name = ::ptsname(terminal);
  return name ? ::open(name, flags) : -1;
#endif
}

winsize window_of(TerminalSize size) {
  winsize window{};
  window.ws_row = static_cast<unsigned short>(size.rows);
  window.ws_col = static_cast<unsigned short>(size.cols);
  return window;
}

std::string size_problem(const char* verb, TerminalSize size) {
  return concat("cannot % a terminal of % rows and % columns: it may have 1 to % and 1 to %",
                {verb, size.rows, size.cols, TerminalSize::max_rows, TerminalSize::max_cols});
}

// Neither end is inherited or one of 0, 1 and 2. False and errno on failure.
bool make_terminal(TerminalSize size, UniqueFd& host_end, UniqueFd& program_end) {
  // Not the controlling terminal of a host that has none.
  host_end.reset(above_standard_streams(::posix_openpt(O_RDWR | O_NOCTTY)));
  if (!host_end || ::fcntl(host_end.get(), F_SETFD, FD_CLOEXEC) != 0) return false;
  program_end.reset(above_standard_streams(open_terminal_end(host_end.get())));
  const winsize window = window_of(size);
  termios settings{};
  if (!program_end || ::ioctl(program_end.get(), TIOCSWINSZ, &window) != 0 ||
      ::tcgetattr(program_end.get(), &settings) != 0)
    return false;
#if defined(IUTF8)
  settings.c_iflag |= IUTF8;  // backspace erases whole characters
#endif
  return ::tcsetattr(program_end.get(), TCSANOW, &settings) == 0;
}

}  // namespace

// False: the start has failed.
bool Process::State::prepare_screen() {
  if (!options.terminal) return true;
  if (!options.terminal->is_valid())
    return fail(SpawnStep::setup, EINVAL, size_problem("make", *options.terminal));
  terminal = std::make_unique<TerminalEmulator>(*options.terminal);
  return true;
}

Expected<TerminalScreen> Process::State::screen() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (terminal) return terminal->screen();
  return make_error(ErrorCode::unsupported, "it has no terminal: start it with one");
}

Expected<void> Process::State::resize(TerminalSize size) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!terminal) return make_error(ErrorCode::unsupported, "it has no terminal: start it with one");
  if (reaped) return make_error(ErrorCode::io, "it has ended, and its terminal with it");
  if (!can_resize())
    return make_error(ErrorCode::unsupported,
                      "the agent there cannot change the size of a terminal: install "
                      "codeexec-mcp " CODEEXEC_VERSION_STRING " there");
  const TerminalSize known = size_asked.load() ? wanted_size : terminal->size();
  if (size.rows == 0) size.rows = known.rows;
  if (size.cols == 0) size.cols = known.cols;
  if (!size.is_valid())
    return make_error(ErrorCode::invalid_argument, "%", {size_problem("have", size)});
  wanted_size = size;
  size_asked.store(true);
  return {};
}

// Before the program draws anew, what it has drawn is in the new size, too.
void Process::State::apply_size() {
  if (!size_asked.load()) return;
  TerminalSize size = {};
  {
    const std::lock_guard<std::mutex> lock(mutex);
    size_asked.store(false);
    size = wanted_size;
    if (!enough_memory([&] { terminal->resize(size); })) return;  // it keeps the size it has
  }
  set_size(size);
}

// Without the pipe the output has failed, and the program is not heard any more.
void LocalRun::set_size(TerminalSize size) {
  const winsize window = window_of(size);
  if (io.out.pipe && ::ioctl(io.out.pipe.get(), TIOCSWINSZ, &window) != 0)
    add_to_message(result.message,
                   concat("the size of its terminal did not change: %", {errno_text(errno)}));
}

// Makes the terminal the streams of the program.
bool LocalRun::make_terminal_streams(const Launch& launch, UniqueFd (&program_ends)[3]) {
  UniqueFd& program_end = program_ends[1];
  if (!make_terminal(*options.terminal, io.out.pipe, program_end))
    return fail_start(launch, SpawnStep::setup, errno, "terminal: "sv);
  if (options.uid >= 0)
    (void)!::fchown(program_end.get(), static_cast<uid_t>(options.uid),
                    static_cast<gid_t>(options.gid));
  io.input.reset(above_standard_streams(::fcntl(io.out.pipe.get(), F_DUPFD_CLOEXEC, 3)));
  program_ends[0].reset(above_standard_streams(::fcntl(program_end.get(), F_DUPFD_CLOEXEC, 3)));
  return (io.input && program_ends[0]) ||
         fail_start(launch, SpawnStep::setup, errno, "terminal: "sv);
}

}  // namespace v0_1
}  // namespace codeexec
