// One program: its output and its input.

#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// All writers gone and nothing to read needs no call: the end of the streams comes just before the
// end of the program, when every call here slows the child's exit on a shared core.
void Process::State::output_event(Output& output, short events, ReadBuffer& buffer,
                                  Clock::time_point now) {
  if (events == POLLHUP && !terminal)
    end_output(output);
  else if (events)
    read_output(output, buffer, now);
}

void Process::State::read_output(Output& output, ReadBuffer& buffer, Clock::time_point now) {
  // So many and no more: `yes` must not keep a deadline from being seen. A callback of run() may
  // take its time, so that the clock is looked at after each; so may a screen, of which three bytes
  // can fill every cell.
  const int most_reads = options.on_output || terminal ? 1 : 16;
  for (int count = 0; count < most_reads && output.room != 0; ++count) {
    const std::size_t most = std::min(buffer_size, output.room);
    const bool spills = !options.spill_dir.empty() && (output.spill.file || !output.spill.tried);
    const bool direct =
        reads_in_place && !spills && !output.is_cut && output.capture.keeps_only_end(buffer_size);
    char* const place = direct ? nullptr : buffer.data();
    if (!direct && !place) return pause_for_memory();  // the program waits meanwhile
    ssize_t size = 0;
    if (direct) {
      const std::lock_guard<std::mutex> lock(mutex);
      const auto read = [&] { size = output.capture.read_from(output.pipe.get(), buffer_size); };
      output.is_cut = !enough_memory(read);
      if (output.is_cut) continue;
    } else {
      size = ::read(output.pipe.get(), place, most);
    }
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    // A terminal that no program has open any more fails so. It stays open: closing it would end
    // the programs.
    if (size < 0 && errno == EIO && terminal) return end_output(output);
    if (size < 0) {
      output.read_error = errno;
      // Nothing reads on: the program gets EPIPE, and does not wait.
      output.pipe.reset();
    }
    if (size <= 0) return end_output(output);
    output.bytes_read += static_cast<std::uint64_t>(size);
    const std::string_view bytes(place, direct ? 0 : static_cast<std::size_t>(size));
    if (!direct && !enough_memory([&] { take_bytes(output, bytes); })) {
      output.is_cut = true;
      output.lost += bytes.size();
    }
    // A callback may have taken its time: it counts from here.
    if (options.idle_timeout != no_limit) times.idle = later(Clock::now(), options.idle_timeout);
    if (phase == Phase::draining)
      times.drain = std::min(later(now, options.drain), times.drain_end);
    // The pipe is probably empty now; poll knows better than another read.
    else if (static_cast<std::size_t>(size) < most)
      return;
  }
}

// When memory runs out in the middle, a secret may be half taken: nothing more is kept, then.
void Process::State::take_output(Output& output, std::string_view bytes, bool is_last) {
  const std::uint64_t before = output.capture.total_bytes();
  Redactor& redactor = output.redactor;
  const auto keep = [&] {
    if (is_last)
      keep_output(output, redactor.finish());
    else
      keep_output(output, redactor.empty() ? bytes : redactor.add(bytes));
  };
  if (!output.is_cut && enough_memory(keep)) return;
  output.is_cut = true;
  const std::uint64_t kept = output.capture.total_bytes() - before;
  output.lost += bytes.size() - std::min<std::uint64_t>(kept, bytes.size());
}

// End of stream: flush the bytes held back as a possible beginning of a secret.
void Process::State::end_output(Output& output) {
  output.open = false;
  take_output(output, {}, true);
}

void Process::State::keep_output(Output& output, std::string_view bytes) {
  if (bytes.empty()) return;
  if (!options.spill_dir.empty()) spill(output, bytes);
  std::string answers;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    output.capture.add(bytes);
    if (terminal) terminal->add(bytes);
    if (terminal) answers = terminal->take_answers();
  }
  // A terminal answers at once, beside what waits to be read. Without room the answer is lost.
  if (!answers.empty() && drives_terminal()) (void)write_to_pipe(output.pipe.get(), answers);
  delivery.put(output, bytes);
}

void Process::State::spill(Output& output, std::string_view bytes) {
  Spill& file = output.spill;
  if (!file.tried) {
    const std::size_t most = std::min(options.max_output, options.spill_above);
    if (output.capture.total_bytes() + bytes.size() <= most) return;
    file.tried = true;
    const bool is_out = output.stream == Stream::out;
    const int directory = io.spill_directory ? io.spill_directory.get() : options.spill_dir_fd;
    // All memory that its path takes, before there is a file.
    std::string path;
    path.reserve(options.spill_dir.size() + 64);
    append_all(path, {options.spill_dir, "/"});
    std::string name;
    file.file.reset(open_spill_file(directory, is_out ? ".out"sv : ".err"sv, name));
    path += name;
    if (file.file) {
      const std::lock_guard<std::mutex> lock(mutex);
      file.path = std::move(path);
    } else {
      const int error = io.spill_error != 0 ? io.spill_error : errno;
      file.problem = concat("cannot make %: %", {in_quotes(path), errno_text(error)});
    }
    // Nothing was dropped so far: what is kept is the stream.
    output.capture.visit(0, output.capture.total_bytes(),
                         [&](std::string_view piece) { file.write(piece, options.max_spill); });
  }
  file.write(bytes, options.max_spill);
}

void Process::State::Spill::write(std::string_view bytes, std::uint64_t most) {
  if (!file) return;
  const std::uint64_t room = most - std::min(most, written.load());
  const bool fits = bytes.size() <= room;
  if (!fits) bytes = bytes.substr(0, static_cast<std::size_t>(room));
  while (!bytes.empty()) {
    const ssize_t size = write_to_file(file.get(), bytes);
    if (size < 0) {
      problem = concat("output file % is not complete: %", {in_quotes(path), errno_text(errno)});
      return file.reset();
    }
    written += static_cast<std::uint64_t>(size);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  if (fits) return;
  problem = concat("output file % is not complete: max_spill is % bytes", {in_quotes(path), most});
  file.reset();
}

void Process::State::fill_output(Output& output, std::string& text, OutputCounts& counts,
                                 std::string& file) {
  end_output(output);
  output.pipe.reset();
  output.spill.file.reset();
  const char* const name = output.stream == Stream::out ? "stdout" : "stderr";
  const auto fill = [&] {
    text = output.capture.text(&counts);
    if (output.read_error != 0)
      add_to_message(result.message, concat("its % could not be read to the end: %",
                                            {name, errno_text(output.read_error)}));
  };
  // The file is to be removed by the one who gets the result.
  if (!enough_memory([&] { file = output.spill.path; })) {
    const std::lock_guard<std::mutex> lock(mutex);
    file = std::move(output.spill.path);
  }
  const bool is_whole = enough_memory(fill);
  if (!is_whole) text.clear();
  counts.total_bytes = output.capture.total_bytes() + output.lost;
  counts.dropped_bytes = is_whole ? counts.dropped_bytes + output.lost : counts.total_bytes;
  counts.redactions = output.redactor.count();
  counts.file_bytes = output.spill.written;
  add_to_message(result.message, output.spill.problem);
  if (is_whole && !output.is_cut) return;
  const bool is_out = output.stream == Stream::out;
  tell_of_memory(result.message,
                 is_whole ? is_out ? "the end of its stdout is"sv : "the end of its stderr is"sv
                 : is_out ? "its stdout is"sv
                          : "its stderr is"sv);
}

// Makes the next bytes for standard input available. False: there are none now.
bool Process::State::more_input() {
  if (!io.unwritten.empty()) return true;
  bool ends = false;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (size_asked.load()) return false;  // what was typed after that is for the new size
    io.current_input.clear();
    io.current_input.swap(io.queued_input);
    ends = io.input_ends;
  }
  io.unwritten = io.current_input;
  if (io.unwritten.empty() && ends) {
    if (!drives_terminal() || std::exchange(io.end_typed, true)) {
      close_input();
    } else {
      // ctrl-d ends the input at the begin of a line, and otherwise the line.
      io.unwritten = io.last_written == '\n' ? "\x04"sv : "\x04\x04"sv;
    }
  }
  return !io.unwritten.empty();
}

void Process::State::feed_input() {
  constexpr std::size_t most = 65536;
  if (!more_input()) return;
  const ssize_t size = write_to_pipe(io.input.get(), io.unwritten.substr(0, most));
  if (size < 0 && errno == EPIPE) {
    // A program may stop reading when it knows enough.
    close_input();
  } else if (size >= 0) {
    if (size > 0) io.last_written = io.unwritten[static_cast<std::size_t>(size) - 1];
    io.unwritten.remove_prefix(static_cast<std::size_t>(size));
    more_input();
  } else if (errno != EAGAIN && errno != EINTR) {
    io.input_error = errno;
    close_input();
  }
}

void Process::State::close_input() {
  io.input.reset();
  io.unwritten = {};
  const std::lock_guard<std::mutex> lock(mutex);
  io.input_open = false;
  io.current_input.clear();
  io.queued_input.clear();
}

// Straight into the pipe, when it is empty: most of the time that is enough.
void Process::State::give_input(std::string_view bytes) {
  if (!io.input) return;
  ssize_t size = 0;
  if (waiting_input() == 0) size = write_to_pipe(io.input.get(), bytes);
  if (size > 0) io.last_written = bytes[static_cast<std::size_t>(size) - 1];
  io.queued_input += bytes.substr(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
}

}  // namespace v0_1
}  // namespace codeexec
