// One side of a copied workspace: it sends its changes.

#include "copy/tree_internal.hpp"
#include "copy/wire_internal.hpp"

#include "agent/frames_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Sends notes, then what has gone with the inner paths first, so that each folder is empty when it
// is removed; then what is new with the outer paths first, so that each folder is there. A cancel
// ends that between two files or pieces; what was sent counts, and the next scan finds the rest.
// Without changes only the notes and `done` go out, so that the other side answers all the same.
bool CopyTree::send(CopyWire& wire) {
  for (unsigned kind = CopyReport::special; kind <= CopyReport::deep; ++kind)
    if (const CopyNames& names = report.names[kind]; names.count != 0)
      if (!wire.put_numbers({copy_note | kind << 8, names.count, 0, names.text.size()}) ||
          !wire.put(names.text))
        return false;
  std::size_t sent = 0;
  while (sent < gone_.size() && !stopped()) {
    const std::string& path = gone_[gone_.size() - ++sent].path;
    if (!wire.put_numbers({copy_gone, 0, 0, path.size()}) || !wire.put(path)) return false;
  }
  bool stops = stopped();
  for (CopyEntry& entry : found_) {
    if (!entry.is_sent) continue;
    stops = stops || stopped();
    if (stops) {
      entry.changed = -1;
      entry.is_sent = false;
    } else if (!send_one(wire, entry)) {
      return false;
    }
  }
  if (!wire.put_numbers({copy_done, 0, 0, 0}) || !wire.flush() || !take_refusals(wire))
    return false;
  if (changes_ == 0) return true;
  // The next scan finds again that the others are gone.
  for (; sent != 0; --sent) gone_.pop_back();
  agreed_.swap(found_);
  added_.swap(gone_);
  merge();
  return true;
}

// Opens the path through no link, and looks again at what was opened: a command or the user may
// have replaced it since the scan. What went over the wire is what the list then says.
bool CopyTree::send_one(CopyWire& wire, CopyEntry& entry) {
  UniqueFd folder = open_folder(folder_of(entry.path));
  const std::string name(base_name(entry.path));
  UniqueFd file;
  char target[longest_copied_path + 1];
  ssize_t size = 0;
  int error = folder ? 0 : errno;
  struct stat status {};
  if (error == 0 && S_ISREG(entry.mode)) {
    file.reset(
        ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file || ::fstat(file.get(), &status) != 0) error = errno;
    if (error == 0 && !S_ISREG(status.st_mode)) error = ENOENT;
    if (error == 0) entry.set(status);
  } else if (error == 0 && S_ISLNK(entry.mode)) {
    size = ::readlinkat(folder.get(), name.c_str(), target, sizeof target);
    if (size < 0) error = errno;
  }
  if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == EINVAL) {
    // It has gone meanwhile, as is found the next time.
    entry.is_sent = false;
    entry.changed = -1;
    return true;
  }
  if (error != 0) {
    report.names[CopyReport::unreadable].add(entry.path);
    entry.is_sent = false;
    entry.own = true;
    return true;
  }
  if (!wire.put_numbers({copy_put | entry.mode << 8, entry.size,
                         static_cast<std::uint64_t>(entry.modified), entry.path.size()}) ||
      !wire.put(entry.path))
    return false;
  entry.own = false;
  if (file) return send_file(wire, entry, file.get());
  if (!S_ISLNK(entry.mode)) return true;
  const std::string_view text(target, static_cast<std::size_t>(size));
  return wire.put(number_bytes(text.size())) && wire.put(text) && wire.put(number_bytes(0));
}

// Sends as many bytes as the file had when it was opened. The next scan finds later ones. A file
// that cannot be read on ends with copy_broken, and the other side drops what it has of it. The
// size that was announced is a bound: a file that has become shorter ends early.
bool CopyTree::send_file(CopyWire& wire, CopyEntry& entry, int fd) {
  std::unique_ptr<char[]> buffer(new char[longest_payload]);
  entry.hash = 0;
  std::uint64_t left = entry.size;
  while (left != 0) {
    if (stopped()) {
      entry.changed = -1;
      return wire.put(number_bytes(copy_broken));
    }
    const std::size_t most =
        static_cast<std::size_t>(std::min<std::uint64_t>(left, longest_payload));
    const ssize_t size = ::read(fd, buffer.get(), most);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      report.names[CopyReport::unreadable].add(entry.path);
      entry.own = true;
      return wire.put(number_bytes(copy_broken));
    }
    if (size == 0) break;
    const std::string_view bytes(buffer.get(), static_cast<std::size_t>(size));
    entry.hash = copy_hash(entry.hash, bytes);
    left -= bytes.size();
    // A piece of zeros is sent as a hole: sparse files stay sparse.
    const bool empty = bytes.size() == most && bytes[0] == '\0' &&
                       std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
    if (empty ? !wire.put(number_bytes(copy_hole + bytes.size()))
              : !wire.put(number_bytes(bytes.size())) || !wire.put(bytes))
      return false;
  }
  return wire.put(number_bytes(0));
}

// Reads the numbers of the paths that were refused, in rising order, each with an errno. A number
// that is no path's, or comes out of order, is not met, and the last one is not copy_end: the wire
// is lost.
bool CopyTree::take_refusals(CopyWire& wire) {
  std::uint64_t number = 0;
  std::uint64_t refusal[2];
  if (!wire.get(refusal, sizeof refusal)) return false;
  for (CopyEntry& entry : found_) {
    if (!entry.is_sent) continue;
    entry.is_sent = false;
    if (number++ != refusal[0]) continue;
    const int error = static_cast<int>(refusal[1] & 0xffff);
    if (entry.changed >= 0 && !entry.own) {
      report.add(error, entry.path);
      if (is_full_disk(error))
        entry.changed = -1;
      else
        entry.own = true;
    }
    if (!wire.get(refusal, sizeof refusal)) return false;
  }
  return refusal[0] == copy_end;
}

}  // namespace v0_1
}  // namespace codeexec
