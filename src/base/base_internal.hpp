// What the parts of all sections share: text, errors, descriptors, files, UTF-8.
#pragma once

#include "base/base.hpp"
#include "base/platform_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

using Sha256State = std::array<std::uint32_t, 8>;
inline constexpr std::size_t sha256_block_size = 64;

// Takes blocks into the state of a hash.
using Sha256Blocks = void (*)(Sha256State& state, const unsigned char* blocks, std::size_t count);
Sha256Blocks plain_sha256();
// By instructions of the processor. Null: it has none, or the compiler knows none.
Sha256Blocks fast_sha256();

}  // namespace inner

namespace detail {

// SHA-256 of what comes in pieces.
class Sha256 {
 public:
  Sha256() : Sha256(fast_sha256()) {}
  // Null: in plain C++.
  explicit Sha256(Sha256Blocks take_blocks);
  void add(std::string_view bytes);
  // Of all that was added so far, in 64 hexadecimal digits.
  std::string hex() const;

 private:
  Sha256Blocks take_blocks_;
  Sha256State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint64_t size_ = 0;
  unsigned char block_[sha256_block_size] = {};  // the last one, as far as it has come
};

}  // namespace detail

template <class Signature>
class FunctionRef;

// A borrowed callable, for callbacks that are used only until the call that takes them returns.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& callable) noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return static_cast<R>(
              (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...));
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

inline namespace inner {

using Clock = std::chrono::steady_clock;

// A piece of a text: a text that it borrows, as it is or in quotes, or a number. More than a
// thousand are made, each of which would weigh more than a call if its constructor was inlined.
class Piece {
 public:
  enum class Kind { text, in_quotes, number, below_zero };

  Piece(const char* text);
  [[gnu::noinline]] Piece(const std::string& text);
  [[gnu::noinline]] Piece(std::string_view text, Kind kind = Kind::text);
  [[gnu::noinline]] Piece(unsigned long long number);
  Piece(unsigned long number) : Piece(static_cast<unsigned long long>(number)) {}
  Piece(unsigned number) : Piece(static_cast<unsigned long long>(number)) {}
  Piece(long long number);
  Piece(long number) : Piece(static_cast<long long>(number)) {}
  Piece(int number) : Piece(static_cast<long long>(number)) {}
  Piece(char) = delete;
  Piece(bool) = delete;

  void append_to(std::string& out) const;
  // Of a number or of what is put in quotes, a guess.
  std::size_t size() const { return kind_ == Kind::text ? text_.size() : 16; }
  operator std::string() const;

 private:
  Kind kind_;
  union {
    std::string_view text_;
    unsigned long long number_;  // without its sign
  };
};

// The pieces of a message, without a temporary text of each.
using Pieces = std::initializer_list<Piece>;

// One allocation for any number of pieces.
std::string concat(Pieces pieces);

// None of the pieces may be of the text itself, which moves as it grows.
void append_all(std::string& text, Pieces pieces);

// A text with a value in place of each % of `form`. A literal of its own for what stands between
// two values would weigh as much as a value.
std::string concat(const char* form, Pieces values);
void append_all(std::string& text, const char* form, Pieces values = {});

// Texts of their own, as of a command line. In a list of std::string each would be made and copied.
std::vector<std::string> words_of(Pieces words);

void add_words(std::vector<std::string>& words, Pieces more);

std::string errno_text(int error);

using detail::SharedError;

// The Error of a failed system call: "<what>: No such file or directory".
[[gnu::cold]] SharedError system_error(int error, const char* what, Pieces values = {});

[[gnu::cold]] SharedError make_error(ErrorCode code, const char* message, Pieces values = {},
                                     std::size_t offset = 0);

// A byte in two hexadecimal digits.
void append_hex(std::string& out, unsigned char byte);

// The error with a text of ours in front of its own, or instead of it.
[[gnu::cold]] SharedError with_prefix(const char* prefix, Pieces values, const Error& error);

[[gnu::cold]] SharedError with_message(Error error, std::string message);

// The one map from texts to texts: each other kind would be code of its own.
using TextMap = std::map<std::string, std::string, std::less<>>;

// The owner of an object; the last copy calls `destroy`.
std::shared_ptr<void> owner_of(void* object, void (*destroy)(void*));

// As std::make_shared, which costs half a KiB of code for each type. Not for one that has
// shared_from_this().
template <class T, class... Args>
std::shared_ptr<T> new_shared(Args&&... args) {
  static_assert(!std::is_base_of_v<std::enable_shared_from_this<T>, T>, "it would have no owner");
  auto* const object = new std::remove_const_t<T>(std::forward<Args>(args)...);
  return {owner_of(object, [](void* dead) { delete static_cast<T*>(dead); }), object};
}

// Fits into a std::string without memory of the heap.
inline constexpr const char* out_of_memory = "out of memory";

// Does `work`. False: there was not enough memory, and the rest of it is left out. Without
// exceptions the C++ library ends this program then.
bool enough_memory(FunctionRef<void()> work);

// For a moment, before what needs memory is tried again.
void pause_for_memory();

// Does what must be done: without enough memory it is begun again, until there is.
void await_memory(FunctionRef<void()> work);

// Adds to a message that something is missing, such as "notes are", in as many words as there is
// memory for. It is not empty afterwards.
void tell_of_memory(std::string& message, std::string_view missing);

// So many random bytes in hexadecimal digits; empty and errno when the system has none.
std::string random_hex(std::size_t size);

std::string sha256(std::string_view bytes);

// Hostile text for a one-line message: well-formed UTF-8; controls and turns of direction escaped.
std::string printable(std::string_view text);

// The same in quotes, and at most 200 bytes of the text, which must outlive the piece.
Piece in_quotes(std::string_view text);

// A literal with sv knows its length, where one that is converted is measured by a call.
using std::string_view_literals::operator""sv;

bool starts_with(std::string_view text, std::string_view prefix);

bool ends_with(std::string_view text, std::string_view suffix);

inline bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// The place of the first that passes, or the end. The loops of std::find_if and its like are
// unrolled four times.
template <class Range, class Test>
auto find_where(Range& range, Test passes) {
  auto place = std::begin(range);
  while (place != std::end(range) && !passes(*place)) ++place;
  return place;
}

template <class Range, class Value>
auto find_in(Range& range, const Value& value) {
  return find_where(range, [&value](const auto& other) { return other == value; });
}

template <class Texts>
bool is_one_of(std::string_view text, const Texts& texts) {
  return find_in(texts, text) != std::end(texts);
}

// The same for a few words that stand in the call. Their sizes are known to the compiler: most
// calls compare no more than these.
template <std::size_t... Sizes>
bool is_any(std::string_view text, const char (&... words)[Sizes]) {
  return ((text.size() == Sizes - 1 &&
           std::char_traits<char>::compare(text.data(), words, Sizes - 1) == 0) ||
          ...);
}

bool all_are(std::string_view text, bool (*test)(char));

// What stands before the next separator, or all; the text then begins behind that.
std::string_view take_part(std::string_view& text, char separator);
// Where a text stands behind `from`, or npos. std::string_view::find() takes the product of the
// sizes for some texts.
std::size_t find_bytes(std::string_view text, std::string_view wanted, std::size_t from = 0);
// Where the line begins in which a place is.
std::size_t line_start(std::string_view text, std::size_t at);

// The last name of a path.
std::string_view base_name(std::string_view path);

std::string in_lower_case(std::string_view text);

// Of ASCII, whatever the locale.
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Names as shells have them (POSIX, 3.231).
inline bool is_name_start(char c) { return c == '_' || is_letter(c); }
inline bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }
bool is_name(std::string_view text);
inline bool is_shell_blank(char c) { return c == ' ' || c == '\t'; }

// A text as one word of a shell, whatever is in it.
std::string shell_word(std::string_view text);

// Adds a text as one word of a POSIX shell: bare where it is plain, else quoted.
void append_shell_word(std::string& script, std::string_view text);

// Reads words as dash, bash, busybox, ksh, mksh, zsh and yash print them to be read again: bare, or
// in any of their quotes. The text is hostile: nothing in it is expanded.
class PrintedWords {
 public:
  explicit PrintedWords(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ == text_.size(); }
  std::size_t at() const { return at_; }
  char next() const { return at_end() ? '\0' : text_[at_]; }
  // Takes the next character, if it is this one.
  bool skip(char c);
  // The word up to one of `ends` that is not quoted, or to the end. False: it is none.
  bool read(std::string& word, std::string_view ends = " \n");

 private:
  // To the quote that ends it. A backslash stands for itself, but before one of `escaped`.
  bool read_quoted(std::string& word, char quote, std::string_view escaped);
  bool read_ansi(std::string& word);
  // What follows a backslash: a byte, or -1. zsh has \C-x and \M-x for control and meta, and
  // \M-\C-x for both. More levels no shell writes; they could be as many as use up the stack.
  int read_escape(int levels = 2);
  int read_number(unsigned base, std::size_t most);

  std::string_view text_;
  std::size_t at_ = 0;
};

// NAME=value, as an assignment of a shell, or a word of env or sudo.
bool is_assignment(std::string_view text);
// Words that bash takes for its own grammar where a command may begin.
bool is_reserved_word(std::string_view word);

// The script that starts a program with these words: bare where they are plain, else quoted.
std::string script_of_argv(const std::vector<std::string>& argv);

// What a character stands for behind a backslash in C and whatever took its strings from there:
// \a \b \f \n \r \t \v and the backslash itself. NUL: nothing.
char escaped_character(char c);

// The value of up to `most` digits of a base from text[at] on; `at` moves behind them.
std::uint32_t read_digits(std::string_view text, std::size_t& at, std::size_t most, unsigned base);

// Patterns of shells for names of files (POSIX.1-2024, 2.14) have one of these, or an extended glob
// of bash: ?(a|b) *(a) +(a) @(a) !(a).
bool has_glob(std::string_view text);

// Where the first extended glob begins, or npos.
std::size_t find_extended_glob(std::string_view text);

// A bracket expression of such a pattern.
struct GlobBracket {
  std::size_t end = std::string_view::npos;  // npos: it has none, and is an ordinary character
  bool holds = false;                        // the character that was asked for
};

// The one at pattern[at]. A class such as [:alpha:] may hold any character: which ones, the locale
// decides.
GlobBracket glob_bracket(std::string_view pattern, std::size_t at, char c = '\0');

// Whether a name is one that a pattern stands for. Of the stars only the last one is ever tried
// again, so it takes no more time than the product of the two sizes.
bool glob_matches(std::string_view pattern, std::string_view name);

// FNV-1a with 64 bits, in hexadecimal digits. It need not resist attacks: an attacker who chooses
// the content can choose the name, too.
std::string content_digits(std::string_view content);

// Secrets are masked in what commands print; shorter ones would hit by chance.
inline constexpr std::size_t shortest_secret = 4;
// Of all secrets together: what it takes to find them grows with it.
inline constexpr std::size_t longest_secrets = std::size_t{1} << 20;

std::size_t total_size(const std::vector<std::string>& texts);

// A text without the line ends at its end, which are no part of a secret.
std::string_view without_line_ends(std::string_view text);

// Moves a descriptor above `last`. -1 and errno on failure.
int moved_above(int last, int fd);

// One of 0, 1 and 2 turns up when the host has closed them, and would be overwritten while a
// child's standard streams are put in place.
inline int above_standard_streams(int fd) { return moved_above(2, fd); }

// For what a child still needs when its streams and its descriptor 3 are in place.
inline int above_child_descriptors(int fd) { return moved_above(3, fd); }

// Calls `use` with the names in a directory that was opened for reading, as long as it returns
// true. 0 or errno.
int for_each_entry(UniqueFd directory, FunctionRef<bool(const char*)> use);
// The same in a directory that stays open, and is read from its beginning.
int for_each_entry_in(int directory, FunctionRef<bool(const char*)> use);

// The same by path, on Linux; a link in place of the directory is followed.
#if defined(__linux__)
int for_each_entry(const std::string& path, FunctionRef<bool(const char*)> use);
#endif

// Keeps a write from raising a signal in this thread (SIGPIPE, SIGXFSZ), without touching its
// disposition: it is blocked during the write and, when the write raised it, taken back.
class HeldSignal {
 public:
  explicit HeldSignal(int number) : number_(number) {
    const sigset_t set = only_this();
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    // Only a signal that was blocked already can have been pending already.
    was_pending_ = sigismember(&before_, number_) == 1 && pending();
  }
  ~HeldSignal() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;

  // To be called after EPIPE or EFBIG.
  void take_back() {
    if (was_pending_ || !pending()) return;
    const sigset_t set = only_this();
#if defined(__linux__)
    const timespec now{};
    while (::sigtimedwait(&set, nullptr, &now) < 0 && errno == EINTR) {
    }
#else
    int number = 0;
    ::sigwait(&set, &number);
#endif
  }

 private:
  sigset_t only_this() const {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number_);
    return set;
  }
  bool pending() const {
    sigset_t set;
    sigemptyset(&set);
    sigpending(&set);
    return sigismember(&set, number_) == 1;
  }
  int number_;
  sigset_t before_;
  bool was_pending_ = false;
};

// "2026-01-31T12:00:00", without the zone; empty for a year that no calendar has.
std::string utc_time(time_t seconds);

// As write(2), to a file. What this program's own limit for files does not let it write is EFBIG;
// the signal that comes with it would end this program.
ssize_t write_to_file(int fd, std::string_view bytes);

// As write(2), to what may have no reader any more: that is EPIPE and no signal for this program.
ssize_t write_to_pipe(int fd, std::string_view bytes);

// 0 or errno. What has no disk under it needs none.
int flush_to_disk(int fd);

// All of the bytes, to a file. 0 or errno.
int write_all(int fd, std::string_view bytes);

// The name of this process's namespace of that kind, such as "mnt". Empty where there is none.
std::string own_namespace(const char* kind);

// The whole of a file of at most `limit` bytes. `what` names it in errors ("config file").
Expected<std::string> read_whole_file(const std::string& path, std::size_t limit,
                                      std::string_view what);

// At most so many bytes of what an open descriptor gives, up to its end or an error.
std::string read_up_to(const UniqueFd& fd, std::size_t most);

// The whole of a regular file of at most `limit` bytes in an open directory, and what it is;
// nothing when it is none. It never follows a link as its last name, and never blocks (on a pipe).
std::optional<std::string> read_regular_file(int directory, const char* name, std::size_t limit,
                                             struct stat& status);

// A user of the system, or a group, whose number is `uid`; as they are written down.
struct SystemUser {
  std::string name = {};
  std::string uid = {};
  std::string gid = {};
  std::string home = {};
};

// Those of /etc/passwd or /etc/group; none when that cannot be read or is above 1 MiB. getpwnam()
// may load code and ask servers.
std::vector<SystemUser> system_users(const char* path);

// Length of the well-formed UTF-8 sequence at `s`, or 0. When 0, `bad` is the length of the maximal
// invalid subpart (at least 1), and `cut` says that the text merely ends inside a sequence.
struct Utf8Step {
  std::size_t good = 0;
  std::size_t bad = 1;
  bool cut = false;
};

inline Utf8Step utf8_step(const unsigned char* s, std::size_t left) {
  const unsigned char lead = s[0];
  if (lead < 0x80) return {1, 0, false};
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;   // shorter forms exist below
    if (lead == 0xed) high = 0x9f;  // surrogates above
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;  // above U+10FFFF
  } else {
    return {};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i == left) return {0, i, true};
    if (s[i] < low || s[i] > high) return {0, i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, 0, false};
}

// The UTF-8 form of a code point.
void append_utf8(std::uint32_t code, std::string& out);

// Bytes at the end of a text that begin a UTF-8 sequence which goes on after it.
std::size_t cut_at_end(std::string_view text);

// Bytes at the start of a text that can only end a UTF-8 sequence which began before it.
std::size_t cut_at_start(std::string_view text);

inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";  // U+FFFD

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
