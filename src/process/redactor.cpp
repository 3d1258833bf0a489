// Secrets in an output, replaced while it streams.

#include "process/capture_internal.hpp"
#include "process/process.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

static_assert(Redactor::min_size == shortest_secret && Redactor::max_total == longest_secrets,
              "the environment checks what the redactor can do");

// The secrets as a trie. States are numbered in breadth-first order, so that the children of each
// have numbers in a row, in order of their bytes: no state needs a table of 256.
//
// At the root most bytes are skipped (Wu and Manber). The last two bytes of a window as long as the
// shortest secret give the least distance to the next secret. Every step moves on by a byte or
// more, so that this is linear, too.
struct Redactor::Table {
  using Index = std::uint32_t;
  static constexpr Index root = 0;

  std::array<Index, 256> root_children = {};
  std::vector<Index> first_child = {};       // of each state, and one more for the last one's end
  std::string label = std::string(1, '\0');  // the byte that leads to it
  std::vector<Index> depth = {};
  std::vector<Index> match = {};  // length of the longest secret that ends here, or 0
  // The state of the longest shorter suffix that can go on.
  std::vector<Index> fallback = {};
  std::size_t window = 256;  // so that a distance fits into a byte
  std::array<unsigned char, 4096> distance;

  // `secrets` are sorted, so that those with a common beginning stand in a row.
  explicit Table(const std::vector<std::string>& secrets) {
    add_state(0);
    build_trie(secrets);
    link();
    for (const std::string& secret : secrets) window = std::min(window, secret.size());
    distance.fill(static_cast<unsigned char>(window - 1));
    for (const std::string& secret : secrets)
      for (std::size_t i = 2; i <= window; ++i) {
        unsigned char& known = distance[pair_at(secret.data() + i)];
        known = std::min(known, static_cast<unsigned char>(window - i));
      }
  }

  // The two bytes before `end` as a number; different pairs may have the same.
  static std::size_t pair_at(const char* end) {
    return (static_cast<unsigned char>(end[-2]) * 16u ^ static_cast<unsigned char>(end[-1])) % 4096;
  }

  // Where in `text` the next secret may begin, from `at` on.
  std::size_t skip(std::string_view text, std::size_t at) const {
    while (at + window <= text.size()) {
      const std::size_t step = distance[pair_at(text.data() + at + window)];
      if (step == 0) break;
      at += step;
    }
    return at;
  }

  bool is_leaf(Index state) const { return first_child[state] == first_child[state + 1]; }

  // The child for that byte, or the root.
  Index child(Index state, unsigned char byte) const {
    if (state == root) return root_children[byte];
    const auto* const labels = reinterpret_cast<const unsigned char*>(label.data());
    const unsigned char* const end = labels + first_child[state + 1];
    const unsigned char* const at = std::lower_bound(labels + first_child[state], end, byte);
    return at != end && *at == byte ? static_cast<Index>(at - labels) : root;
  }

  // Goes as far back as it must; as each byte leads at most one level down, that is linear in all.
  Index next(Index state, unsigned char byte) const {
    for (;;) {
      const Index found = child(state, byte);
      if (found != root || state == root) return found;
      state = fallback[state];
    }
  }

 private:
  void add_state(Index level) {
    depth.push_back(Index{level});
    match.push_back(0);
    fallback.push_back(Index{root});
  }

  void build_trie(const std::vector<std::string>& secrets) {
    std::vector<std::pair<std::size_t, std::size_t>> rows;  // of each state
    rows.push_back({0, secrets.size()});
    for (std::size_t state = 0; state < rows.size(); ++state) {
      first_child.push_back(static_cast<Index>(rows.size()));
      const Index level = depth[state];
      auto [at, end] = rows[state];
      // Of those that are the same, too.
      for (; at < end && secrets[at].size() == level; ++at) match[state] = level;
      while (at < end) {
        const char byte = secrets[at][level];
        const std::size_t begin = at;
        while (at < end && secrets[at][level] == byte) ++at;
        if (state == root)
          root_children[static_cast<unsigned char>(byte)] = static_cast<Index>(rows.size());
        rows.push_back({begin, at});
        label += byte;
        add_state(level + 1);
      }
    }
    first_child.push_back(static_cast<Index>(rows.size()));
  }

  // From the shallow to the deep: what a state falls back to is always done already.
  void link() {
    for (Index state = root; state < depth.size(); ++state) {
      for (Index below = first_child[state]; below < first_child[state + 1]; ++below) {
        const Index suffix =
            state == root ? root : next(fallback[state], static_cast<unsigned char>(label[below]));
        if (match[below] == 0) match[below] = match[suffix];
        fallback[below] = is_leaf(suffix) ? fallback[suffix] : suffix;
      }
    }
  }
};

Redactor::Redactor(const std::vector<std::string>& secrets) {
  std::set<std::string> wanted;
  for (const std::string& secret : secrets) {
    const std::string_view text = without_line_ends(secret);
    if (text.size() >= min_size) wanted.insert(std::string(text));
  }
  if (wanted.empty()) return;
  std::vector<std::string> sorted;
  for (const std::string& text : wanted) sorted.push_back(text);
  table_ = new_shared<Table>(sorted);
}

std::string_view Redactor::add(std::string_view bytes) {
  // Bounds what is found, but not settled, whatever the size of `bytes` is.
  constexpr std::size_t most = 65536;
  out_.clear();
  if (!table_) return bytes;
  std::string_view rest;
  while (!bytes.empty()) {
    out_ += rest;
    rest = scan(bytes.substr(0, most));
    bytes.remove_prefix(std::min(bytes.size(), most));
  }
  if (out_.empty()) return rest;
  return out_ += rest;
}

std::string_view Redactor::finish() {
  out_.clear();
  settle(position_, {});
  give(position_, {});
  state_ = 0;
  position_ = decided_ = masked_until_ = 0;
  held_.clear();
  return out_;
}

std::string Redactor::redact(std::string_view text) const {
  Redactor fresh;
  fresh.table_ = table_;
  std::string result(fresh.add(text));
  result += fresh.finish();
  return result;
}

// Puts what is certain into out_, but for the end of it that lies in `piece`: that is returned.
std::string_view Redactor::scan(std::string_view piece) {
  const Table& table = *table_;
  auto state = static_cast<Table::Index>(state_);
  std::size_t at = 0;
  while (at < piece.size()) {
    if (state == Table::root) at = table.skip(piece, at);
    state = table.next(state, static_cast<unsigned char>(piece[at++]));
    const std::uint64_t end = position_ + at;
    if (table.match[state] > 0) found(end - table.match[state], end);
    // Nothing can begin where a secret that has ended began.
    if (table.is_leaf(state)) state = table.fallback[state];
  }
  state_ = state;
  const std::uint64_t end = position_ + piece.size();
  const std::uint64_t limit = end - table.depth[state];
  settle(limit, piece);
  give(std::min(limit, position_), piece);
  std::string_view rest;
  if (limit > decided_) {
    rest = piece.substr(static_cast<std::size_t>(decided_ - position_),
                        static_cast<std::size_t>(limit - decided_));
    decided_ = limit;
  }
  position_ = end;
  const auto undecided = static_cast<std::size_t>(end - decided_);
  if (undecided <= piece.size()) {
    held_ = piece.substr(piece.size() - undecided);
    return rest;
  }
  held_ += piece;
  // As with the spans.
  if (undecided <= held_.size() / 2) held_.erase(0, held_.size() - undecided);
  return rest;
}

void Redactor::found(std::uint64_t begin, std::uint64_t end) {
  while (spans_.size() > first_span_ && spans_.back().second > begin) {
    begin = std::min(begin, spans_.back().first);
    spans_.pop_back();
  }
  if (begin < masked_until_)
    masked_until_ = end;
  else
    spans_.push_back({begin, end});
}

// Masks what is certain when no secret can begin before `limit` any more.
void Redactor::settle(std::uint64_t limit, std::string_view piece) {
  decided_ = std::max(decided_, masked_until_);
  for (; first_span_ < spans_.size() && spans_[first_span_].first <= limit; ++first_span_) {
    give(spans_[first_span_].first, piece);
    out_ += mask;
    ++count_;
    decided_ = masked_until_ = spans_[first_span_].second;
  }
  // Only when the done ones are the larger part, so that it costs no more than they did.
  if (first_span_ > spans_.size() / 2) {
    spans_.erase(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(first_span_));
    first_span_ = 0;
  }
}

// Puts the bytes up to that offset into out_. The piece follows what is held.
void Redactor::give(std::uint64_t end, std::string_view piece) {
  if (decided_ < std::min(end, position_)) {
    const std::uint64_t held_end = std::min(end, position_);
    const std::uint64_t held_begin = position_ - held_.size();
    out_.append(held_, static_cast<std::size_t>(decided_ - held_begin),
                static_cast<std::size_t>(held_end - decided_));
    decided_ = held_end;
  }
  if (end <= decided_) return;
  out_ += piece.substr(static_cast<std::size_t>(decided_ - position_),
                       static_cast<std::size_t>(end - decided_));
  decided_ = end;
}

}  // namespace v0_1
}  // namespace codeexec
