// What comes through the pipe between a place and its client: frames, what makes a command, and
// orders to an agent. All are hostile.                       sh tests/fuzz/run.sh [seconds] place
//   The first byte of an input chooses the reader.
#include "agent/frames_internal.hpp"
#include "agent/messages_internal.hpp"
#include "files/files_internal.hpp"
#include "place/place_internal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.hpp"

namespace {

using codeexec::Frame;
using codeexec::FrameKind;

// Whole frames, and the bytes of each stream up to the next frame of another: a frame of a stream
// is handed on in the pieces that it comes in.
struct Seen {
  bool ok = true;
  std::vector<std::pair<std::string, std::string>> frames = {};  // the kind and number, the payload

  void add(FrameKind kind, std::string_view id, std::string_view payload) {
    const std::string head = static_cast<char>(kind) + std::string(id);
    if (is_stream(kind) && !frames.empty() && frames.back().first == head)
      frames.back().second += payload;
    else
      frames.emplace_back(head, payload);
  }
  static bool is_stream(FrameKind kind) {
    return kind == FrameKind::input || kind == FrameKind::out || kind == FrameKind::err;
  }
};

Seen read_in(std::string_view bytes, std::size_t size) {
  codeexec::FrameReader reader;
  Seen seen;
  while (!bytes.empty() && seen.ok) {
    seen.ok = reader.add(bytes.substr(0, size), [&](const Frame& frame) {
      EXPECT(frame.payload.size() <= codeexec::longest_payload);
      seen.add(frame.kind, codeexec::number_bytes(frame.id), frame.payload);
      return true;
    });
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  return seen;
}

// The same without any pieces.
Seen read_plainly(std::string_view bytes) {
  constexpr std::size_t head = 9;  // size, kind, number
  Seen seen;
  while (bytes.size() >= head) {
    const std::size_t size = codeexec::number_in(bytes);
    const auto kind = static_cast<FrameKind>(bytes[4]);
    const std::string_view id = bytes.substr(5, 4);
    seen.ok = size <= codeexec::longest_payload;
    if (!seen.ok) break;
    const std::string_view payload = bytes.substr(head, size);
    const bool some = Seen::is_stream(kind) && !payload.empty();
    if (some || payload.size() == size) seen.add(kind, id, payload);
    bytes.remove_prefix(head + payload.size());
  }
  return seen;
}

void read_frames(fuzz::Bytes bytes) {
  const std::size_t size = 1 + bytes.below(40);
  const Seen plain = read_plainly(bytes.rest());
  for (const std::size_t most : {std::size_t(-1), size}) {
    const Seen seen = read_in(bytes.rest(), most);
    EXPECT_WITH(seen.ok == plain.ok, bytes.rest());
    EXPECT_WITH(seen.frames == plain.frames, bytes.rest());
  }
}

void read_request(fuzz::Bytes bytes) {
  codeexec::StartRequest request;
  if (!request.read(bytes.rest())) return;
  EXPECT_WITH(!request.argv.empty(), bytes.rest());
  codeexec::StartRequest again;
  const std::string text = request.text();
  EXPECT_WITH(again.read(text), bytes.rest());
  EXPECT_WITH(again.text() == text, bytes.rest());
}

// What answers questions about files, all of which may only be read, and what takes the answers.
void ask(fuzz::Bytes bytes) {
  using codeexec::FileMessage;
  FileMessage message;
  if (message.take(bytes.rest())) EXPECT_WITH(message.text() == bytes.rest(), bytes.rest());
  std::string workspace;
  const auto roots = codeexec::roots_in(bytes.rest(), workspace);
  const std::string again = codeexec::root_list_of(workspace, roots);
  EXPECT_WITH(codeexec::roots_in(again, workspace).size() == roots.size(), bytes.rest());
  message.numbers[0] = bytes.below(5);
  for (std::size_t i = 1; i < 6; ++i) message.numbers[i] = bytes.below(256);
  for (std::string* const text : {&message.path, &message.extra, &message.bytes})
    *text = bytes.part();
  const codeexec::UniqueFd in(::memfd_create("question", MFD_CLOEXEC));
  const codeexec::UniqueFd out(::memfd_create("answer", MFD_CLOEXEC));
  const std::string text = message.text();
  EXPECT(::write(in.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  EXPECT(::lseek(in.get(), 0, SEEK_SET) == 0);
  constexpr const char* subject = R"("/usr/share\u00001/usr/share")";
  EXPECT_WITH(codeexec::answer_question(subject, in.get(), out.get()) == 0, text);
}

// An agent that runs one program that is not there, and otherwise gets any order but to run one.
void order(fuzz::Bytes bytes) {
  codeexec::StartRequest request;
  request.argv = {"/nonexistent/program"};
  request.work_dir = "/";
  std::string orders;
  if (bytes.below(8) != 0) codeexec::put_frame(orders, FrameKind::hello, 0, R"({"protocol":1})");
  codeexec::put_frame(orders, FrameKind::start, 1, request.text());
  while (!bytes.empty()) {
    FrameKind kind = static_cast<FrameKind>(bytes.byte());
    if (kind == FrameKind::start || kind == FrameKind::request) kind = FrameKind::input;
    const std::size_t id = bytes.below(4);
    codeexec::put_frame(orders, kind, static_cast<std::uint32_t>(id), bytes.part());
  }
  const codeexec::UniqueFd in(::memfd_create("orders", MFD_CLOEXEC));
  const codeexec::UniqueFd out(::memfd_create("answers", MFD_CLOEXEC));
  EXPECT(::write(in.get(), orders.data(), orders.size()) == static_cast<ssize_t>(orders.size()));
  EXPECT(::lseek(in.get(), 0, SEEK_SET) == 0);
  const int status = codeexec::place_main(in.get(), out.get());
  EXPECT_WITH(status == 0 || status == 1, orders);
}

}  // namespace

void fuzz::place(std::string_view input) {
  // What an agent that ends says of it is of no interest.
  static const int quiet = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  Bytes bytes(input);
  switch (bytes.below(4)) {
    case 0:
      return read_frames(bytes);
    case 1:
      return read_request(bytes);
    case 2:
      return ask(bytes);
    default:
      break;
  }
  const int before = ::dup(2);
  ::dup2(quiet, 2);
  order(bytes);
  ::dup2(before, 2);
  ::close(before);
}
