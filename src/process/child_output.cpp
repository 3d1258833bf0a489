// One program: its output and its input.

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
  if (events == POLLHUP)
    end_output(output);
  else if (events)
    read_output(output, buffer, now);
}

void Process::State::read_output(Output& output, ReadBuffer& buffer, Clock::time_point now) {
  // So many and no more: `yes` must not keep a deadline from being seen. A callback may take its
  // time, so that the clock is looked at after each.
  const int most_reads = options.on_output ? 1 : 16;
  for (int count = 0; count < most_reads && output.room != 0; ++count) {
    const std::size_t most = std::min(buffer_size, output.room);
    const bool spills = !options.spill_dir.empty() && (output.spill.file || !output.spill.tried);
    const bool direct = !options.carrier && !options.on_output && !options.hash_output && !spills &&
                        output.redactor.empty() && output.capture.keeps_only_end(buffer_size);
    const ssize_t size =
        direct ? read_in_place(output) : ::read(output.pipe.get(), buffer.data(), most);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size < 0) {
      output.read_error = errno;
      // Nobody will read on: who writes is told so, and does not wait.
      output.pipe.reset();
    }
    if (size <= 0) return end_output(output);
    output.bytes_read += static_cast<std::uint64_t>(size);
    if (!direct) take_bytes(output, {buffer.data(), static_cast<std::size_t>(size)});
    if (phase == Phase::draining) drain_until = std::min(later(now, options.drain), drain_end);
    // The pipe is probably empty now; poll knows better than another read.
    else if (static_cast<std::size_t>(size) < most)
      return;
  }
}

// Reads at most buffer_size bytes to where they are kept: without a copy between, a flood is read
// as fast as if it were thrown away.
ssize_t Process::State::read_in_place(Output& output) {
  // 64 KiB lie in two blocks at most, and in two parts when the ring begins again.
  constexpr int most_pieces = 4;
  Capture& capture = output.capture;
  iovec pieces[most_pieces];
  int count = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  for (std::size_t planned = 0; planned < buffer_size && count < most_pieces; ++count) {
    std::size_t size = buffer_size - planned;
    pieces[count].iov_base = capture.room(capture.total_ + planned, size);
    pieces[count].iov_len = size;
    planned += size;
  }
  const ssize_t size = ::readv(output.pipe.get(), pieces, count);
  if (size > 0) capture.total_ += static_cast<std::uint64_t>(size);
  return size;
}

// Bytes of the pipe, which may be more than the command's output.
void Process::State::take_bytes(Output& output, std::string_view bytes) {
  if (!options.carrier) return take_output(output, bytes);
  options.carrier->take(output.stream, bytes,
                        [&](std::string_view text) { take_output(output, text); });
}

void Process::State::take_output(Output& output, std::string_view bytes) {
  keep_output(output, output.redactor.empty() ? bytes : output.redactor.add(bytes));
}

// Nothing comes any more: what might have become a secret is none.
void Process::State::end_output(Output& output) {
  output.open = false;
  keep_output(output, output.redactor.finish());
}

void Process::State::keep_output(Output& output, std::string_view bytes) {
  if (bytes.empty()) return;
  if (options.hash_output) output.hash.add(bytes);
  if (!options.spill_dir.empty()) spill(output, bytes);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    output.capture.add(bytes);
  }
  call_back([&] { options.on_output(output.stream, bytes); });
}

void Process::State::spill(Output& output, std::string_view bytes) {
  Spill& file = output.spill;
  if (!file.tried) {
    const std::size_t most = std::min(options.max_output, options.spill_above);
    if (output.capture.total_bytes() + bytes.size() <= most) return;
    file.tried = true;
    const bool is_out = output.stream == Stream::out;
    const int directory = spill_directory ? spill_directory.get() : options.spill_dir_fd;
    std::string name;
    file.file.reset(open_spill_file(directory, is_out ? ".out"sv : ".err"sv, name));
    name.insert(0, options.spill_dir + "/");
    if (file.file) {
      const std::lock_guard<std::mutex> lock(mutex);
      file.path = std::move(name);
    } else {
      const int error = spill_error != 0 ? spill_error : errno;
      file.problem = concat("cannot make %: %", {in_quotes(name), errno_text(error)});
    }
    // Nothing was dropped so far: what is kept is the stream.
    output.capture.visit(0, output.capture.total_bytes(),
                         [&](std::string_view piece) { write_spill(output, piece); });
  }
  write_spill(output, bytes);
}

void Process::State::write_spill(Output& output, std::string_view bytes) {
  Spill& file = output.spill;
  if (!file.file) return;
  const std::uint64_t room = options.max_spill - std::min(options.max_spill, file.written.load());
  const bool fits = bytes.size() <= room;
  if (!fits) bytes = bytes.substr(0, static_cast<std::size_t>(room));
  while (!bytes.empty()) {
    const ssize_t size = write_to_file(file.file.get(), bytes);
    if (size < 0) {
      file.problem =
          concat("output file % is not complete: %", {in_quotes(file.path), errno_text(errno)});
      return file.file.reset();
    }
    file.written += static_cast<std::uint64_t>(size);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  if (fits) return;
  file.problem = concat("output file % is not complete: max_spill is % bytes",
                        {in_quotes(file.path), options.max_spill});
  file.file.reset();
}

// Makes the next bytes for standard input available. False: there are none now.
bool Process::State::more_input() {
  if (!unwritten.empty()) return true;
  bool ends = false;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    current_input.clear();
    current_input.swap(queued_input);
    ends = input_ends;
  }
  unwritten = current_input;
  if (unwritten.empty() && ends) close_input();
  return !unwritten.empty();
}

void Process::State::feed_input() {
  constexpr std::size_t most = 65536;
  if (!more_input()) return;
  const ssize_t size = write_to_pipe(input.get(), unwritten.substr(0, most));
  if (size < 0 && errno == EPIPE) {
    // A program may stop reading when it knows enough.
    close_input();
  } else if (size >= 0) {
    unwritten.remove_prefix(static_cast<std::size_t>(size));
    more_input();
  } else if (errno != EAGAIN && errno != EINTR) {
    input_error = errno;
    close_input();
  }
}

void Process::State::close_input() {
  input.reset();
  unwritten = {};
  const std::lock_guard<std::mutex> lock(mutex);
  input_open = false;
  current_input.clear();
  queued_input.clear();
}

}  // namespace v0_1
}  // namespace codeexec
