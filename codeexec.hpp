// codeexec.hpp - run commands for an AI agent, from one C++17 header.         v0.1.0   MIT licence
//
// DO THIS
//   in exactly one .cpp file                    in every other file
//     #define CODEEXEC_IMPLEMENTATION             #include "codeexec.hpp"
//     #include "codeexec.hpp"
//   Build with any C++17 compiler on Linux (macOS and BSD: the portable parts), and -pthread.
//   Nothing else is needed. CMake users link codeexec::impl and never write the macro.
//
// A WHOLE PROGRAM                                                            (examples/hello.cpp)
//
//   #define CODEEXEC_IMPLEMENTATION
//   #include "codeexec.hpp"
//
//   #include <cstdio>
//
//   int main() {
//     auto here = codeexec::LocalExecutor::create({});
//     if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
//
//     codeexec::Result r = here->run("echo hello; echo oops >&2; exit 3");
//     std::printf("%s\n%s%s", r.summary().c_str(), r.out.c_str(), r.err.c_str());
//   }
//
//   examples/in_process.cpp   embedding: run, stream, cancel, inspect
//   examples/mcp_server.cpp   the MCP server; codeexec::server_main() is all of it
//   examples/custom_tool.cpp  an MCP server with a tool of your own
//
// WHAT YOU CAN RELY ON
//   It comes back. A run ends by its timeout plus kill_grace plus 3 seconds, whatever the command
//   does: ignores SIGTERM, stops itself, daemonises, leaves somebody on the pipe, writes for ever.
//   Nothing survives that should not. On Linux each command of an executor has a supervisor, in a
//   sandbox or not: nothing of it outlives it, its timeout or a SIGKILL of your program. A plain
//   run_process() has one when ProcessOptions::supervised or a sandbox asks for it. Where there is
//   none: after a timeout or cancel its process group is dead and, on Linux, every process found by
//   descent, by its session, by the run's mark in its environment or by the pipes it holds; after a
//   run that ended by itself, its group and whoever held its pipes. (What left all of these on
//   purpose is not found, and a SIGKILL of your program ends no such command.)
//   Memory is bounded. Of each stream max_output bytes are kept, its head and its tail, cut between
//   characters, with exact counts; on request the whole goes to a file.
//   Everything is told. A Result says how the run ended, what was cut and what was refused by which
//   rule. Partial output is kept. Nothing is called a success that was not seen to succeed.
//   One gate. run(), start() and every tool pass the same policy, path check, limits and audit.
//   It fails closed. A bad pattern, unknown key or missing path is an error when you create the
//   executor, never a rule that silently does not apply.
//   Linear time in the size of the input, for patterns, JSON and buffers.
//
// WHAT IT IS NOT
//   Not sandboxed unless you ask: LocalOptions::sandbox is off, and a command that is allowed runs
//   with the rights of your process. (The server turns it on when it is given allowed paths.) The
//   policy is a guard rail against mistakes and cheap attacks: it reads a command as a shell does,
//   and not what the programs do that it starts, nor scripts in files. Not for Windows.
//
// ERRORS
//   What a command can cause is data in its Result. What the caller, the operator or the system got
//   wrong is an Expected<T> that holds an Error: code, errno and a message that says what, where
//   and which option to turn. A bug in the calling program aborts with a message. Nothing throws
//   but std::bad_alloc; all of it works the same under -fno-exceptions -fno-rtti.
//
// THREADS AND YOUR PROCESS
//   Different objects: any threads. One object: const members from any thread, the others from one
//   at a time; a comment says where it is otherwise.
//   The library installs no signal handler, leaves SIGCHLD, SIGPIPE and your signal masks as they
//   are, and never calls waitpid(-1), chdir, umask, setenv or setlocale. Every descriptor it opens
//   is close-on-exec and above 2. It prints nothing. Your big process is never copied by a fork.
//   It needs no SIGCHLD: a status is right even when you ignore that signal or reap everybody's
//   children (there, Linux 6.15 is needed; before it, the outcome is `unknown`, never a success).
//   run() uses the calling thread only. start() uses one thread for all started commands, which
//   ends with the last handle. mcp::Server::serve() ends its threads before it returns, unless a
//   tool's handler does not return.
//   server_main() is the exception: it is a program's main() and owns its signals.
//
// UNITS
//   Time is std::chrono; sizes are bytes; offsets count bytes from 0. Text is UTF-8; bytes of
//   programs that are not become U+FFFD and are counted.
//
// SECTIONS (search for ">>name": the table, its declarations, its definitions)
//   >>base         needs: -             errors, results, callbacks, descriptors, UTF-8
//   >>json         needs: base          value, strict parser, writer
//   >>regex        needs: base          patterns in linear time
//   >>shell        needs: base          a script becomes its simple commands; starts nothing
//   >>policy       needs: base regex shell    sanitizer rules, block and allow lists, verdicts
//   >>paths        needs: base          allowed roots, safe opening, which files may be deleted
//   >>files        needs: base paths    reading, writing and listing within the roots
//   >>environment  needs: base paths    variables, venv, prefix of a command; starts nothing
//   >>sandbox      needs: base paths    Landlock, seccomp, limits: one compiled policy
//   >>process      needs: base sandbox  spawn, capture, wait, kill the tree
//   >>executor     needs: base json regex policy paths environment sandbox process    the one gate
//   >>shells       needs: base regex process executor                   background commands
//   >>code         needs: base paths files executor                     code by language
//   >>mcp          needs: base json     a Model Context Protocol server for any tools
//   >>tools        needs: all           binds executors to MCP tools; the server
//   Each line of code stands in the section whose job it is, and a section uses only what it
//   needs. Both halves list the same sections in the same order; tests/hygiene checks all of this.
//
// WHEN IT DOES NOT LINK
//   undefined reference to `codeexec::v0_1::...'    no file defines CODEEXEC_IMPLEMENTATION: one
//                                                   must, before it includes this header.
//   multiple definition of `codeexec::v0_1::...'    two files define it: only one may.
//   undefined reference to `codeexec::v0_2::...'    your files include different versions.
//
// VENDORING TWICE
//   A library that carries its own copy renames it, in all of its files:
//     #define codeexec acme_codeexec
//     #include "codeexec.hpp"
//
// STABLE ARE the names and fields in the declarations, the option names, the JSON keys. While the
// version begins with 0, a new minor version may change them; the inline namespace then changes
// too, so that mixed versions do not link. No macro changes a declaration, a type or a default.
//
// CHANGING THIS FILE  It is edited by hand, from the ground up. `sh tests/run.sh` tells the rest.
// The licence is at the end.
#ifndef CODEEXEC_HPP
#define CODEEXEC_HPP

#define CODEEXEC_VERSION_MAJOR 0
#define CODEEXEC_VERSION_MINOR 1
#define CODEEXEC_VERSION_PATCH 0
// Comparable in #if: major * 10000 + minor * 100 + patch.
#define CODEEXEC_VERSION 100
#define CODEEXEC_VERSION_STRING "0.1.0"

#if __cplusplus < 201703L
#error "codeexec.hpp needs C++17: compile with -std=c++17 or newer"
#endif

#include <chrono>            // milliseconds
#include <cstddef>           // size_t
#include <cstdint>           // int64_t
#include <initializer_list>  // Json::array, Json::object
#include <memory>            // shared_ptr, unique_ptr
#include <optional>          // optional
#include <string>            // string
#include <string_view>       // string_view
#include <type_traits>       // decay_t
#include <utility>           // move, exchange, pair
#include <vector>            // vector

namespace codeexec {
inline namespace v0_1 {

// =================================================================================================
// >>base (declarations)                                                                  needs: -
// Errors, optional results, callbacks, descriptors, cancellation, UTF-8.       [tests/base.cpp]
// =================================================================================================

// What kind of thing went wrong; the message says the rest. `name()` gives the enumerator's name.
enum class ErrorCode {
  invalid_argument,   // an option or argument has a value it cannot have
  not_found,          // a path, program, name or handle that does not exist
  permission_denied,  // the system, a root or a policy does not allow it
  parse,              // malformed JSON, pattern or script; `offset` says where
  limit,              // a stated bound was reached
  unsupported,        // this system or build cannot do it
  io,                 // any other failed system call; `system_error` is its errno
};
const char* name(ErrorCode code) noexcept;

// What the caller, the operator or the system got wrong. The message is one line for a person: what
// happened, where, and which option to turn.
struct Error {
  ErrorCode code = ErrorCode::io;
  int system_error = 0;    // errno, or 0
  std::size_t offset = 0;  // of a parse error: bytes from the start of the input
  std::string message = {};
};

namespace detail {
// Ends the program with the error's message: a failed Expected was used as if it held a value.
[[noreturn]] void used_without_value(const Error& error);
}  // namespace detail

// Either a T or the Error that explains why there is none. Test it before use: reading the value of
// a failed one is a bug in the calling program and aborts with the error's message.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(Error error) : error_(std::move(error)) {}

  bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Expected*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Expected*>(this)->checked(); }

  // The error of a failed one; a default Error otherwise.
  const Error& error() const noexcept { return error_; }

 private:
  T& checked() {
    if (!value_.has_value()) detail::used_without_value(error_);
    return *value_;
  }
  std::optional<T> value_ = {};
  Error error_ = {};
};

// Success, or the Error that explains the failure.
template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(Error error) : failed_(true), error_(std::move(error)) {}
  bool has_value() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return !failed_; }
  const Error& error() const noexcept { return error_; }

 private:
  bool failed_ = false;
  Error error_ = {};
};

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

template <class Signature>
class Function;

// A kept callable; copies share it. It stands in for std::function, whose header alone costs every
// including file more than this whole one. Calling an empty one does nothing and returns R().
template <class R, class... Args>
class Function<R(Args...)> {
 public:
  Function() = default;
  Function(std::nullptr_t) {}
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Function>>>
  Function(F callable)
      : object_(std::make_shared<F>(std::move(callable))),
        call_([](void* object, Args... args) -> R {
          return static_cast<R>((*static_cast<F*>(object))(std::forward<Args>(args)...));
        }) {}
  explicit operator bool() const noexcept { return call_ != nullptr; }
  R operator()(Args... args) const {
    if (!call_) return R();
    return call_(object_.get(), std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<void> object_ = {};
  R (*call_)(void*, Args...) = nullptr;
};

// Owns one file descriptor and closes it. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

// Asks running work to stop. Copies share one state. All members are safe from any thread.
class CancelToken {
 public:
  CancelToken();
  // Once cancelled, always cancelled; later calls do nothing.
  void cancel() const;
  bool cancelled() const noexcept;
  // A descriptor that becomes readable when the token is cancelled, for poll(). Made on first use
  // and owned by the token; -1 when the system has none left (then only cancelled() tells).
  int descriptor() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A duration that never ends, where a limit may be switched off.
inline constexpr std::chrono::milliseconds no_limit = std::chrono::milliseconds::max();

// True when the bytes are well-formed UTF-8 (Unicode 15, table 3-7: no overlong forms, no
// surrogates, nothing above U+10FFFF).
bool is_utf8(std::string_view bytes) noexcept;

// Offset of the first byte that is not part of well-formed UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view bytes) noexcept;

// The bytes as well-formed UTF-8: every maximal invalid subpart becomes one U+FFFD (the WHATWG
// decoder's rule). `invalid_bytes`, when given, grows by the number of bytes replaced.
std::string to_utf8(std::string_view bytes, std::uint64_t* invalid_bytes = nullptr);

// The longest prefix of at most `size` bytes that does not cut a UTF-8 sequence in two.
std::string_view utf8_prefix(std::string_view text, std::size_t size) noexcept;

// The longest suffix of at most `size` bytes that does not cut a UTF-8 sequence in two.
std::string_view utf8_suffix(std::string_view text, std::size_t size) noexcept;

// Base64 with padding (RFC 4648, section 4).
std::string to_base64(std::string_view bytes);

// The bytes, or nothing when the text is not base64 of that kind. Blanks and line ends are skipped,
// padding may be missing.
std::optional<std::string> from_base64(std::string_view text);

// =================================================================================================
// >>json (declarations)                                                              needs: base
// A JSON value, a strict RFC 8259 parser and a writer.                          [tests/json.cpp]
// =================================================================================================

struct JsonLimits {
  std::size_t max_depth = 256;  // arrays and objects inside one another; deeper is an error
  // Values of any kind in all; more are an error. A value takes at most 100 bytes while it is read,
  // besides the bytes of its text, so this bounds the memory that a short text can cost.
  std::size_t max_values = static_cast<std::size_t>(-1);
  bool unique_names = false;         // true: an object with the same name twice is an error
  bool accept_invalid_utf8 = false;  // true: bad bytes in strings are read as U+FFFD, no error
};

// A JSON value. A copy is deep. Depth costs heap, never stack: a tree of any depth can be copied,
// compared, written and destroyed. Const members are safe from any thread, the others from one.
class Json {
 public:
  // `integer` is every number whose exact value is an integer within int64, however it was spelled:
  // 1, 1.0 and 1e0. `number` is every other one.
  enum class Kind { null, boolean, integer, number, string, array, object };
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() noexcept : boolean_(false) {}  // null
  Json(std::nullptr_t) noexcept : Json() {}
  // Only bool itself, so that a pointer is an error of the compiler and not `true`.
  template <class Bool, class = std::enable_if_t<std::is_same_v<Bool, bool>>>
  Json(Bool value) noexcept : boolean_(value), kind_(Kind::boolean) {}
  Json(int value) noexcept : Json(static_cast<long long>(value)) {}
  Json(long value) noexcept : Json(static_cast<long long>(value)) {}
  Json(long long value) noexcept;
  Json(unsigned value) noexcept : Json(static_cast<long long>(value)) {}
  Json(unsigned long value) noexcept : Json(static_cast<unsigned long long>(value)) {}
  Json(unsigned long long value) noexcept;  // above int64 a `number`, still written exactly
  // NaN and the infinities become null: JSON has neither. 7.0 becomes the integer 7.
  Json(double value) noexcept;
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text) noexcept;
  Json(Array items);
  Json(Object members);  // of members with the same name the last one wins, as in parse()

  static Json array(std::initializer_list<Json> items = {});
  static Json object();
  static Json object(std::initializer_list<Member> members);

  Json(const Json& other);
  Json(Json&& other) noexcept;  // leaves null behind
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  Kind kind() const noexcept { return kind_; }
  bool is_null() const noexcept { return kind_ == Kind::null; }
  bool is_bool() const noexcept { return kind_ == Kind::boolean; }
  bool is_integer() const noexcept { return kind_ == Kind::integer; }
  bool is_number() const noexcept { return kind_ == Kind::number || is_integer(); }
  bool is_string() const noexcept { return kind_ == Kind::string; }
  bool is_array() const noexcept { return kind_ == Kind::array; }
  bool is_object() const noexcept { return kind_ == Kind::object; }

  // Reads of one kind give the fallback, or something empty, for every other kind.
  bool as_bool(bool fallback = false) const noexcept;
  std::int64_t as_integer(std::int64_t fallback = 0) const noexcept;
  double as_number(double fallback = 0) const noexcept;  // of an integer the nearest double
  const std::string& as_string() const noexcept;         // UTF-8; may hold NUL
  const Array& items() const noexcept;
  const Object& members() const noexcept;
  std::size_t size() const noexcept;  // of items or members

  // A member of an object, or null when there is none; names are case-sensitive. Linear.
  const Json* find(std::string_view name) const noexcept;
  // The same, and an item of an array; a null value when there is none.
  const Json& operator[](std::string_view name) const noexcept;
  const Json& operator[](std::size_t index) const noexcept;

  // Replaces the member's value in its place, or adds it as the last; whatever was no object
  // becomes one. Linear, for it looks for the name. Returns *this.
  Json& set(std::string name, Json value);
  // Adds an item; whatever was no array becomes one. Returns *this.
  Json& push_back(Json value);

  // True when parse() met a \uD800 to \uDFFF escape without its partner in this string, or in any
  // string or name inside this container, even one that a later equal name or set() replaced. Such
  // an escape is read as U+FFFD, for UTF-8 cannot hold it: the string is not what the sender meant.
  // Constant time.
  bool has_lone_surrogate() const noexcept { return lone_surrogate_; }

  // Reads one JSON text (RFC 8259, UTF-8) with nothing around it but white space; a byte order mark
  // is an error, to be removed by the caller. Linear time. Members keep their order; of a name that
  // occurs again the last value wins, in the place of the first. An integer within int64 is exact;
  // any other number is the nearest double, and one that no double can hold (1e400) an error.
  // Errors: parse, limit (max_depth, max_values); `offset` and message tell the byte.
  static Expected<Json> parse(std::string_view text, const JsonLimits& limits = {});

  // The value as one line of compact JSON, always valid UTF-8. A number that was parsed is written
  // as it was spelled, an integer in full, any other as JavaScript does (ECMA-262: the shortest
  // form that reads back as the same double); -0 is kept. Besides what RFC 8259 demands, U+007F,
  // U+0085, U+2028 and U+2029 are escaped, since some readers break lines there. Bytes of a string
  // that are not UTF-8 are written as U+FFFD.
  std::string dump() const;
  void dump_to(std::string& out) const;  // appends

  // Equal values: 1 equals 1.0, the order of an object's members does not count.
  friend bool operator==(const Json& a, const Json& b) { return a.equals(b); }
  friend bool operator!=(const Json& a, const Json& b) { return !a.equals(b); }

 private:
  class Parser;
  class Writer;
  // A number, and its spelling where that cannot be made from the value: text_size_ bytes of
  // `text`, or `long_text` when they are more than fit.
  struct Number {
    union {
      std::int64_t integer;
      double real;
    };
    union {
      char text[24];
      std::string* long_text;
    };
  };
  // `link` is for the walks of the parser and the destructor, which so need no memory. No member
  // has an initializer: it would need Member, which is not complete yet.
  struct ArrayNode {
    Array items;
    Json* link;
  };
  struct ObjectNode {
    Object members;
    Json* link;
  };

  void make_boolean(bool value) noexcept;
  void make_integer(std::int64_t value) noexcept;
  void make_real(double value) noexcept;
  void spell(std::string_view text);
  std::string_view spelling() const noexcept;
  void make_string() noexcept;
  void make_array() noexcept;
  void make_object() noexcept;
  bool is_container() const noexcept { return is_array() || is_object(); }
  Json*& link() noexcept;
  void take(Json& other) noexcept;
  void clear() noexcept;
  void clear_tree() noexcept;
  void copy_flat(const Json& other);
  bool equals(const Json& other) const;
  bool equals_flat(const Json& other) const noexcept;

  static constexpr unsigned char is_long = 255;  // a text_size_

  union {
    bool boolean_;
    Number number_;
    std::string string_;
    ArrayNode array_;
    ObjectNode object_;
  };
  Kind kind_ = Kind::null;
  unsigned char text_size_ = 0;
  bool lone_surrogate_ = false;
};

struct Json::Member {
  std::string name = {};
  Json value = {};
};

// =================================================================================================
// >>regex (declarations)                                                             needs: base
// Patterns in Python's syntax, matched in linear time.                         [tests/regex.cpp]
// =================================================================================================

// A compiled pattern. Immutable: copies share it, and any number of threads may match with one.
//
// The syntax and its meaning are those of Python's `re` for str patterns, as far as a finite
// automaton can have them, leftmost-first priorities included:
//   .  [a-z]  [^\w.]  \d \D \w \W \s \S  \b \B \A \Z ^ $  |  ( )  (?: )  (?P<name> )  (?#comment)
//   * + ? {m} {m,} {m,n} {,n}, lazy with a ? behind; a brace that is no quantifier is itself
//   \n \t \r \f \v \a \\ \0 \012 \xHH \uHHHH \UHHHHHHHH, and any other escaped non-letter
//   (?aimsux) at the start of the pattern, and (?ims-x: ) for a part of it
// Text and pattern are UTF-8. `.` and sets match whole code points; a byte that is not part of
// well-formed UTF-8 counts as one character of its own (as Python's surrogateescape has it), which
// only `.`, a negated set, \D \S \W or the same byte in the pattern matches. Nothing ends at a NUL.
//
// It differs from Python in these points:
// - \d is 0-9, and case is ignored for ASCII letters only.
// - \w and \b take characters above U+007F by block: those of scripts are letters, Unicode's
//   punctuation, symbols and emoji are not. (?a) makes them, and \s, ASCII.
// - \B matches an empty text, as in Python from 3.14 on.
// - Where what is repeated can match nothing, as in (?:a??)*, find() may end elsewhere.
// - Refused, because no automaton can have them in linear time: back-references, look-ahead and
//   look-behind, conditionals, atomic groups, possessive quantifiers; also \N{...}.
//
// A match takes time proportional to text x compiled pattern at worst, and memory proportional to
// the compiled pattern alone, whatever the two contain. Bounds on a pattern: 64 KiB, groups nested
// 200 deep, repeat counts up to 10,000, and 100,000 steps when compiled (1.2 MB).
class Regex {
 public:
  struct Options {
    bool ignore_case = false;          // as (?i)
    bool dot_matches_newline = false;  // as (?s)
    bool multi_line = false;           // as (?m)
  };

  // Where a match begins, and where it ends: bytes from the start of the text.
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // Fails with `parse` (not a pattern), `unsupported` (Python has it, an automaton cannot) or
  // `limit` (a bound above); `offset` is the byte in the pattern, and the message names it as well.
  static Expected<Regex> compile(std::string_view pattern);
  static Expected<Regex> compile(std::string_view pattern, const Options& options);

  bool match(std::string_view text) const;       // at the start of the text, as re.match
  bool full_match(std::string_view text) const;  // the whole text, as re.fullmatch
  bool search(std::string_view text) const;      // anywhere in the text, as re.search

  // The span that Python's pattern.search(text, from) has; nothing when there is no match. What
  // stands before `from` still counts for ^ and \b.
  std::optional<Span> find(std::string_view text, std::size_t from = 0) const;

  // The text this was compiled from.
  const std::string& pattern() const noexcept;

 private:
  struct Program;
  class Parser;
  class Matcher;
  explicit Regex(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

// =================================================================================================
// >>shell (declarations)                                                             needs: base
// A shell script becomes the simple commands it would run.                     [tests/shell.cpp]
// =================================================================================================

// Reads scripts in the language of POSIX.1-2024, "Shell Command Language", and in that of bash 5,
// runs nothing, looks at no file, and tells every simple command that the script could run: in
// lists, pipelines, background, groups, subshells, compound commands, function bodies, command and
// process substitutions at any depth, arithmetic, parameter expansions, here-documents, and in the
// strings given to eval, trap and alias. Words are expanded as far as the script itself tells their
// value: variables it sets, positional parameters, quotes, braces, `$(echo ...)`, `${X:-...}`,
// field splitting. What only a run could tell stays marked as unknown.
//
// Branches are all taken: a variable that differs between them has several values, and a command
// that uses it is told once for each. Time is linear in the script, memory and results are bounded
// by Limits; what exceeds them is an error, never a part left out in silence.
namespace shell {

// Where the two languages read the same text differently ($'..', &>, <( ), [[ ]], {a,b}, ...).
enum class Dialect { bash, posix };

// A string as a command gets it, after expansion and removal of quotes. Each part that cannot be
// known without a run is a single NUL byte in `text`, which no shell string can contain.
struct Word {
  std::string text = {};
  std::size_t begin = 0;  // the bytes of the script it was written in; of a string that a command
  std::size_t end = 0;    // runs (eval '...'), the bytes of that command
  bool assumed = false;   // holds only while a variable the script does not set is unset: ${X:-y}
  bool glob = false;      // has unquoted * ? or [, so that it may stand for names of files
  bool home = false;      // begins with a home directory, which `text` has as ~ or ~user
  bool split = false;     // an unknown part is not quoted: it may become several words, or none
  bool process = false;   // is a process substitution: <( ) or >( )
  bool known() const noexcept { return text.find('\0') == std::string::npos; }
};

// NAME=value in front of a command; of an array, the elements with one blank between them; of
// NAME+=value the whole, of NAME[subscript]=value the element.
struct Assignment {
  std::string name = {};
  Word value = {};
};

struct Redirection {
  enum class Kind {
    read,           // <
    write,          // > and >|; also &> and >&name, which mean standard output and error
    append,         // >> and &>>
    read_write,     // <>
    duplicate,      // <& and >& of a number, or - which closes
    here_document,  // << and <<-; the target is the text
    here_string,    // <<<; the target is the text, without the newline that is added
  };
  Kind kind = Kind::read;
  int fd = 0;  // 1 for &>; -1 for {name}> and where the number is beyond 1023
  Word target = {};
  bool writes() const noexcept {
    return kind == Kind::write || kind == Kind::append || kind == Kind::read_write;
  }
};

// What a command reads from its standard input.
struct Input {
  enum class Kind {
    inherited,  // from whoever runs the script
    known,      // the text below: a here-document, or what echo, printf or cat writes into the pipe
    unknown,    // a file or the output of another command
  };
  Kind kind = Kind::inherited;
  std::string text = {};  // of known; unknown parts are NUL bytes, as in Word
};

// A simple command. [[ ]] and (( )) are told as commands with these names.
struct Command {
  std::vector<Assignment> assignments = {};
  std::vector<Word> words = {};  // empty for assignments or redirections alone
  std::vector<Redirection> redirections = {};
  std::size_t begin = 0;  // bytes of the script
  std::size_t end = 0;
  unsigned depth = 0;  // of lists in compound commands, substitutions, functions and strings
  // Where cd has led it: absolute, or as seen from where the script starts. A NUL byte: not known.
  Word work_dir = {};
  Input input = {};
  bool pipeline = false;    // part of a pipeline of two commands or more
  bool background = false;  // started with &, or in something that was
  bool defined = false;   // in a function's body, told when it is defined and not when it is called
  bool tolerant = false;  // in a payload that is
  bool compound = false;  // no command of its own: the redirections of a compound command
  bool fork_bomb = false;  // calls a function that is running, in a pipeline or in background of it
};

// A function or an alias that the script defines.
struct Definition {
  std::string name = {};
  bool alias = false;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Limits {
  unsigned max_depth = 32;                      // nesting of constructs, calls and strings together
  std::size_t max_commands = 4096;              // commands told
  std::size_t max_words = 65536;                // words of these
  std::size_t max_text = std::size_t{4} << 20;  // bytes of these words, and of all variables
};

struct Options {
  Dialect dialect = Dialect::bash;
  std::string work_dir = {};  // absolute; empty: not known
  Limits limits = {};
};

// How the reading went.
struct Outcome {
  // False: a syntax error (`parse`) or a limit (`limit`). What stands before it has been told; a
  // shell may run that much.
  bool complete = true;
  Error error = {};  // when not complete; `offset` is a byte of the script
  // Some part reads differently in the other dialect.
  bool dialect_dependent = false;
  std::vector<Definition> definitions = {};
};

struct Script : Outcome {
  std::vector<Command> commands = {};  // in the order in which a shell would come to them
};

// Reads a script. An unterminated quote or substitution, an operator out of place and a NUL byte
// are syntax errors. A here-document that ends with the script is not: shells accept it.
Script parse(std::string_view script, const Options& options = {});

// A string that a command hands to a shell, for walk() to follow.
struct Payload {
  std::string text = {};             // unknown parts are NUL bytes, as in Word
  std::vector<Word> arguments = {};  // $0, $1 ... of a shell of its own
  Input input = {};
  bool same_shell = false;  // as eval: it sees and changes the variables of the script
  bool tolerant = false;    // a syntax error in it ends the payload, not the reading
};

// A command that walk() has come to.
struct Visit {
  const Command& command;
  const Command* producer;         // the simple command that writes into its pipe, if one does
  std::vector<Payload>& payloads;  // to fill: what is to be read before the walk goes on
};

// Reads a script like parse(), and hands each command to `visit` when it comes to it.
Outcome walk(std::string_view script, const Options& options,
             FunctionRef<void(const Visit&)> visit);

}  // namespace shell

// =================================================================================================
// >>policy (declarations)                                                needs: base regex shell
// Judges commands by their text; starts nothing.                              [tests/policy.cpp]
// =================================================================================================

// A guard against mistakes and cheap attacks, not a boundary: a program that is allowed can still
// do what it likes. What must not happen is for the sandbox or a container to prevent.
struct PolicyOptions {
  enum class Mode {
    // The script is parsed, and each of its simple commands is judged: by the sanitizer's rules and
    // `blocked` in every form it has (its name without the directory, what env, timeout, xargs or
    // find -exec would start, the strings given to sh -c or eval), by `allowed` only as it stands.
    // A pattern must match the whole of a command. What cannot be understood is refused.
    strict,
    // The verdicts of MassGen's command line server, for those who depend on them: what is judged
    // is the text of the script; the sanitizer's patterns may match anywhere in it, `allowed` and
    // `blocked` only at its start (and need not reach its end, as with Python's re.match).
    compat,
  };
  Mode mode = Mode::strict;

  std::vector<std::string> allowed = {};         // patterns (see Regex); none: all may run
  std::vector<std::string> blocked = {};         // patterns; what they match is refused
  std::vector<std::string> disabled_rules = {};  // names of Policy::rules() to switch off
  bool enable_sudo = false;  // switches sudo, su, chown and chmod off; only for containers
  std::size_t max_command_bytes = std::size_t{16} << 20;  // longer commands are refused
};

// What a policy says to one command.
struct Verdict {
  bool allowed = true;
  // Of a refusal: the name of a rule of Policy::rules(), or "allowed-commands",
  // "blocked-commands", "syntax", "nul-byte", "command-too-long" or "command-too-complex".
  std::string rule = {};
  std::string message = {};  // of a refusal: complete, for the model to read
  // Of a refusal: the bytes of the command that caused it; all of it when no allowed pattern
  // matches.
  std::size_t begin = 0;
  std::size_t end = 0;
  explicit operator bool() const noexcept { return allowed; }
};

// A rule that is there without being configured.
struct RuleInfo {
  const char* name = "";         // stable, for PolicyOptions::disabled_rules and Verdict::rule
  const char* message = "";      // the reason in the refusal
  const char* description = "";  // for a person: what it refuses, and what it lets pass
  bool compat = false;           // has a pattern in compat mode, too
};

// A file that a command would use, as far as its words and redirections tell.
struct FileAccess {
  enum class Kind { read, write, remove };  // write: create, change or truncate
  Kind kind = Kind::read;
  // Without `.`, `..` and doubled slashes. Absolute where the working directory is known, else
  // relative to it; `~` and `~user` at its start are home directories. A pattern (glob) is kept.
  std::string path = {};
  bool recursive = false;  // all below it, too
  bool glob = false;
  std::size_t begin = 0;  // bytes of the script
  std::size_t end = 0;
};

// All that a policy can say of a script.
struct Judgement {
  Verdict verdict = {};
  std::vector<shell::Command> commands = {};  // as shell::parse() tells them, those in payloads too
  std::vector<FileAccess> files = {};
  // Whether all of it was understood; where not, `files` may miss some.
  bool complete = true;
};

// Compiled options. Immutable: copies share it, and any thread may use it without a lock.
class Policy {
 public:
  // Fails when a pattern of `allowed` or `blocked` is none, or a disabled rule is unknown. The
  // message names the configuration key (allowed_commands, blocked_commands, disabled_rules), the
  // value and the place in it.
  static Expected<Policy> create(const PolicyOptions& options);

  // Judges a script for the shell. In this order, and the first refusal stands: length, NUL bytes,
  // syntax, the sanitizer's rules, blocked patterns, allowed patterns (compat: no syntax, allowed
  // before blocked). Linear in the size of the script. `work_dir`, absolute, is where it will run;
  // with it, relative paths in the script are judged for what they are.
  Verdict check(std::string_view script, std::string_view work_dir = {}) const;

  // Judges a program that is started without a shell, by the script that would start the same: its
  // words quoted for a POSIX shell where they must be, one space between them. The verdict's range
  // refers to that text.
  Verdict check(const std::vector<std::string>& argv, std::string_view work_dir = {}) const;

  // As check(), and tells what was found, also when it is refused.
  Judgement judge(std::string_view script, std::string_view work_dir = {}) const;
  Judgement judge(const std::vector<std::string>& argv, std::string_view work_dir = {}) const;

  // The sanitizer's rules in the order of judgement.
  static std::vector<RuleInfo> rules();

 private:
  struct Compiled;
  explicit Policy(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

// =================================================================================================
// >>paths (declarations)                                                              needs: base
// Which directories commands may work in, which files they may delete.       [tests/paths.cpp]
// =================================================================================================

// What a root allows below it; each step includes the ones before.
enum class Permission {
  none,   // nothing: cuts a subtree out of a root that lies above it
  read,   // commands may work there, and the sandbox lets them read
  write,  // and change
};
const char* name(Permission permission) noexcept;

// A directory and what is allowed in it and below.
struct Root {
  std::string path = {};
  Permission permission = Permission::write;
};

struct PathOptions {
  // The directories commands may work in. Empty: every directory of the system, writable. A path
  // that is not absolute is looked up from the caller's current directory; `~` is not special.
  std::vector<Root> roots = {};
};

// A directory that was checked and opened. The descriptor is the directory itself, so nothing that
// happens to its name afterwards matters: enter it with fchdir(). It can do no more than that where
// the system has such descriptors (O_PATH on Linux).
struct OpenDirectory {
  std::string path = {};  // canonical: absolute, no symbolic link, no `.` or `..`, no final slash
  UniqueFd fd = {};
};

// The path with symbolic links followed and `.` and `..` taken out, starting from `base` when it is
// relative (empty: the caller's current directory). Like Python's Path.resolve(): what does not
// exist, or may not be looked at, is kept as it is written, so that a path can be judged before it
// exists. Fails for an empty path, a NUL byte, more than 40 symbolic links, or more than 4095 bytes
// of path and links together.
Expected<std::string> canonical_path(std::string_view path, std::string_view base = {});

// Whether `path` is `root` or lies below it, by whole names: /ws2 is not within /ws. Compares text
// alone, so both must be canonical.
bool is_within(std::string_view path, std::string_view root) noexcept;

// The allowed roots. Does not change after create(); any thread may use it.
//
// Names are compared byte by byte. Where the file system ignores case, another spelling of a root
// is outside of it; so a root that forbids a subtree of another should not be relied on there.
//
// It guards the directory in which a command starts and tells the sandbox what to grant. It does
// not hold a running command back: `cd /` is the sandbox's affair.
class PathRules {
 public:
  // Makes every root canonical now, so that a link planted later cannot move it. A root that is
  // missing, not a directory or not readable, or that is listed twice with different permissions,
  // is an error that names `allowed_paths` (`read_only` for one with Permission::read).
  static Expected<PathRules> create(const PathOptions& options);

  // Whether there are roots. Without, everything is allowed.
  bool restricted() const noexcept { return !roots_.empty(); }
  // Canonical, in the order given.
  const std::vector<Root>& roots() const noexcept { return roots_; }

  // The deepest root around a canonical path; null outside of all roots, and for a path that is not
  // canonical in form. Looks at the text only, not at the disk.
  const Root* deepest_root(std::string_view canonical_path) const noexcept;
  // What that root allows; none where there is no such root.
  Permission permission(std::string_view canonical_path) const noexcept;

  // The directory a command starts in: `work_dir`, looked up from `base` when it is relative, or
  // `base` itself when it is empty (an empty base is the caller's current directory). It must be
  // readable by the rules at least. The check and the opening cannot be driven apart: what is
  // opened has the path that was checked, or the call fails. The reference's texts, in its order:
  //   Path validation error: Path not in allowed directories: PATH
  //   Working directory does not exist: PATH
  //   Working directory is not a directory: PATH
  Expected<OpenDirectory> open_work_dir(std::string_view work_dir, std::string_view base) const;

 private:
  std::vector<Root> roots_ = {};
};

// Whether what has this canonical path is of a kind that tools make anew whenever they need it, so
// that nobody has to look at it before it goes. Judged by the names alone:
//   a directory of this name, and all below it: __pycache__ .pytest_cache .mypy_cache .ruff_cache
//     .tox .nox .next .nuxt node_modules
//   a directory of this name as a whole: build dist *.egg-info. A file in it counts for itself:
//     people keep sources in a `build`, too, and a whole project may lie below one.
//   a file of this name: .coverage .DS_Store Thumbs.db *.pyc *.pyo *.log *.swp *.swo *~
// With `root`, only names below it count: a project may lie in somebody's node_modules.
bool is_auto_generated(std::string_view path, std::string_view root = {});

// Remembers which files were read or created, so that others are not deleted unseen. Only regular
// files are guarded: a link or a pipe holds nothing to be read. Copies share one memory. All
// members are safe from any thread.
//
// Paths are absolute, and resolved when they are given: what was read through a link is the file it
// leads to, while what is deleted is the link.
//   Bounds: the last max_files files, of at most max_path_bytes in all; what was marked before them
//   must be read again.
class DeleteGuard {
 public:
  static constexpr std::size_t max_files = 65536;
  static constexpr std::size_t max_path_bytes = std::size_t{16} << 20;
  static constexpr std::size_t max_entries = 100000;  // looked at in one directory tree
  static constexpr std::size_t max_entry_bytes = std::size_t{64} << 20;  // of their paths in it

  struct Stats {
    std::size_t read_files = 0;     // read and not created
    std::size_t created_files = 0;  // created, read or not
    std::size_t total_tracked = 0;  // both
  };

  // A guard that never objects is made by not asking it. `roots` are the workspace and other
  // canonical directories, for is_auto_generated(): the deepest one around a path counts.
  explicit DeleteGuard(std::vector<std::string> roots = {});

  void mark_read(std::string_view path) const;
  void mark_created(std::string_view path) const;

  // Whether a file may be deleted: it does not exist, is no regular file, is auto-generated, or was
  // read or created. The reference's texts:
  //   Cannot delete 'PATH': File must be read before deletion. Use read (including
  //   read_multimodal_files) or diff tools to view the file first.
  // and for a list with several such files
  //   Cannot delete N unread file(s). Examples: A, B, C (and K more). Please read files before
  //   deletion using Read or read_multimodal_files.
  //   Errors: permission_denied; that of a path that cannot be resolved.
  Expected<void> can_delete(std::string_view path) const;
  Expected<void> can_delete_files(const std::vector<std::string>& paths) const;

  // Whether a directory may be deleted with all that it holds: it is auto-generated, or each file
  // in it and below may be deleted. Links are not followed.
  //   Cannot delete directory 'PATH': Contains N unread file(s). Examples: A, B, C (and K more).
  //   Please read files before deletion.
  //   Errors: permission_denied; limit when it holds more than max_entries entries or
  //   max_entry_bytes; that of a directory in it that cannot be read.
  Expected<void> can_delete_directory(std::string_view path) const;

  // Forgets everything.
  void clear() const;
  Stats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// =================================================================================================
// >>files (declarations)                                                          needs: base paths
// Files that a model reads, writes and lists, within the roots.              [tests/files.cpp]
// =================================================================================================

// The part of a file that is wanted.
struct FileRange {
  enum class Unit { lines, bytes };
  Unit unit = Unit::lines;
  std::uint64_t offset = 0;                      // from the start of the file
  std::optional<std::uint64_t> count = {};       // empty: as many as max_bytes holds
  std::size_t max_bytes = std::size_t{1} << 18;  // of what is returned
};

// What was read.
struct FileContent {
  std::string path = {};       // canonical
  std::string bytes = {};      // as they are in the file
  std::uint64_t size = 0;      // of the whole file, in bytes
  std::uint64_t begin = 0;     // where `bytes` begins in the file
  std::uint64_t lines = 0;     // in `bytes`, the last of which may lack its line end
  std::uint64_t next = 0;      // the offset, in the unit of the range, that goes on after this
  bool more = false;           // there is more after it
  bool cut_line = false;       // its last line is not whole: it did not fit
  bool binary = false;         // has a NUL or is not UTF-8
  std::string mime_type = {};  // of png, jpeg, gif, webp, by their first bytes; else empty
};

struct FileWrite {
  // Directories of the path that are missing are made.
  bool make_directories = true;
  // Only when there is no file of that name.
  bool only_new = false;
};

struct FileEntry {
  enum class Type { file, directory, link, other };
  std::string path = {};  // relative to the directory that was listed
  Type type = Type::file;
  std::uint64_t size = 0;     // bytes, of files
  std::string modified = {};  // UTC, RFC 3339
};
const char* name(FileEntry::Type type) noexcept;

struct FileList {
  std::string path = {};                // canonical
  std::vector<FileEntry> entries = {};  // by path, byte by byte; a directory before what is in it
  bool more = false;  // there are more than max_entries, or deeper ones that could not be read
};

// Files below the roots, for tools that need no command. Does not change after it is made; any
// thread may use it.
//
// A path is absolute or relative to `base`; symbolic links in it are followed to where they lead,
// and that place must lie in a root. What is opened has the path that was checked: each directory
// on the way is opened from the one before, following no link, so that neither `..` nor a link nor
// one that is exchanged meanwhile leads elsewhere. Only regular files are read and written, and
// nothing of /proc, where this program's own memory is.
//   Errors: permission_denied outside of the roots, and for a change where a root may only be read;
//   not_found; invalid_argument for what is no regular file, or no directory; limit; io.
class Files {
 public:
  static constexpr std::size_t max_entries = 2000;  // listed at once
  static constexpr std::size_t max_write = std::size_t{64} << 20;

  Files(PathRules rules, std::string base);

  // Memory: max_bytes of the range and a buffer; time: up to the end of the range.
  Expected<FileContent> read(std::string_view path, const FileRange& range = {}) const;

  // Replaces the file as a whole, or makes it, and returns its canonical path: at no moment is
  // there a file of that name with anything but the old or the new bytes, also after a crash (a
  // new file beside it is written, flushed to the disk and renamed). Rights, and the owner as far
  // as this process may give it, stay; a new file gets 0666 without the umask, a new directory 0777
  // likewise. The last name of a path may be a link: what it leads to is replaced.
  Expected<std::string> write(std::string_view path, std::string_view bytes,
                              const FileWrite& how = {}) const;

  // What a directory holds, `depth` levels deep; links are told and not followed.
  Expected<FileList> list(std::string_view path, std::size_t depth = 1) const;

 private:
  PathRules rules_;
  std::string base_;
};

// The docstring of a Python function, class or method in a source text, by reading it: nothing is
// imported or run. `name` is a dotted path from the top of the module ("f", "Class.method"); empty
// is the module itself. Cleaned as inspect.cleandoc does; empty when there is none. Of several
// definitions of a name the last one counts, as when it runs; those inside of `if`, `try` and
// `with` count, too.
//   Linear in the source.
//   Errors: not_found when there is no such function or class; parse when the source is not
//   understood, with the offset.
Expected<std::string> python_docstring(std::string_view source, std::string_view name);

// =================================================================================================
// >>environment (declarations)                                                   needs: base paths
// The variables, the venv and the prefix of a command.                 [tests/environment.cpp]
// =================================================================================================

struct EnvironmentOptions {
  // Variables of the host that commands see; a `*` at the end stands for any rest of the name.
  // Everything else stays with the host: tokens and keys live in variables nobody thinks of.
  std::vector<std::string> keep = {"PATH", "HOME",      "USER",     "LOGNAME",    "SHELL",
                                   "LANG", "LC_*",      "LANGUAGE", "TZ",         "TMPDIR",
                                   "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"};
  // Commands see every variable of the host, its secrets, too.
  bool keep_all = false;
  // Added, and stronger than what is kept; of two with one name the later counts.
  std::vector<std::pair<std::string, std::string>> set = {};
  // Variables whose values are secrets: kept like those of `keep` (no `*` here), and told in
  // secrets(). Errors are one that neither the host nor `set` has; a value that has fewer than 4
  // bytes, not counting line ends at its end, which could not be masked in the output; and more
  // than 1 MiB of values. A value that a command gives such a variable itself is no secret.
  std::vector<std::string> secret = {};
  // A Python virtual environment for every command. Its `bin` must exist.
  std::string venv_path = {};
  // Without prefix and venv_path: use the `.venv` of the command's work_dir, else the one of the
  // workspace. Its `bin` comes first in PATH, so what an agent puts there is what `ls` means from
  // then on: wanted for an agent's own project, to be switched off for one that is not trusted.
  bool auto_venv = true;
  // Where the second `.venv` is looked for. Empty: nowhere.
  std::string workspace = {};
  // Shell words that go before the whole command line, like "uv run". No newline.
  std::string command_prefix = {};
};

// What one command gets.
struct CommandEnvironment {
  std::vector<std::string> variables = {};  // NAME=value, each name once, in order of the names
  std::string prefix = {};                  // the command_prefix, or empty
  std::string venv = {};                    // the venv in use, or empty
};

// Computes what commands see. Does not change after create(); any thread may use it. Changes
// nothing in the host.
class Environment {
 public:
  // Copies the host's variables, so that a later setenv() of the host cannot race with a command;
  // like getenv(), it must not run while another thread changes them. Fails, and names the option,
  // for names that are empty or have a `=` or NUL in them, values with a NUL, secrets that are not
  // there or cannot be masked, a venv_path without a `bin` directory or with a `:` (which PATH
  // cannot hold), a prefix that is blank or has a newline or NUL.
  static Expected<Environment> create(const EnvironmentOptions& options);

  // The environment of a command in `work_dir`, which must be absolute (or empty: no PWD, no
  // `.venv` of its own). Looks at the disk each time, so a venv made later is found. Each of these
  // steps is stronger than the ones before:
  //   1. what is kept of the host, then `set`
  //   2. PATH (sbin and bin of /usr/local, /usr and /) and LANG=C.UTF-8 (without LC_ALL), when
  //      they are missing or empty
  //   3. PWD is the work_dir
  //   4. with a venv: VIRTUAL_ENV, its `bin` in front of the PATH so far, no PYTHONHOME
  //   5. `extra`, of the command itself
  // The venv is the first that applies: none with a command_prefix, which finds its own; the
  // venv_path (an error when it has gone); with auto_venv the `.venv` of the work_dir, then of the
  // workspace, each when it has a `bin` directory. Bad names in `extra` are errors. There is no
  // limit on the size; the kernel's (E2BIG) is told when the command fails to start.
  Expected<CommandEnvironment> resolve(
      std::string_view work_dir,
      const std::vector<std::pair<std::string, std::string>>& extra = {}) const;

  // The values of the secret variables, in the order of the option.
  const std::vector<std::string>& secrets() const noexcept { return secrets_; }

 private:
  Expected<std::string> find_venv(std::string_view work_dir) const;

  std::vector<std::pair<std::string, std::string>> variables_ = {};  // after steps 1 and 2
  std::vector<std::string> secrets_ = {};
  std::string venv_path_ = {};
  std::string workspace_ = {};
  std::string prefix_ = {};
  bool auto_venv_ = true;
};

// =================================================================================================
// >>sandbox (declarations)                                                      needs: base paths
// What the kernel holds a command to: one compiled object per policy.        [tests/sandbox.cpp]
// =================================================================================================

// How much of a sandbox must be there for a command to run.
enum class SandboxMode {
  off,          // none: commands have the rights of this process; only Limits apply
  best_effort,  // what this kernel offers; the report tells what is missing
  strict,       // all that was asked for, or nothing runs
};
const char* name(SandboxMode mode) noexcept;

// What commands can reach over sockets.
enum class Network {
  host,      // what this process can reach
  none,      // nothing: no socket of a network family can be made
  loopback,  // only each other within one command, on 127.0.0.1 and ::1: a network namespace
};
const char* name(Network network) noexcept;

// Bounds on what one command may use. 0: no bound of ours; never more than this process has itself.
// A command that reaches one is told in ProcessResult::limits_reached by the name of the member, as
// far as that can be seen from outside.
struct Limits {
  std::uint64_t cpu_time = 0;  // seconds of each process (RLIMIT_CPU), then SIGXCPU and SIGKILL
  // Bytes. Where a cgroup can be made: of all processes together, and the largest is killed.
  // Elsewhere of each process: its private writable memory (RLIMIT_DATA); allocations fail.
  std::uint64_t memory = 0;
  // Bytes of addresses in each process (RLIMIT_AS). Better left off: it counts what is reserved and
  // never used, of which Node takes 16 GiB for a WebAssembly, and Java 4 GiB.
  std::uint64_t address_space = 0;
  // Where a cgroup can be made: processes and threads of the command. Elsewhere those of the user
  // in all (RLIMIT_NPROC), which the kernel does not count for root: report() says when it is moot.
  std::uint64_t processes = 0;
  std::uint64_t open_files = 0;  // descriptors of each process (RLIMIT_NOFILE)
  std::uint64_t file_size = 0;   // bytes of each file that is written (RLIMIT_FSIZE), then SIGXFSZ
  // Bytes by which the file system of the first writable root may fill up during a command,
  // whoever fills it. Looked at four times a second; the command is killed.
  std::uint64_t disk = 0;
};

struct SandboxOptions {
  SandboxMode mode = SandboxMode::off;
  // Directories, or single files, with all below them. Absolute paths. A path that leads through a
  // symbolic link which a command could have put there is not granted; see create().
  std::vector<std::string> writable = {};
  std::vector<std::string> readable = {};
  // The PATH of the commands. The prefixes of its directories outside of the system (~/.cargo,
  // ~/.pyenv ...) become readable but for what looks like a secret, and so do the programs that
  // they link to, unless a link lies in a writable directory.
  std::string search_path = {};
  Network network = Network::host;
  // With Network::none and loopback: sockets with a path, which reach the services of this host
  // (docker.sock among them) as far as file permissions let them. Pairs of connected stream sockets
  // are always there.
  bool unix_sockets = false;
  // /dev/shm is writable, for Python's multiprocessing. It is shared with the whole host.
  bool shared_memory = false;
  // /dev/pts is theirs, so that they can make pseudo-terminals (script, tmux, expect). Other
  // terminals of the user are there as well, to be read from and written to.
  bool terminals = false;
  // A process table of the command's own: it sees and reaches no process of the host, and none of
  // its processes can outlive it whatever becomes of this program. An ordinary user needs user
  // namespaces for it; costs about 0.5 ms.
  bool pid_namespace = false;
  Limits limits = {};
};

// What is in force. Each name stands in exactly one of the two lists when the mode is not off:
//   filesystem         writes and reads only where granted (Landlock, Linux 5.13)
//   rename             files can be moved between directories (ABI 2)
//   truncate           files outside cannot be emptied (ABI 3, or the filter)
//   devices            no device can be made, and ioctl only on harmless ones (ABI 5)
//   signals            no signals to processes outside (ABI 6)
//   abstract_sockets   no connections to abstract sockets outside (ABI 6, or the network's)
//   system_calls       the filter (seccomp) refuses what an agent's command does not need
//   privileges         no_new_privs, and no capabilities
//   network            as in `network`
//   containment        nothing of a command outlives it, this program's SIGKILL included
//   pid_namespace, memory, processes and so on: what was asked for
struct SandboxReport {
  SandboxMode mode = SandboxMode::off;
  Network network = Network::host;  // what commands really have
  int landlock_abi = 0;             // of the kernel; 0: there is no Landlock
  std::vector<std::string> enforced = {};
  std::vector<std::string> missing = {};  // the name, then why: "signals: needs Landlock ABI 6"
};

// A policy, compiled once and applied in each child between clone and exec; the host itself is
// never restricted. Copies share it. Does not change after create(); any thread may use it.
//
// What it does not hold back, on Linux up to 7.0: reading names, sizes and times of files
// anywhere; chmod, utimes and setxattr on files that the user owns; with Network::host everything
// the network reaches. The README has the list, with an answer to each.
class Sandbox {
 public:
  // No sandbox and no limits.
  Sandbox() = default;

  // Builds the policy and tries it in a child that attempts what is forbidden: what only claims to
  // work counts as missing. In strict mode anything missing is an error (ErrorCode::unsupported)
  // that names all of it, and so is a grant that cannot be given; best_effort leaves the grant out.
  //   Errors in both: invalid_argument for a path that is not absolute or has a NUL in it, for a
  //   grant of `/` or of a directory above the system's, and for a limit that cannot be had.
  static Expected<Sandbox> create(const SandboxOptions& options);

  const SandboxReport& report() const noexcept;

  // Whether every granted path still is the file it was at create(). The kernel's rules hold on to
  // the files; a path that now leads elsewhere only means that something is wrong.
  Expected<void> check_grants() const;

 private:
  friend class Process;
  friend struct SandboxedSpawn;
  struct State;
  std::shared_ptr<const State> state_ = {};
};

// =================================================================================================
// >>process (declarations)                                                     needs: base sandbox
// Start a program, feed and capture it, wait for it, kill its tree.          [tests/process.cpp]
// =================================================================================================

// How a run ended.
enum class Outcome {
  exited,       // by itself; exit_code holds its status
  signaled,     // killed by a signal that was not sent for a timeout or a cancel; see `signal`
  timed_out,    // stopped at its deadline
  cancelled,    // stopped because somebody asked
  refused,      // never started: a policy or a path rule said no (set by executors only)
  not_started,  // never started: see system_error and step
  unknown,      // it ended, but how could not be learned: the host reaped it, on Linux before 6.15
};
const char* name(Outcome outcome) noexcept;

// The two output streams of a program.
enum class Stream { out, err };

// Bytes of one stream.
struct OutputCounts {
  std::uint64_t total_bytes = 0;    // the program wrote, as far as it was read
  std::uint64_t dropped_bytes = 0;  // of them not in the text
  std::uint64_t invalid_bytes = 0;  // of the kept ones: not UTF-8, replaced by U+FFFD
  std::uint64_t file_bytes = 0;     // in the spill file; less than total_bytes: it was cut
  std::uint64_t redactions = 0;     // secrets masked; the other counts are those of the masked text
};

// Keeps the beginning and the end of a stream of any length in at most `max_bytes` of memory (in
// blocks of up to 16 KiB, allocated as data arrives). Not thread-safe.
class Capture {
 public:
  struct Chunk {
    std::string text = {};     // well-formed UTF-8
    std::uint64_t next = 0;    // the cursor for the next call
    std::uint64_t missed = 0;  // bytes after the cursor that are no longer kept
  };

  // Half of max_bytes (rounded down) is kept from the start, the rest from the end.
  explicit Capture(std::size_t max_bytes);
  // So many bytes are kept from the start (at most max_bytes); with 0 it is a ring.
  Capture(std::size_t max_bytes, std::size_t head_bytes);
  void add(std::string_view bytes);
  std::uint64_t total_bytes() const noexcept { return total_; }

  // What is kept, as well-formed UTF-8: each maximal invalid subpart is one U+FFFD, no character is
  // cut in two. When bytes were dropped, this line stands in their place:
  //   "\n... (truncated, exceeded <max_bytes> bytes: <n> bytes omitted) ...\n"
  // Sets the first three of `counts`, when given.
  std::string text(OutputCounts* counts = nullptr) const;

  // What came after the first `cursor` bytes, with the line "\n... (<n> bytes omitted) ...\n" where
  // some are missing. A character that has not arrived whole waits for the next call, unless the
  // stream has `ended`. Start with cursor 0, then pass Chunk::next.
  Chunk read(std::uint64_t cursor, bool ended) const;

  // Calls `use` with the kept bytes from offset `begin` to `end` of the stream, piece by piece.
  void visit(std::uint64_t begin, std::uint64_t end, FunctionRef<void(std::string_view)> use) const;

 private:
  friend class Process;
  static constexpr std::size_t block_size = 16384;
  bool keeps_only_end(std::size_t size) const noexcept;
  char* room(std::uint64_t offset, std::size_t& size);
  void grow_first(std::size_t size);
  std::size_t position(std::uint64_t offset) const noexcept;
  std::size_t contiguous(std::size_t position) const noexcept;
  std::uint64_t tail_begin() const noexcept;
  std::string bytes(std::uint64_t begin, std::uint64_t end) const;

  std::size_t max_bytes_ = 0;
  std::size_t head_size_ = 0;
  std::uint64_t total_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_ = {};
  std::size_t first_size_ = 0;  // of the first block, which grows: most streams are short
};

// Masks secrets in a stream that comes in pieces. Every byte that is part of an occurrence goes;
// occurrences that overlap become one mask, those that only touch one each. Line ends at the end of
// a secret do not count as part of it: `echo` prints them, `$(...)` does not. Linear in the bytes,
// whatever the secrets are (Aho-Corasick). Takes about 20 bytes of memory for each byte of all
// secrets, shared by copies, and holds back at most the longest one. Not thread-safe; a copy goes
// on with a stream of its own.
class Redactor {
 public:
  static constexpr std::size_t min_size = 4;  // shorter ones are left out: they would hit by chance
  // Of all secrets together. Who takes secrets as an option refuses more; a Redactor made with more
  // works (up to 4 GiB) and takes the memory.
  static constexpr std::size_t max_total = std::size_t{1} << 20;
  static constexpr std::string_view mask = "[redacted]";

  // Masks nothing.
  Redactor() = default;
  explicit Redactor(const std::vector<std::string>& secrets);
  bool empty() const noexcept { return !table_; }

  // What is known of the stream so far that was not returned before: `bytes`, after what was held
  // back because a secret might have begun there. No byte is held back longer than that. Valid
  // until the next call.
  std::string_view add(std::string_view bytes);
  // The rest, at the end of the stream. What is added later begins another.
  std::string_view finish();
  // Masks returned so far.
  std::uint64_t count() const noexcept { return count_; }

  // A whole text at once.
  std::string redact(std::string_view text) const;

 private:
  struct Table;
  struct Span {
    std::uint64_t begin;
    std::uint64_t end;
  };
  void scan(std::string_view piece);
  void found(std::uint64_t begin, std::uint64_t end);
  void settle(std::uint64_t limit);
  void give(std::uint64_t end);

  // Offsets count bytes from the start of the stream.
  std::shared_ptr<const Table> table_ = {};
  std::size_t state_ = 0;           // of the automaton
  std::uint64_t position_ = 0;      // bytes taken
  std::uint64_t decided_ = 0;       // bytes before this one were returned or masked
  std::uint64_t masked_until_ = 0;  // the end of what the last returned mask stands for
  std::vector<Span> spans_ = {};    // to be masked, in order, not overlapping
  std::size_t first_span_ = 0;      // those before it are done
  std::string held_ = {};           // the last bytes taken, all that are not decided among them
  std::string out_ = {};
  std::uint64_t count_ = 0;
};

struct ProcessOptions {
  // Program and arguments. A program without a slash is searched in the PATH of `environment`
  // (without one: /bin:/usr/bin), as execvp(3) does, scripts without a #! line included.
  std::vector<std::string> argv = {};
  // NAME=value; exactly this, nothing is inherited. CODEEXEC_RUN_ID is added: the processes of a
  // run that went elsewhere are found by its value.
  std::vector<std::string> environment = {};
  std::string work_dir = {};  // empty: the caller's
  int work_dir_fd = -1;       // an open directory, borrowed during the start; wins over work_dir
  int pass_fd = -1;           // borrowed during the start; the program gets it as descriptor 3
  // Fed to standard input, which is then closed. Empty: standard input is /dev/null.
  std::string input = {};
  bool keep_input_open = false;  // for Process::write(), until Process::close_input()
  bool merge_streams = false;    // one pipe for both streams: true order, all of it in `out`

  // What the program is held to. With one that is not off, a supervisor stands between the host and
  // the program (Linux on x86_64 and aarch64): it adopts whatever the program leaves behind, and
  // kills all of it when the program ends, and when the host does. It is a process of its own on
  // the host's memory, so that `ps` shows it under the name codeexec with the host's size.
  Sandbox sandbox = {};
  // The same supervisor without a sandbox: nothing of the program outlives it or the host, but for
  // what became another user's (by sudo) or killed the supervisor. Where there can be none (another
  // system, an emulator, Linux before 5.2), it has no effect.
  bool supervised = false;
  // Values that are masked: each occurrence in the output, in the spill file and in what on_output
  // is given becomes [redacted], also when it comes in pieces; see Redactor. Those of fewer than
  // Redactor::min_size bytes are not; with more than Redactor::max_total nothing is started.
  std::vector<std::string> secrets = {};

  std::size_t max_output = 1 << 20;  // bytes kept per stream, see Capture
  bool keep_end_only = false;        // all of them from its end: for who follows the output
  // When not empty: a stream that outgrows max_output goes whole into a new file in this directory
  // (mode 0600, name codeexec-<random>.out or .err), which is the caller's to delete.
  std::string spill_dir = {};
  std::uint64_t max_spill = 1 << 30;  // bytes per file; what exceeds it is counted, not written

  // Zero or less: stopped at once. Counted from the start of the program.
  std::chrono::milliseconds timeout = no_limit;
  std::chrono::milliseconds kill_grace = std::chrono::milliseconds(500);  // SIGTERM to SIGKILL
  // Once the program has ended, its pipes are read until they are closed everywhere, or `drain`
  // passes without data, or `max_drain` passes in all.
  std::chrono::milliseconds drain = std::chrono::milliseconds(100);
  std::chrono::milliseconds max_drain = std::chrono::milliseconds(1500);
  // Leave the processes that the program started in the background alive when it ends by itself,
  // and do not wait for their output. Otherwise they are killed, and always under a supervisor.
  bool keep_background = false;

  std::optional<CancelToken> cancel = {};  // stops the run like a timeout
  // These are called in the thread that waits: the caller's in run_process(), this library's in
  // Process. They must return soon, and must not wait for or destroy their own Process.
  // Raw bytes, as they arrive; but what may be the beginning of a secret waits for its end.
  Function<void(Stream, std::string_view)> on_output = {};
  std::chrono::milliseconds heartbeat = no_limit;
  Function<void()> on_heartbeat = {};  // every `heartbeat` while it runs
};

// What became of a program.
struct ProcessResult {
  Outcome outcome = Outcome::not_started;
  // 0 to 255 when the program left by itself (after a SIGTERM of ours, too), else -1.
  int exit_code = -1;
  int signal = 0;  // that ended it, or 0
  std::string out = {};
  std::string err = {};
  OutputCounts out_counts = {};
  OutputCounts err_counts = {};
  std::string out_file = {};  // the spill file, when one was made
  std::string err_file = {};
  bool pipe_held = false;  // reading stopped although somebody still held a pipe open
  std::chrono::microseconds wall_time{0};
  std::chrono::microseconds cpu_time{0};  // user and system, of the program and what it waited for
  std::uint64_t peak_memory = 0;          // bytes: resident set of the largest process
  int pid = -1;                           // in a process table of its own: as the host sees it
  // Names of the Limits that the run came up against, as far as can be told from outside.
  std::vector<std::string> limits_reached = {};
  int system_error = 0;  // of a failed start: errno
  // Of a failed start: setup, start, stdio, work_dir, pass_fd, sandbox or exec.
  std::string step = {};
  std::string message = {};  // one line for a person when something did not go as asked
  bool succeeded() const noexcept { return outcome == Outcome::exited && exit_code == 0; }
};

// Runs one program to its end. Blocks the calling thread only, and needs no other thread. Safe from
// any thread; a pthread_cancel() is acted upon after the run. The caller's signal handlers, masks,
// SIGCHLD disposition and other children are neither used nor changed.
//
// The program runs in a session of its own (no terminal), with an empty signal mask, all signals at
// their defaults, no core dumps (RLIMIT_CORE 0) and no descriptors but 0, 1, 2 and pass_fd's 3.
// A timeout or cancel sends SIGTERM and SIGCONT to its process group and to those of its
// descendants that left the group, then SIGKILL after kill_grace. On Linux, SIGKILL then also goes
// to every process that is still in its session, has its CODEEXEC_RUN_ID or holds its pipes. When
// the program ends by itself, its group is killed and, when the pipes are not closed by that, the
// same processes are. With a supervisor all that the program left is killed in each case. One that
// does not die within two seconds is given up and told in `message`.
ProcessResult run_process(const ProcessOptions& options);

// A running program. All started ones share one thread of this library, which begins with the first
// Process and has ended when the last one's destructor returns. Members are safe from any thread
// (except moving and destroying); a copy made by fork(2) of the host does nothing.
class Process {
 public:
  // `on_end`, when given, is called once in this library's thread with the final result, before
  // done() is true and wait() returns. When the start failed it is not called; `failure`, when
  // given, then holds all that is known, and the error the same errno and message.
  static Expected<Process> start(ProcessOptions options,
                                 Function<void(const ProcessResult&)> on_end = {},
                                 ProcessResult* failure = nullptr);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  // Kills the process group at once, with SIGKILL, and waits for the end.
  ~Process();

  int pid() const noexcept;
  bool done() const;
  // True when it has ended within that time.
  bool wait_for(std::chrono::milliseconds time) const;
  // The reference is valid as long as this object.
  const ProcessResult& wait() const;
  // Asks it to stop, as a timeout does, and returns at once.
  void cancel() const;
  // Sends a signal to the process group. False when it has ended.
  bool signal(int number) const;

  // Queues bytes for standard input (keep_input_open) and returns at once. ErrorCode::limit when
  // more than 1 MiB would wait to be read; ErrorCode::io and EPIPE when the program or
  // close_input() has closed it.
  Expected<void> write(std::string_view bytes) const;
  // End of input, after everything that was queued.
  void close_input() const;

  using Chunk = Capture::Chunk;
  // What the stream brought since `cursor`, as far as it is still kept; see Capture::read().
  Chunk read(Stream stream, std::uint64_t cursor) const;

 private:
  struct State;    // one child: a state machine without a thread
  struct Reactor;  // the thread that drives all states of start()
  friend ProcessResult run_process(const ProcessOptions& options);
  Process(std::shared_ptr<State> state, std::shared_ptr<Reactor> reactor) noexcept;
  void end() noexcept;

  std::shared_ptr<State> state_ = {};
  std::shared_ptr<Reactor> reactor_ = {};  // the last handle's end is the thread's end
};

// =================================================================================================
// >>executor (declarations)  needs: base json regex policy paths environment sandbox process
// The one gate that every command passes, and running on this host.        [tests/executor.cpp]
// =================================================================================================

// One command: a script for the shell, or a program with arguments that no shell ever sees.
struct Command {
  std::string script = {};             // for the executor's shell; any length
  std::vector<std::string> argv = {};  // when not empty: started directly; `script` must be empty
  std::string work_dir = {};           // relative to the workspace; empty: the workspace
  std::optional<std::chrono::milliseconds> timeout = {};  // empty: the executor's; capped by it
  std::vector<std::pair<std::string, std::string>> environment = {};  // wins over everything else
  std::string input = {};                  // for standard input; empty: /dev/null
  bool keep_input_open = false;            // start() only: Execution::write() may follow
  bool merge_streams = false;              // both streams in `out`, in their true order
  bool keep_end_only = false;              // of long output: the end, and nothing of the start
  std::optional<CancelToken> cancel = {};  // ends the command when cancelled, from any thread
  // Runs beside other work, as a server or a long training does: without a timeout of its own it
  // has none, and max_timeout does not apply to it. It does not survive the host.
  bool background = false;
  // The shell that reads `script`: a program that knows -c. Empty: the executor's.
  std::string interpreter = {};
  // What `argv` is given to run in a file, for the audit record. No policy reads it.
  std::string code = {};

  // Live output as raw bytes, and a sign of life every `heartbeat`. Called by the thread that
  // drives the command: the caller of run(), or the library's event thread after start(). They
  // must not throw, block for long or use the same Execution.
  Function<void(Stream, std::string_view)> on_output = {};
  std::chrono::milliseconds heartbeat = no_limit;
  Function<void()> on_heartbeat = {};

  // Called once, by the same thread, when a command that start() has started has ended and was
  // recorded, just before done() is true and wait() returns. Not called when it was refused or did
  // not start.
  Function<void()> on_end = {};

  std::string tool = "run";  // who asks, for the audit record

  static Command shell(std::string script);
  static Command program(std::vector<std::string> argv);
};

// What happened to a command: what its process did, and what the gate decided.
struct Result : ProcessResult {
  // Secrets are masked in all text here. The command as it was given; an argv is shown quoted for
  // the shell.
  std::string command = {};
  std::string work_dir = {};  // canonical; as given when the command was refused before
  // Of a refusal: a policy rule, "work_dir", "timeout", "command", "read-only" or "delete-guard".
  std::string rule = {};
  std::size_t rule_begin = 0;  // the offending bytes of the command, where the rule knows them
  std::size_t rule_end = 0;
  std::chrono::milliseconds timeout = no_limit;       // the deadline that was in force
  std::string venv = {};                              // the virtual environment in use, or empty
  std::shared_ptr<const SandboxReport> sandbox = {};  // what was in force; null: refused before
  // Files that run later and outside of the sandbox, by the user's own tools, and that changed
  // during the command: canonical paths. See LocalOptions::watch_files.
  std::vector<std::string> changed_files = {};
  std::vector<std::string> notes = {};  // what else the caller should know, a sentence each

  // One line: how it ended, how long it took, how much it wrote.
  std::string summary() const;
};

// One line of the audit log: what was asked, what was decided, how it ended.
struct AuditRecord {
  std::string time = {};  // when it was asked: UTC, RFC 3339 with milliseconds
  std::string agent_id = {};
  std::string tool = {};
  std::string code = {};           // what a program was given to run in a file; secrets masked
  const Result* result = nullptr;  // valid during the callback

  // {"time","agent_id"?,"tool","command","command_bytes"?,"code"?,"code_bytes"?,"work_dir",
  //  "allowed","rule"?,"rule_begin"?,"rule_end"?,"message"?,"outcome","exit_code","signal"?,
  //  "duration_ms","cpu_ms","stdout_bytes","stderr_bytes","sandbox"?,"limits_reached"?,
  //  "changed_files"?,"redactions"?}.
  // A command or code longer than 16 KiB is cut, and its whole length told in command_bytes or
  // code_bytes. rule_begin and rule_end are the offending bytes of the whole command, where the
  // rule knows them. sandbox is there when its mode is not off: {"mode","network","missing"?}, of
  // which missing is what could not be had. redactions counts the secrets that were masked in the
  // output.
  Json to_json() const;
};

// A handle on a started command. Copies share it. All members are safe from any thread. When the
// last copy goes away the command is killed.
class Execution {
 public:
  bool done() const;
  bool wait_for(std::chrono::milliseconds time) const;  // true when it is done
  Result wait() const;                                  // blocks until it is done
  void cancel() const;                                  // outcome becomes Outcome::cancelled
  int pid() const;                                      // -1 when it never started
  // What was known when it was started: command, work_dir, timeout, venv, sandbox and notes. Of a
  // command that never started: all there is. Valid as long as the handle.
  const Result& asked() const noexcept;

  // Standard input, for commands with keep_input_open. Bytes are queued, at most 1 MiB of them.
  Expected<void> write(std::string_view bytes) const;
  void close_input() const;

  // What a stream printed since `cursor` (0 at first), as far as it is still kept; see
  // Capture::read().
  Capture::Chunk read(Stream stream, std::uint64_t cursor) const;

 private:
  friend class Executor;
  struct State;
  std::shared_ptr<State> state_ = {};
};

// What every executor needs to know. All of it is checked by create(), which names what is wrong.
struct ExecutorOptions {
  std::string workspace = {};  // where commands start; empty: the directory of the caller, now
  // Where a work_dir may lie; empty: anywhere. A script that would change what lies in a root that
  // is not writable is refused, as far as its words tell the files it changes.
  std::vector<Root> roots = {};
  PolicyOptions policy = {};
  // Refuses scripts that delete files which no command before them read or made; see DeleteGuard.
  // (A move counts as a deletion of what is moved.)
  bool delete_guard = false;
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  std::chrono::milliseconds max_timeout = std::chrono::hours(1);
  std::chrono::milliseconds kill_grace = std::chrono::milliseconds(500);  // SIGTERM to SIGKILL
  std::size_t max_output = std::size_t{1} << 20;  // bytes kept per stream: its head and its tail
  std::string spill_dir = {};   // when set: a stream that outgrows max_output goes to a file here
  std::string agent_id = {};    // for the audit log
  std::string audit_file = {};  // one line of JSON per command, appended; made with mode 0600
  Function<void(const AuditRecord&)> on_audit = {};  // called in the thread that ends the command
};

// Runs commands: judges each by policy and path rules, starts it, bounds it and records it. This is
// the seam between what is asked and where it happens. Safe from any thread.
//
// The first refusal stands: of the policy, the timeout, the work_dir, read-only roots, the delete
// guard, in this order. The last two know of a command what Policy::judge() tells of its files:
// what is spelled out in it, not what only a run could tell, nor what a program does by itself.
// With either of them, a command that cannot be read is refused in compat mode, too.
class Executor {
 public:
  virtual ~Executor();

  // Runs to the end and blocks the calling thread only, at most for the timeout and
  // kill_grace + 3 s. What the command did, and a refusal, are in the Result.
  Result run(const Command& command) const;
  Result run(std::string_view script) const;

  // Starts and returns at once; when it was refused or could not start, the handle is done already.
  Execution start(const Command& command) const;

  // Judges without running: the Result of a refusal, or outcome not_started and an empty rule.
  Result check(const Command& command) const;

  // The same verdict, with all that was found in the command.
  Judgement judge(const Command& command) const;

  // What the delete guard remembers, for tools that read or make files by other means than a
  // command; null when it is off.
  const DeleteGuard* delete_guard() const noexcept;

  const std::string& workspace() const noexcept;
  const PathRules& paths() const noexcept;
  // Which files the tools may read and write that do so by other means than a command: what a
  // command may, as far as roots can say it.
  virtual PathRules file_rules() const;
  // Masks the secrets of the commands.
  std::string redact(std::string_view text) const;
  // Puts on the audit log what was done by other means than a command. Masks secrets in `result`; a
  // failure to write the log goes into its notes.
  void record(Result& result, const std::string& tool) const;
  std::chrono::milliseconds timeout() const noexcept;
  std::chrono::milliseconds max_timeout() const noexcept;

  // What a model should know of the place: where commands may write, what they reach. Sentences, or
  // nothing.
  virtual std::string describe_place() const;

 protected:
  struct Gate;
  struct Admission;  // a command that passed the gate, with all that must live until its start
  struct Ending;     // what is to be done when a command has ended
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
  // `secrets` are masked in what is told of a command.
  Expected<void> set_up(const ExecutorOptions& options,
                        const std::vector<std::string>& secrets = {});

 private:
  // Turns an admitted command into the process that carries it out.
  virtual Expected<void> place(const Command& command, Admission& admission) const = 0;
  // The home directory that `~` means in a command; empty when it is not known.
  virtual std::string home(const Command& command, std::string_view work_dir) const;
  Admission screen(const Command& command, Judgement& judgement, bool in_full) const;
  void guard_files(const Command& command, const Judgement& judgement, Admission& admission) const;
  Admission admit(const Command& command) const;
  std::shared_ptr<const Gate> gate_ = {};
};

// A directory of the commands' own that HOME and TMPDIR lead to, in place of the user's with its
// keys and tokens; made with mode 0700 in the TMPDIR of this process, or /tmp. TMPDIR is `tmp` in
// it. Both are stronger than what is kept of the host, and weaker than EnvironmentOptions::set and
// the variables of a command. What a program leaves that is killed, the next one removes.
enum class PrivateHome {
  off,  // HOME and TMPDIR as the environment has them
  // A new one for each command, removed with all that is in it when run() returns, or with the last
  // handle of a started one. All lie in one directory that commands may write to, so that those
  // that run at the same time can reach each other's.
  command,
  executor,  // one for all, removed with the last copy of the executor: caches and settings stay
};
const char* name(PrivateHome home) noexcept;

struct LocalOptions : ExecutorOptions {
  EnvironmentOptions environment = {};  // its `workspace` is taken from the executor's
  // Its `writable`, `readable` and `search_path` are added to: the roots by their permission (the
  // workspace, when there are none), venv_path and skills_dir, the private home, the PATH.
  SandboxOptions sandbox = {};
  // Without a sandbox it has no effect.
  PrivateHome private_home = PrivateHome::executor;
  // Nothing of a command outlives it, nor this program, however that ends: see
  // ProcessOptions::supervised. So it is in any case in a sandbox, and for Command::background.
  bool supervised = true;
  // In a sandbox: notice when a command changes what the user's own tools will run, directly in the
  // work_dir and each writable root (of 64 roots at most). Changes are told in
  // Result::changed_files, 100 at most; they are not prevented. Watched are
  //   .git, when it becomes another one or a file; in it config, config.worktree, commondir and,
  //     but for samples, what is in hooks
  //   what is in .husky, .vscode, .idea and .ssh (256 entries of each, not below them)
  //   .envrc .gitconfig .npmrc .yarnrc .yarnrc.yml .config/git/config
  //   .profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshenv .zprofile
  //   .zshrc .zlogin .zlogout .kshrc .cshrc .tcshrc .login .config/fish/config.fish
  // A change is told by what the kernel keeps of a file: its identity, size, rights and times.
  bool watch_files = true;
  std::string shell = "/bin/sh";  // any shell that knows -c
  // Linked as .agent/skills in the workspace before the first command, unless something of that
  // name is there already. Empty: no link.
  std::string skills_dir = {};
};

// Runs commands on this host, with the rights of this process or in a sandbox.
class LocalExecutor : public Executor {
 public:
  // PolicyOptions::enable_sudo has no effect: it is for containers, whose root is not the host's.
  //   Errors of the sandbox, besides those of Sandbox::create(): `/` as a root or as the workspace
  //   that commands may write to; in strict mode, a root that the kernel cannot hold a command to;
  //   with mode off, a network other than host and a pid_namespace, which only a sandbox can have.
  static Expected<LocalExecutor> create(const LocalOptions& options);

  // What is in force. To Sandbox::report() it adds, as missing, roots that the kernel cannot hold a
  // command to, because they lie in a root that allows more; the policy still knows them:
  //   forbidden_roots    roots with Permission::none
  //   read_only_roots    roots with Permission::read in a writable one
  const SandboxReport& sandbox_report() const noexcept;
  std::string describe_place() const override;
  PathRules file_rules() const override;

 private:
  struct Place;
  LocalExecutor() = default;
  static Expected<void> set_up_sandbox(const LocalOptions& options, const std::vector<Root>& roots,
                                       const std::string& workspace, Place& place);
  void confine(Admission& admission) const;
  Expected<void> place(const Command& command, Admission& admission) const override;
  std::string home(const Command& command, std::string_view work_dir) const override;
  std::shared_ptr<const Place> place_ = {};
};

// =================================================================================================
// >>shells (declarations)                                        needs: base regex process executor
// Commands that run in the background.                                       [tests/shells.cpp]
// =================================================================================================

struct ShellOptions {
  std::size_t max_running = 10;
  std::size_t max_lines = 10000;                     // of each stream, told at once: the last ones
  std::chrono::milliseconds timeout = no_limit;      // of commands that bring none
  std::chrono::milliseconds max_timeout = no_limit;  // longer ones are cut down to it
  // How many shells that have ended are still known, and how long; the oldest go first. Eviction
  // happens when another one starts or is asked for.
  std::size_t max_finished = 100;
  std::chrono::milliseconds keep_finished = std::chrono::hours(1);
};

enum class ShellState {
  running,
  stopped,  // left by itself with exit code 0
  failed,   // left with another one, ran out of time, or how it ended could not be learned
  killed,   // by a signal, or because kill() asked; also when it then left by itself
};
const char* name(ShellState state) noexcept;

struct ShellStatus {
  std::string id = {};  // "shell_" and 16 hexadecimal digits of randomness: who knows it may use it
  ShellState state = ShellState::running;
  // While it runs: what is known so far, outcome `unknown`. Afterwards all but out and err, which
  // BackgroundShells::read() gives.
  Result result = {};
  std::string start_time = {};            // UTC, RFC 3339 with milliseconds
  std::chrono::milliseconds duration{0};  // until now, or its end
};

// Where a reader of the output stands: bytes of the two streams. Cursors only grow.
struct ShellCursor {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

// What a shell printed after a cursor. What fell out of the ring, or is more than max_lines before
// the end, is counted in Chunk::missed; the text then begins with the line that tells so.
struct ShellOutput {
  ShellStatus status = {};
  Capture::Chunk out = {};
  Capture::Chunk err = {};
};

struct ShellWait {
  ShellCursor since = {};
  // Until a line of either stream after `since` matches (also one that has no end yet), or it has
  // ended. Of a line, 4 KiB are looked at at a time. Empty: until it has ended.
  std::optional<Regex> pattern = {};
  std::chrono::milliseconds time = no_limit;
  std::optional<CancelToken> cancel = {};
};

enum class ShellWaitEnd { matched, ended, timed_out, cancelled };
const char* name(ShellWaitEnd end) noexcept;

// What became of a command that was given some time in the foreground.
struct ForegroundRun {
  bool ended = false;  // `result` has everything, and the shell is not known any more
  Result result = {};
  ShellStatus shell = {};  // otherwise it goes on as this one
};

// Runs commands that pass the executor's gate and are not waited for. Each has both streams read
// all the time, into rings of the executor's max_output bytes; no thread and no polling for any.
// All members are safe from any thread. The executor is borrowed: it must live longer.
//   Errors of all that take an id: not_found for one that is not known (any more).
class BackgroundShells {
 public:
  explicit BackgroundShells(const Executor& executor, ShellOptions options = {});
  // Kills what runs, and waits for that. When this program ends in another way, however it does,
  // all of it is killed, too.
  ~BackgroundShells();
  BackgroundShells(const BackgroundShells&) = delete;
  BackgroundShells& operator=(const BackgroundShells&) = delete;

  // Starts and returns at once. keep_input_open is as the command says it; background and
  // keep_end_only are set.
  //   Errors: limit when max_running are running. When the gate refuses the command, or it does not
  //   start, permission_denied or another one, and `failure`, when given, holds its Result.
  Expected<ShellStatus> start(const Command& command, Result* failure = nullptr);

  // Runs a command in the foreground, and leaves it to itself when it has not ended after `time`.
  // When there is no room for another running shell then, it stays in the foreground. A refusal is
  // a result, too.
  ForegroundRun run(const Command& command, std::chrono::milliseconds time);

  Expected<ShellStatus> status(std::string_view id) const;
  std::vector<ShellStatus> list() const;  // in the order of their start

  // Costs time and memory in proportion to what is new, and at most to what is kept.
  Expected<ShellOutput> read(std::string_view id, ShellCursor since = {}) const;

  // Blocks the calling thread only. Time linear in what is printed meanwhile.
  Expected<ShellWaitEnd> wait(std::string_view id, const ShellWait& until = {}) const;

  // For commands with keep_input_open. Bytes are queued, at most 1 MiB of them.
  //   Errors: io when it has ended or closed its input; limit.
  Expected<void> write(std::string_view id, std::string_view bytes) const;
  Expected<void> close_input(std::string_view id) const;

  // Ends it as a timeout does, with everything it has started, and returns when it has ended: after
  // the executor's kill_grace and 3 seconds at the latest. True when it was running.
  Expected<bool> kill(std::string_view id) const;

 private:
  struct Shell;
  struct State;
  std::unique_ptr<State> state_;
};

// =================================================================================================
// >>code (declarations)                                            needs: base paths files executor
// Code in a language is run as a command.                                    [tests/code.cpp]
// =================================================================================================

struct CodeBlock {
  std::string language = {};  // as a fence names it; case does not matter
  std::string code = {};
};

// The fenced code blocks of a Markdown text (CommonMark 0.31: fences of three or more ` or ~,
// indented by up to three spaces, in lists and quotes not), in their order. The language is the
// first word after the fence; without one it is inferred, see infer_language(). A block that has no
// closing fence ends with the text. Linear.
std::vector<CodeBlock> extract_code(std::string_view markdown);

// "sh" for what begins like a command line of python, pip or another common tool, or with #! and a
// shell; "python" for what looks like Python by its first words; otherwise empty.
std::string infer_language(std::string_view code);

// A language that run_code() knows.
struct CodeLanguage {
  std::vector<std::string> names = {};  // in lower case; the first one is the canonical one
  std::string extension = {};           // of its files, without the dot
  // The program and its arguments; the path of the file is added. Empty: files of it are saved and
  // not run.
  std::vector<std::string> program = {};
  // The program is a shell that knows -c: the code is a script, which the policy reads.
  bool shell = false;
};

// sh (shell), bash, python (py, python3), javascript (js, node); html and css, which are saved
// only.
const std::vector<CodeLanguage>& default_languages();

struct CodeOptions {
  std::vector<CodeLanguage> languages = default_languages();
  // What the commands are besides: work_dir, timeout (of each block), environment, input, cancel,
  // on_output and so on. Its script and argv are not used.
  Command command = {};
};

struct CodeResult {
  // Of the blocks that were run or refused, in order; it stops at the first that did not succeed.
  // Result::command is the command line that was run, or the script.
  std::vector<Result> results = {};
  // The file of each block that was saved, canonical; the first is the reference's code_file.
  std::vector<std::string> files = {};
  // Why a block was not run, when no Result says so: an unknown language, a file name outside of
  // the workspace. Empty otherwise.
  std::string message = {};
  // All blocks have succeeded (there was at least one).
  bool succeeded = false;
};

// Runs blocks of code one after another, each as a command of its own that passes the executor's
// gate, is sandboxed and audited like any other. A shell's code is judged by the policy as the
// script that it is. Other languages are not read by any policy: of those it sees the command line
// alone (`python3 FILE`), and only the sandbox holds what the code does.
//
// Code goes through a file, never through quoting. A first line that is a comment (#, //, /* */ or
// <!-- -->) names it when it has the word `filename:` and a path, or is nothing but a path with the
// extension of the language: relative to the work_dir, within what may be written there. Any other
// comment is just a comment. Without a name the file is tmp_code_<16 hexadecimal digits of its
// content>.<extension> in the work_dir. Files stay. Executor::file_rules() tells where they may be.
CodeResult run_code(const Executor& executor, const std::vector<CodeBlock>& blocks,
                    const CodeOptions& options = {});
CodeResult run_code(const Executor& executor, std::string_view language, std::string_view code,
                    const CodeOptions& options = {});

// =================================================================================================
// >>mcp (declarations)                                                          needs: base json
// A Model Context Protocol server over stdio, for any tools.                     [tests/mcp.cpp]
// =================================================================================================

// The protocol revisions 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25 (opened by `initialize`)
// and 2026-07-28 (stateless) are spoken from one process, decided for each message by itself.
namespace mcp {

// One block of a tool's answer. `block` is the protocol's ContentBlock object; text in it that is
// not UTF-8 is repaired with U+FFFD when it is sent.
struct Content {
  Json block = {};

  static Content text(std::string text);
  static Content image(std::string_view bytes, std::string mime_type);
  static Content audio(std::string_view bytes, std::string mime_type);
  // An embedded resource: its text, or its bytes (sent as base64).
  static Content resource_text(std::string uri, std::string mime_type, std::string text);
  static Content resource_blob(std::string uri, std::string mime_type, std::string_view bytes);
  // A reference the client may fetch by itself. Empty strings are left out.
  static Content resource_link(std::string uri, std::string name, std::string mime_type = {},
                               std::string description = {});
  // Any other block, as it is.
  static Content raw(Json block);
};

// What a tool has to say. `is_error` tells the model that the tool failed; the content says why.
struct ToolResult {
  std::vector<Content> content = {};
  std::optional<Json> structured = {};  // structuredContent; required of tools with output_schema
  bool is_error = false;
  Json meta = {};  // `_meta`: an object, or null for none. Prefix own keys with your domain.

  static ToolResult text(std::string text);
  static ToolResult error(std::string message);
  // The value, and the same value as a text block for clients that show only text.
  static ToolResult with_structured(Json value);
};

// A JSON-RPC error in place of a result. The model does not see it; the client's program does.
struct RpcError {
  int code = -32603;
  std::string message = {};
  std::optional<Json> data = {};
};

// What a handler returns: a ToolResult or an RpcError.
class ToolReply {
 public:
  ToolReply(ToolResult result) : result_(std::move(result)) {}
  ToolReply(RpcError error) : error_(std::move(error)) {}
  // What an empty handler gives: an empty result.
  ToolReply() = default;
  const ToolResult& result() const noexcept { return result_; }
  // Null when this is a result.
  const RpcError* rpc_error() const noexcept { return error_ ? &*error_ : nullptr; }

 private:
  ToolResult result_ = {};
  std::optional<RpcError> error_ = {};
};

enum class ParameterType { string, integer, number, boolean, array, object };

// One argument of a tool. The tool's input schema and the check of every call are both made from
// it, so that they cannot disagree.
struct Parameter {
  std::string name = {};
  ParameterType type = ParameterType::string;
  std::string description = {};
  bool required = false;
  bool nullable = false;                    // null is accepted, and means: left out
  Json default_value = {};                  // in the schema, and from Call::argument()
  std::optional<double> minimum = {};       // of integers and numbers: inclusive
  std::optional<double> greater_than = {};  // of integers and numbers: exclusive lower bound
  std::optional<double> maximum = {};       // of integers and numbers: inclusive
  std::vector<std::string> choices = {};    // of strings: the only values allowed, unless empty
  std::optional<ParameterType> items = {};  // of arrays: the type of every item
};

// Hints for the client's user interface; what is not set is left out. The protocol's defaults are:
// not read-only, destructive, not idempotent, open world.
struct Annotations {
  std::optional<bool> read_only = {};
  std::optional<bool> destructive = {};
  std::optional<bool> idempotent = {};
  std::optional<bool> open_world = {};
};

// What a handler sees of one tools/call. Copies refer to the same call and may outlive the handler.
// Thread: any.
class Call {
 public:
  const std::string& tool() const noexcept;
  // As they were sent: an object.
  const Json& arguments() const noexcept;
  // The argument as it was sent, or the parameter's default when it was left out or is null.
  const Json& argument(std::string_view name) const noexcept;
  // The request's `_meta`: an object, or null.
  const Json& meta() const noexcept;
  // Cancelled when the client cancels the call or the server ends. A handler should then return
  // soon: what it returns to a client that cancelled is dropped.
  const CancelToken& cancel_token() const noexcept;
  bool wants_progress() const noexcept;
  // Tells the client how far the call is. Ignored when the client did not ask, when `progress` is
  // not finite or not greater than before, and once the call is answered or cancelled. More than
  // 20 in a second (after the first 32) are dropped, and so is what a client is too slow to read.
  void progress(double progress, std::optional<double> total = {},
                std::string_view message = {}) const;
  // Bytes of JSON the result may have. A longer one is replaced by an error that says so, so a
  // handler with much to tell shortens it by itself.
  std::size_t max_result_bytes() const noexcept;

  // Made by the server.
  struct State;
  explicit Call(std::shared_ptr<State> state) noexcept;

 private:
  std::shared_ptr<State> state_;
};

struct Tool {
  std::string name = {};  // 1 to 64 of A-Z a-z 0-9 _ - .
  std::string title = {};
  std::string description = {};
  // Checked before the handler is called; a call that breaks them is answered with the reason.
  std::vector<Parameter> parameters = {};
  // Instead of `parameters`: a JSON Schema of type object. The handler then checks by itself.
  Json input_schema = {};
  // A JSON Schema of type object for ToolResult::structured, or null for none.
  Json output_schema = {};
  Annotations annotations = {};
  // Runs on one of the server's threads, several calls at a time. An exception becomes an error
  // result with its text.
  Function<ToolReply(const Call&)> handler = {};
};

struct ServerOptions {
  std::string name = "codeexec";
  std::string title = {};
  std::string version = "0.1.0";
  std::string website = {};
  std::string instructions = {};  // told to the model at the start
  // Where messages come from and go to. 0 and 1 are moved away while serving: 0 then is /dev/null
  // and 1 is a copy of 2, so that no library writes into the protocol's stream and no child
  // inherits it.
  int in_fd = 0;
  int out_fd = 1;
  std::size_t max_line = std::size_t(16) << 20;    // bytes of one incoming message
  std::size_t max_reply = std::size_t(8) << 20;    // bytes of one outgoing message; at least 4096
  std::size_t max_queued = std::size_t(16) << 20;  // bytes waiting for a client that does not read
  // Memory for the messages of calls that run or wait; with more, a call is refused unless it is
  // the only one.
  std::size_t max_open_bytes = std::size_t(64) << 20;
  std::size_t max_concurrent = 16;  // handlers running at a time
  std::size_t max_waiting = 256;    // calls waiting for one; more are refused
  // One line about something odd, without newline. Called from the server's threads, one at a time.
  // Empty: a line on descriptor 2, dropped when it cannot be written at once.
  Function<void(std::string_view)> log = {};
};

class Server {
 public:
  explicit Server(ServerOptions options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Makes a tool known; tools are listed in this order. Not while serving.
  //   Errors: invalid_argument (message names the tool and the field).
  Expected<void> add(Tool tool);

  // Answers messages until the input ends, `stop` is cancelled or nobody reads the output any more;
  // all three are success. At the end of input running calls get 300 ms to finish, then all calls
  // are cancelled and get 600 ms, then what is queued is written: it returns within 1.5 s.
  // Changes no signal disposition; a broken pipe raises no SIGPIPE.
  //   Blocks:  the calling thread; handlers run on threads that end before it returns.
  //   Errors:  invalid_argument (message names the option), io; limit when a handler did not return
  //            in time: its thread goes on, and what the handler refers to must stay alive.
  Expected<void> serve(const CancelToken& stop = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mcp

// =================================================================================================
// >>tools (declarations)                                                               needs: all
// Binds an executor to MCP tools; the server program's whole main().          [tests/tools.cpp]
// =================================================================================================

// The answer of the tool `execute_command` as an object: success, exit_code, stdout, stderr,
// execution_time (seconds), command and work_dir, in this order, then
//   outcome (name of an Outcome), timed_out, stdout_bytes, stderr_bytes, stdout_truncated,
//   stderr_truncated, and where they apply: signal, rule, stdout_invalid_bytes,
//   stderr_invalid_bytes, stdout_file, stderr_file, output_held_open, notes, sandbox (when its mode
//   is not off: {"mode","network","missing"?}), limits_reached, changed_files, redactions.
// exit_code is the status of a program that left by itself, minus the signal of one that was
// killed, and -1 otherwise; success is true for exactly the exit code 0 of a program that left by
// itself and in time. stderr ends with the message of a timeout, refusal or failed start.
Json to_json(const Result& result);

// What the program prints for --check, as an object: allowed, and rule, message, begin and end of
// the refusal, which are null when it is allowed; then commands, the simple commands in the order
// of the script, each with its words, assignments (["NAME=value"]; left out when there are none),
// begin and end. A word or assignment that only a run could tell is null. Offsets count bytes.
Json to_json(const Judgement& judgement);

// Adds the tool `execute_command` (arguments: command, timeout in seconds, work_dir). The executor
// is borrowed: it must outlive the server's serve().
//   Errors: invalid_argument when the server has a tool of that name.
Expected<void> add_execution_tools(mcp::Server& server, const Executor& executor);

// What a model should know about the place where its commands run, for ServerOptions::instructions.
std::string describe(const Executor& executor);

// The server program: reads the command line (`--help` tells all of it) and the configuration file,
// then serves MCP on descriptors 0 and 1 until the input ends or SIGTERM, SIGINT or SIGHUP comes.
// With --run it runs one command, prints its result as one line of JSON and returns; with --check
// it judges one, or each line of the input, and prints what to_json(Judgement) gives; with
// --sandbox-report it prints an object: mode, network, landlock_abi, enforced and missing. Commands
// are in a sandbox, best_effort, when allowed paths are given, unless told otherwise. It owns the
// process while it runs: it takes those three signals, ignores SIGPIPE, overwrites the variables of
// its environment that commands do not see and, on Linux, keeps other processes of the user from
// looking into this one (PR_SET_DUMPABLE).
// Returns the exit status: 0; 2 when an option, key or value is wrong, after one line on stderr
// that says which; 1 for other failures; with --run 0 when the command succeeded, 1 when it ran and
// failed, 125 when it was refused or could not start; with --check 0 when it is allowed, 1 when it
// is refused, 2 when a line of the input is not a command; with --sandbox-report 0 when nothing is
// missing, 1 when something is. 2, too, when a strict sandbox cannot be had.
int server_main(int argc, char** argv);

}  // namespace v0_1
}  // namespace codeexec
#endif  // CODEEXEC_HPP

// Editors that cannot know about the macro should still colour the code below.
#if defined(__INTELLISENSE__) || defined(__JETBRAINS_IDE__) || defined(Q_CREATOR_RUN) || \
    defined(__CDT_PARSER__)
#define CODEEXEC_IMPLEMENTATION
#endif

#if defined(CODEEXEC_IMPLEMENTATION) && !defined(CODEEXEC_IMPLEMENTED)
#define CODEEXEC_IMPLEMENTED

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <variant>

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#include <xlocale.h>
#endif
#if defined(__linux__)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#endif

extern "C" char** environ;

namespace codeexec {
inline namespace v0_1 {

// =================================================================================================
// >>base (definitions)
// =================================================================================================

namespace {

using Clock = std::chrono::steady_clock;

// One allocation for any number of pieces.
std::string concat(std::initializer_list<std::string_view> pieces) {
  std::size_t size = 0;
  for (std::string_view piece : pieces) size += piece.size();
  std::string text;
  text.reserve(size);
  for (std::string_view piece : pieces) text.append(piece);
  return text;
}

// strerror() without its shared buffer. GNU and POSIX disagree about the result of strerror_r, so
// an overload takes whichever it is.
[[maybe_unused]] const char* strerror_text(int, const char* buffer) { return buffer; }
[[maybe_unused]] const char* strerror_text(const char* text, const char*) { return text; }

std::string errno_text(int error) {
  char buffer[256] = "";
  return strerror_text(strerror_r(error, buffer, sizeof buffer), buffer);
}

// The Error of a failed system call: "<what>: No such file or directory".
Error system_error(int error, std::string_view what) {
  Error result;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      result.code = ErrorCode::not_found;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      result.code = ErrorCode::permission_denied;
      break;
    case ENOSYS:
    case EOPNOTSUPP:
      result.code = ErrorCode::unsupported;
      break;
    case EINVAL:
    case ELOOP:
      result.code = ErrorCode::invalid_argument;
      break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case E2BIG:
    case ENOSPC:
    case EDQUOT:
    case ENAMETOOLONG:
      result.code = ErrorCode::limit;
      break;
    default:
      result.code = ErrorCode::io;
  }
  result.system_error = error;
  result.message = concat({what, ": ", errno_text(error)});
  return result;
}

Error make_error(ErrorCode code, std::string message, std::size_t offset = 0) {
  Error result;
  result.code = code;
  result.offset = offset;
  result.message = std::move(message);
  return result;
}

// Hostile text for a one-line message: well-formed UTF-8, control bytes escaped.
std::string printable(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result;
  for (const char c : to_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      result += c;
      continue;
    }
    result += "\\x";
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  return result;
}

// The same in quotes, and at most 200 bytes of the text.
std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 200;
  return concat({"'", printable(utf8_prefix(text, longest)), text.size() > longest ? "...'" : "'"});
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

// Secrets are masked in what commands print; shorter ones would hit by chance.
constexpr std::size_t shortest_secret = 4;
// Of all secrets together: what it takes to find them grows with it.
constexpr std::size_t longest_secrets = std::size_t{1} << 20;

std::size_t total_size(const std::vector<std::string>& texts) {
  std::size_t size = 0;
  for (const std::string& text : texts) size += text.size();
  return size;
}

// A text without the line ends at its end, which are no part of a secret.
std::string_view without_line_ends(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// Moves a descriptor above `last`. -1 and errno on failure.
int moved_above(int last, int fd) {
  if (fd < 0 || fd > last) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, last + 1);
  const int saved = errno;
  ::close(fd);
  errno = saved;
  return moved;
}

// One of 0, 1 and 2 turns up when the host has closed them, and would be overwritten while a
// child's standard streams are put in place.
int above_standard_streams(int fd) { return moved_above(2, fd); }

// For what a child still needs when its streams and its descriptor 3 are in place.
int above_child_descriptors(int fd) { return moved_above(3, fd); }

// Keeps a broken pipe from raising SIGPIPE in this thread, without touching its disposition: the
// signal is blocked during the write and, when the write raised it, taken back.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    // Only a signal that was blocked already can have been pending already.
    was_pending_ = sigismember(&before_, SIGPIPE) == 1 && pending();
  }
  ~NoSigpipe() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

  // To be called after EPIPE.
  void take_back() {
    if (was_pending_ || !pending()) return;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
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
  static bool pending() {
    sigset_t set;
    sigemptyset(&set);
    sigpending(&set);
    return sigismember(&set, SIGPIPE) == 1;
  }
  sigset_t before_;
  bool was_pending_ = false;
};

// The whole of a file of at most `limit` bytes. `what` names it in errors ("config file").
Expected<std::string> read_whole_file(const std::string& path, std::size_t limit,
                                      std::string_view what) {
  UniqueFd fd(above_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  const std::string subject = concat({what, " ", quoted(path)});
  if (!fd) return system_error(errno, subject);
  std::string content;
  char buffer[16384];
  for (;;) {
    const ssize_t size = ::read(fd.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_error(errno, subject);
    if (size == 0) return content;
    if (content.size() + static_cast<std::size_t>(size) > limit)
      return make_error(ErrorCode::limit,
                        concat({subject, ": longer than ", std::to_string(limit), " bytes"}));
    content.append(buffer, static_cast<std::size_t>(size));
  }
}

// Length of the well-formed UTF-8 sequence at `s`, or 0. When 0, `bad` is the length of the maximal
// invalid subpart (at least 1), and `cut` tells that the text merely ends inside a sequence.
struct Utf8Step {
  std::size_t good = 0;
  std::size_t bad = 1;
  bool cut = false;
};

Utf8Step utf8_step(const unsigned char* s, std::size_t left) {
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
void append_utf8(std::uint32_t code, std::string& out) {
  const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 63));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  } else {
    byte(0xf0 | (code >> 18 & 7));
    byte(0x80 | (code >> 12 & 63));
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  }
}

// Number of leading ASCII bytes, eight at a time.
std::size_t ascii_run(const char* s, std::size_t size) {
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, s + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < size && static_cast<unsigned char>(s[i]) < 0x80) ++i;
  return i;
}

}  // namespace

const char* name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::permission_denied:
      return "permission_denied";
    case ErrorCode::parse:
      return "parse";
    case ErrorCode::limit:
      return "limit";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::io:
      break;
  }
  return "io";
}

void detail::used_without_value(const Error& error) {
  std::fprintf(stderr, "codeexec: the value of a failed Expected was used; its error is: %s\n",
               error.message.c_str());
  std::abort();
}

void UniqueFd::reset(int fd) noexcept {
  // close() is never repeated after EINTR: on Linux the descriptor is already gone.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

struct CancelToken::State {
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  UniqueFd readable;
#if !defined(__linux__)
  UniqueFd writable;
#endif
  // Needs the mutex.
  void signal() {
    const std::uint64_t one = 1;
#if defined(__linux__)
    const int target = readable.get();
#else
    const int target = writable.get();
#endif
    // A full pipe or counter is readable already, which is all that is wanted.
    if (target >= 0) (void)!::write(target, &one, sizeof one);
  }
};

CancelToken::CancelToken() : state_(std::make_shared<State>()) {}

void CancelToken::cancel() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->cancelled.exchange(true)) state_->signal();
}

bool CancelToken::cancelled() const noexcept { return state_->cancelled.load(); }

int CancelToken::descriptor() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->readable) return state_->readable.get();
#if defined(__linux__)
  state_->readable.reset(above_standard_streams(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
#else
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  for (int& end : ends) {
    end = above_standard_streams(end);
    if (end < 0) continue;
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  state_->readable.reset(ends[0]);
  state_->writable.reset(ends[1]);
#endif
  if (state_->cancelled.load()) state_->signal();
  return state_->readable.get();
}

std::size_t find_invalid_utf8(std::string_view bytes) noexcept {
  const auto* s = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t i = 0;
  while (i < bytes.size()) {
    i += ascii_run(bytes.data() + i, bytes.size() - i);
    if (i == bytes.size()) break;
    const Utf8Step step = utf8_step(s + i, bytes.size() - i);
    if (step.good == 0) return i;
    i += step.good;
  }
  return std::string_view::npos;
}

bool is_utf8(std::string_view bytes) noexcept {
  return find_invalid_utf8(bytes) == std::string_view::npos;
}

std::string to_utf8(std::string_view bytes, std::uint64_t* invalid_bytes) {
  std::size_t bad = find_invalid_utf8(bytes);
  std::string text;
  while (bad != std::string_view::npos) {
    text.append(bytes.substr(0, bad));
    text += "\xef\xbf\xbd";
    const auto* s = reinterpret_cast<const unsigned char*>(bytes.data()) + bad;
    const std::size_t length = utf8_step(s, bytes.size() - bad).bad;
    if (invalid_bytes) *invalid_bytes += length;
    bytes.remove_prefix(bad + length);
    bad = find_invalid_utf8(bytes);
  }
  text.append(bytes);
  return text;
}

std::string_view utf8_prefix(std::string_view text, std::size_t size) noexcept {
  if (size >= text.size()) return text;
  // Only a sequence that starts in the last three bytes can reach over the cut.
  for (std::size_t back = 1; back <= 3 && back <= size; ++back) {
    const std::size_t start = size - back;
    const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + start;
    if ((*s & 0xc0) == 0x80) continue;
    if (utf8_step(s, text.size() - start).good > back) size = start;
    break;
  }
  return text.substr(0, size);
}

std::string_view utf8_suffix(std::string_view text, std::size_t size) noexcept {
  if (size >= text.size()) return text;
  const std::size_t cut = text.size() - size;
  for (std::size_t back = 1; back <= 3 && back <= cut; ++back) {
    const std::size_t start = cut - back;
    const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + start;
    if ((*s & 0xc0) == 0x80) continue;
    const std::size_t good = utf8_step(s, text.size() - start).good;
    if (good > back) return text.substr(start + good);
    break;
  }
  return text.substr(cut);
}

std::string to_base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const auto byte = [&](std::size_t k) {
      return k < left ? static_cast<unsigned>(static_cast<unsigned char>(bytes[i + k])) : 0u;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    text += digits[group >> 18];
    text += digits[group >> 12 & 63];
    text += left > 1 ? digits[group >> 6 & 63] : '=';
    text += left > 2 ? digits[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    int value = -1;
    if (c >= 'A' && c <= 'Z') value = c - 'A';
    if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
    if (c >= '0' && c <= '9') value = c - '0' + 52;
    if (c == '+') value = 62;
    if (c == '/') value = 63;
    if (value < 0 || padding > 0) return {};
    ++digits;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  // What is left over of the last digit stands for nothing, so it must be nothing.
  if (digits % 4 == 1 || (bits & ((std::uint32_t{1} << count) - 1)) != 0) return {};
  if (padding > 0 && (digits + padding) % 4 != 0) return {};
  if (padding > 2) return {};
  return bytes;
}

// =================================================================================================
// >>json (definitions)
// =================================================================================================
//
// Nothing here recurses on its input. The parser keeps a chain of the open containers, the
// destructor a chain of those still to be emptied; both run through the `link` that every container
// has room for, so that neither needs memory of its own. Copy, comparison and writer keep a stack.
//
// Strings are read and written as runs: eight bytes at a time until one needs a look, then one
// append. UTF-8 is checked in the same pass. A run ends at a quote, an escape, or a bad byte.
//
// A number whose spelling cannot be made again from its value carries it (24 bytes in place, enough
// for the shortest form of any double; longer ones on the heap). So 1.0, -0, 1E5 and
// 12345678901234567890 go out as they came in, which an id in a protocol must.
//
// Members with equal names are found when an object closes: by comparing all with all when they are
// few, else through a table keyed with SipHash under a random key, so that nobody can choose names
// that fall together.

// std::from_chars and std::to_chars for double: libstdc++ 11, libc++ 20. Without them strtod and
// snprintf are used, under the C locale of the calling thread.
#if !defined(CODEEXEC_HAS_FLOAT_CHARS)
#if defined(__cpp_lib_to_chars)
#define CODEEXEC_HAS_FLOAT_CHARS 1
#else
#define CODEEXEC_HAS_FLOAT_CHARS 0
#endif
#endif

namespace {

// numbers -----------------------------------------------------------------------------------------

// The C locale, for this thread and as long as the object lives: others may have set one in which
// a decimal point is a comma.
class JsonCLocale {
 public:
  JsonCLocale() noexcept {
    static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", locale_t());
    if (plain != locale_t()) previous_ = ::uselocale(plain);
  }
  ~JsonCLocale() {
    if (previous_ != locale_t()) ::uselocale(previous_);
  }
  JsonCLocale(const JsonCLocale&) = delete;
  JsonCLocale& operator=(const JsonCLocale&) = delete;

 private:
  locale_t previous_ = locale_t();
};

// The double nearest to a number that follows JSON's grammar; infinite when none is near.
double json_read_double(std::string_view text) {
#if CODEEXEC_HAS_FLOAT_CHARS
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  // It reports both too small and too large as out of range; strtod tells them apart.
  if (result.ec == std::errc()) return value;
#endif
  const JsonCLocale plain;
  return std::strtod(std::string(text).c_str(), nullptr);
}

constexpr std::size_t json_double_size = 40;

// The fewest digits that read back as the value, as "d.ddde+dd". Returns the length.
std::size_t json_shortest_digits(double value, char* out) {
#if CODEEXEC_HAS_FLOAT_CHARS
  const auto end =
      std::to_chars(out, out + json_double_size, value, std::chars_format::scientific).ptr;
  return static_cast<std::size_t>(end - out);
#else
  const JsonCLocale plain;
  int length = 0;
  for (int precision = 0; precision <= 16; ++precision) {
    length = std::snprintf(out, json_double_size, "%.*e", precision, value);
    const double back = std::strtod(out, nullptr);
    if (!(back < value) && !(back > value)) break;
  }
  return static_cast<std::size_t>(length);
#endif
}

// A finite double as JavaScript's Number::toString lays it out (ECMA-262, 6.1.6.1.20), with -0.
void json_append_double(double value, std::string& out) {
  char form[json_double_size];
  const std::string_view text(form, json_shortest_digits(std::fabs(value), form));
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits.append(text.substr(2, e - 2));
  int exponent = 0;
  for (const char c : text.substr(e + 2)) exponent = exponent * 10 + (c - '0');
  if (text[e + 1] == '-') exponent = -exponent;

  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // where the decimal point stands, counted in digits
  const auto zeros = [](int n) { return std::string(static_cast<std::size_t>(n), '0'); };
  if (std::signbit(value)) out += '-';
  if (count <= point && point <= 21) {
    out.append(digits).append(zeros(point - count));
  } else if (0 < point && point <= 21) {
    out.append(digits.insert(static_cast<std::size_t>(point), 1, '.'));
  } else if (-6 < point && point <= 0) {
    out.append("0.").append(zeros(-point)).append(digits);
  } else {
    if (count > 1) digits.insert(1, 1, '.');
    out.append(digits).append(exponent < 0 ? "e-" : "e+");
    out.append(std::to_string(std::abs(exponent)));
  }
}

bool json_same(double a, double b) { return !(a < b) && !(a > b); }

bool json_is_int64(double value) {
  // Both bounds are powers of two, hence exact.
  return value >= -9223372036854775808.0 && value < 9223372036854775808.0 &&
         json_same(std::trunc(value), value);
}

// The exponent of a number, cut to what is far beyond any text's length.
long long json_exponent(std::string_view text) {
  constexpr long long bound = 1000000000000000;
  if (starts_with(text, "+")) text.remove_prefix(1);
  long long value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) value = starts_with(text, "-") ? -bound : bound;
  return std::clamp(value, -bound, bound);
}

// The exact value of a number that follows JSON's grammar, if it is an integer within int64.
std::optional<std::int64_t> json_read_integer(std::string_view text) {
  const bool negative = starts_with(text, "-");
  if (negative) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  long long places = static_cast<long long>(point);  // digits before the point, once it is moved
  if (e != std::string_view::npos) places += json_exponent(text.substr(e + 1));

  std::uint64_t value = 0;
  const std::uint64_t largest = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  const auto append = [&](unsigned digit) {
    if (value > (largest - digit) / 10) return false;
    value = value * 10 + digit;
    return true;
  };
  long long read = 0;
  for (const char c : digits) {
    if (c == '.') continue;
    const auto digit = static_cast<unsigned>(c - '0');
    if (read++ < places ? !append(digit) : digit != 0) return std::nullopt;
  }
  for (; read < places && value != 0; ++read)
    if (!append(0)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

// strings -----------------------------------------------------------------------------------------

// Which bytes end a run. `ends_in`: when a string is read, `ends_out`: when it is written.
struct JsonBytes {
  bool ends_in[256] = {};
  bool ends_out[256] = {};
  constexpr JsonBytes() {
    for (int c = 0; c < 256; ++c) {
      ends_in[c] = c < 0x20 || c == '"' || c == '\\' || c >= 0x80;
      ends_out[c] = ends_in[c] || c == 0x7f;
    }
  }
};
constexpr JsonBytes json_bytes;

// True when a byte of the word is a quote, a backslash, a control below 0x20 or not ASCII. (The
// usual tricks: x - 1 borrows into the high bit of a zero byte only when ~x has that bit.)
bool json_word_ends_run(std::uint64_t word) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  constexpr std::uint64_t highs = 0x8080808080808080u;
  const std::uint64_t quote = word ^ (ones * '"');
  const std::uint64_t slash = word ^ (ones * '\\');
  const std::uint64_t found =
      ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 0x20) & ~word) | word;
  return (found & highs) != 0;
}

// The first byte in [at, end) that ends a run when reading, or end.
const char* json_run_in(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    if (json_word_ends_run(word)) break;
  }
  while (at != end && !json_bytes.ends_in[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

// The same when writing, where U+007F counts too.
const char* json_run_out(const char* at, const char* end) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  constexpr std::uint64_t highs = 0x8080808080808080u;
  for (; end - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    if (json_word_ends_run(word) || ((word + ones) & highs) != 0) break;
  }
  while (at != end && !json_bytes.ends_out[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

constexpr std::string_view json_replacement = "\xef\xbf\xbd";  // U+FFFD

Utf8Step json_utf8_step(const char* at, const char* end) {
  return utf8_step(reinterpret_cast<const unsigned char*>(at), static_cast<std::size_t>(end - at));
}

// equal names -------------------------------------------------------------------------------------

// SipHash-1-3 (Aumasson and Bernstein, 2012) under a key that is drawn once per process.
class JsonNameHash {
 public:
  std::uint64_t operator()(std::string_view text) const noexcept {
    static const Key key = draw_key();
    State v = {key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
               key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u};
    const std::uint64_t length = static_cast<std::uint64_t>(text.size()) << 56;
    for (; text.size() >= 8; text.remove_prefix(8)) compress(v, word(text.substr(0, 8)));
    compress(v, length | word(text));
    v.c ^= 0xff;
    round(v);
    round(v);
    round(v);
    return v.a ^ v.b ^ v.c ^ v.d;
  }

 private:
  struct Key {
    std::uint64_t k0, k1;
  };
  struct State {
    std::uint64_t a, b, c, d;
  };

  static Key draw_key() noexcept {
    Key key = {};
    if (::getentropy(&key, sizeof key) == 0) return key;
    // No random source: the clock and the place of the stack are better than nothing.
    key.k0 = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    key.k1 = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&key));
    return key;
  }
  static std::uint64_t word(std::string_view bytes) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  static std::uint64_t turn(std::uint64_t x, int bits) noexcept {
    return x << bits | x >> (64 - bits);
  }
  static void round(State& v) noexcept {
    v.a += v.b;
    v.b = turn(v.b, 13) ^ v.a;
    v.a = turn(v.a, 32);
    v.c += v.d;
    v.d = turn(v.d, 16) ^ v.c;
    v.a += v.d;
    v.d = turn(v.d, 21) ^ v.a;
    v.c += v.b;
    v.b = turn(v.b, 17) ^ v.c;
    v.c = turn(v.c, 32);
  }
  static void compress(State& v, std::uint64_t m) noexcept {
    v.d ^= m;
    round(v);
    v.a ^= m;
  }
};

// Finds names among the first members of an object, which are added one after the other.
class JsonNameTable {
 public:
  explicit JsonNameTable(const Json::Object& members) : members_(members) {
    if (members.size() <= few) return;
    std::size_t size = 4 * few;
    while (size < 2 * members.size()) size *= 2;
    slots_.resize(size);
  }

  // The index of the member that has this name, or `count` after adding it under that index.
  std::size_t find_or_add(const std::string& name, std::size_t count) {
    if (slots_.empty()) {
      std::size_t i = 0;
      while (i < count && members_[i].name != name) ++i;
      return i;
    }
    std::size_t slot = static_cast<std::size_t>(hash_(name));
    for (;; ++slot) {
      std::size_t& entry = slots_[slot & (slots_.size() - 1)];
      if (entry == 0) {
        entry = count + 1;
        return count;
      }
      if (members_[entry - 1].name == name) return entry - 1;
    }
  }

 private:
  static constexpr std::size_t few = 16;
  const Json::Object& members_;
  std::vector<std::size_t> slots_;  // index + 1, or 0; a power of two, at most half full
  JsonNameHash hash_;
};

// Of members with one name the last value stays, in the place of the first.
void json_keep_last(Json::Object& members) {
  if (members.size() < 2) return;
  JsonNameTable names(members);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t place = names.find_or_add(members[i].name, kept);
    if (place < kept) {
      members[place].value = std::move(members[i].value);
      continue;
    }
    if (kept != i) members[kept] = std::move(members[i]);
    ++kept;
  }
  members.resize(kept);
}

}  // namespace

// the value ---------------------------------------------------------------------------------------

void Json::make_boolean(bool value) noexcept {
  boolean_ = value;
  kind_ = Kind::boolean;
}

void Json::make_integer(std::int64_t value) noexcept {
  new (&number_) Number;
  number_.integer = value;
  text_size_ = 0;
  kind_ = Kind::integer;
}

void Json::make_real(double value) noexcept {
  new (&number_) Number;
  number_.real = value;
  text_size_ = 0;
  kind_ = Kind::number;
}

// Gives a number the spelling in which it is written.
void Json::spell(std::string_view text) {
  if (text.size() > sizeof number_.text) {
    number_.long_text = new std::string(text);
    text_size_ = is_long;
    return;
  }
  std::memcpy(number_.text, text.data(), text.size());
  text_size_ = static_cast<unsigned char>(text.size());
}

std::string_view Json::spelling() const noexcept {
  if (text_size_ == is_long) return *number_.long_text;
  return {number_.text, text_size_};
}

void Json::make_string() noexcept {
  new (&string_) std::string();
  kind_ = Kind::string;
}

void Json::make_array() noexcept {
  new (&array_) ArrayNode{};
  kind_ = Kind::array;
}

void Json::make_object() noexcept {
  new (&object_) ObjectNode{};
  kind_ = Kind::object;
}

Json::Json(long long value) noexcept : Json() { make_integer(value); }

Json::Json(unsigned long long value) noexcept : Json() {
  if (value <= static_cast<unsigned long long>(INT64_MAX)) {
    make_integer(static_cast<std::int64_t>(value));
    return;
  }
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  make_real(static_cast<double>(value));
  spell({text, static_cast<std::size_t>(end - text)});
}

Json::Json(double value) noexcept : Json() {
  if (!std::isfinite(value)) return;
  if (!json_is_int64(value)) {
    make_real(value);
    return;
  }
  make_integer(static_cast<std::int64_t>(value));
  if (json_same(value, 0) && std::signbit(value)) spell("-0");
}

Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(std::string text) noexcept : string_(std::move(text)), kind_(Kind::string) {}

Json::Json(Array items) : Json() {
  make_array();
  array_.items = std::move(items);
  for (const Json& item : array_.items) lone_surrogate_ |= item.lone_surrogate_;
}

Json::Json(Object members) : Json() {
  make_object();
  object_.members = std::move(members);
  json_keep_last(object_.members);
  for (const Member& member : object_.members) lone_surrogate_ |= member.value.lone_surrogate_;
}

Json Json::array(std::initializer_list<Json> items) { return Json(Array(items)); }
Json Json::object() { return Json(Object()); }
Json Json::object(std::initializer_list<Member> members) { return Json(Object(members)); }

Json::Json(Json&& other) noexcept : Json() { take(other); }

Json& Json::operator=(Json&& other) noexcept {
  Json taken(std::move(other));  // first, for `other` may be inside this one
  clear();
  take(taken);
  return *this;
}

Json& Json::operator=(const Json& other) { return *this = Json(other); }

Json::~Json() { clear(); }

Json*& Json::link() noexcept { return is_array() ? array_.link : object_.link; }

// Moves the other's content into this one, which must be null.
void Json::take(Json& other) noexcept {
  switch (other.kind_) {
    case Kind::null:
      return;
    case Kind::boolean:
      boolean_ = other.boolean_;
      break;
    case Kind::integer:
    case Kind::number:
      new (&number_) Number(other.number_);
      break;
    case Kind::string:
      new (&string_) std::string(std::move(other.string_));
      other.string_.~basic_string();
      break;
    case Kind::array:
      new (&array_) ArrayNode(std::move(other.array_));
      other.array_.~ArrayNode();
      break;
    case Kind::object:
      new (&object_) ObjectNode(std::move(other.object_));
      other.object_.~ObjectNode();
      break;
  }
  kind_ = std::exchange(other.kind_, Kind::null);
  text_size_ = std::exchange(other.text_size_, static_cast<unsigned char>(0));
  lone_surrogate_ = std::exchange(other.lone_surrogate_, false);
}

// Makes this one null.
void Json::clear() noexcept {
  if (is_string()) string_.~basic_string();
  if (text_size_ == is_long) delete number_.long_text;
  if (is_container()) clear_tree();
  kind_ = Kind::null;
  text_size_ = 0;
  lone_surrogate_ = false;
}

// Lists all containers so that the inner ones come before the outer, then frees one after the
// other: what a vector still holds by then has nothing inside.
void Json::clear_tree() noexcept {
  Json* found = this;
  Json* listed = nullptr;
  link() = nullptr;
  const auto add = [&found](Json& value) {
    if (!value.is_container()) return;
    value.link() = found;
    found = &value;
  };
  while (found) {
    Json* const outer = found;
    found = std::exchange(outer->link(), listed);
    listed = outer;
    if (outer->is_array()) {
      for (Json& item : outer->array_.items) add(item);
    } else {
      for (Member& member : outer->object_.members) add(member.value);
    }
  }
  while (listed) {
    Json* const inner = listed;
    listed = inner->link();
    if (inner->is_array()) {
      inner->array_.~ArrayNode();
    } else {
      inner->object_.~ObjectNode();
    }
    inner->kind_ = Kind::null;
  }
}

// Copies all but the values inside a container, which become null, into this one, which is null.
void Json::copy_flat(const Json& other) {
  switch (other.kind_) {
    case Kind::null:
      break;
    case Kind::boolean:
      boolean_ = other.boolean_;
      break;
    case Kind::integer:
    case Kind::number:
      new (&number_) Number(other.number_);
      if (other.text_size_ == is_long) spell(other.spelling());
      break;
    case Kind::string:
      new (&string_) std::string(other.string_);
      break;
    case Kind::array:
      make_array();
      array_.items.resize(other.array_.items.size());
      break;
    case Kind::object:
      make_object();
      object_.members.resize(other.object_.members.size());
      for (std::size_t i = 0; i < object_.members.size(); ++i)
        object_.members[i].name = other.object_.members[i].name;
      break;
  }
  kind_ = other.kind_;
  text_size_ = other.text_size_;
  lone_surrogate_ = other.lone_surrogate_;
}

Json::Json(const Json& other) : Json() {
  struct Pair {
    const Json* from;
    Json* to;
  };
  std::vector<Pair> containers;
  const auto copy = [&containers](const Json& from, Json& to) {
    to.copy_flat(from);
    if (from.is_container()) containers.push_back({&from, &to});
  };
  copy(other, *this);
  while (!containers.empty()) {
    const Pair pair = containers.back();
    containers.pop_back();
    for (std::size_t i = 0; i < pair.from->items().size(); ++i)
      copy(pair.from->array_.items[i], pair.to->array_.items[i]);
    for (std::size_t i = 0; i < pair.from->members().size(); ++i)
      copy(pair.from->object_.members[i].value, pair.to->object_.members[i].value);
  }
}

// Equality of all but the values inside a container.
bool Json::equals_flat(const Json& other) const noexcept {
  if (kind_ != other.kind_) return false;
  if (is_bool()) return boolean_ == other.boolean_;
  if (is_integer()) return number_.integer == other.number_.integer;
  if (is_number()) return json_same(number_.real, other.number_.real);
  if (is_string()) return string_ == other.string_;
  return size() == other.size();
}

bool Json::equals(const Json& other) const {
  struct Pair {
    const Json* a;
    const Json* b;
  };
  std::vector<Pair> containers;
  const auto same = [&containers](const Json& a, const Json& b) {
    if (!a.equals_flat(b)) return false;
    if (a.is_container()) containers.push_back({&a, &b});
    return true;
  };
  const auto sorted = [](const Object& members) {
    std::vector<const Member*> result;
    for (const Member& member : members) result.push_back(&member);
    std::sort(result.begin(), result.end(),
              [](const Member* a, const Member* b) { return a->name < b->name; });
    return result;
  };
  const auto same_members = [&](const Object& a, const Object& b) {
    const auto left = sorted(a);
    const auto right = sorted(b);
    for (std::size_t i = 0; i < left.size(); ++i)
      if (left[i]->name != right[i]->name || !same(left[i]->value, right[i]->value)) return false;
    return true;
  };
  if (!same(*this, other)) return false;
  while (!containers.empty()) {
    const Pair pair = containers.back();
    containers.pop_back();
    for (std::size_t i = 0; i < pair.a->items().size(); ++i)
      if (!same(pair.a->items()[i], pair.b->items()[i])) return false;
    if (!same_members(pair.a->members(), pair.b->members())) return false;
  }
  return true;
}

bool Json::as_bool(bool fallback) const noexcept { return is_bool() ? boolean_ : fallback; }

std::int64_t Json::as_integer(std::int64_t fallback) const noexcept {
  return is_integer() ? number_.integer : fallback;
}

double Json::as_number(double fallback) const noexcept {
  if (kind_ == Kind::number) return number_.real;
  if (!is_integer()) return fallback;
  if (number_.integer == 0 && starts_with(spelling(), "-")) return -0.0;
  return static_cast<double>(number_.integer);
}

const std::string& Json::as_string() const noexcept {
  static const std::string empty;
  return is_string() ? string_ : empty;
}

const Json::Array& Json::items() const noexcept {
  static const Array empty;
  return is_array() ? array_.items : empty;
}

const Json::Object& Json::members() const noexcept {
  static const Object empty;
  return is_object() ? object_.members : empty;
}

std::size_t Json::size() const noexcept {
  return is_array() ? array_.items.size() : members().size();
}

const Json* Json::find(std::string_view name) const noexcept {
  for (const Member& member : members())
    if (member.name == name) return &member.value;
  return nullptr;
}

const Json& Json::operator[](std::string_view name) const noexcept {
  static const Json null;
  const Json* const value = find(name);
  return value ? *value : null;
}

const Json& Json::operator[](std::size_t index) const noexcept {
  static const Json null;
  return index < items().size() ? items()[index] : null;
}

Json& Json::set(std::string name, Json value) {
  if (!is_object()) {
    clear();
    make_object();
  }
  lone_surrogate_ |= value.lone_surrogate_;
  for (Member& member : object_.members) {
    if (member.name != name) continue;
    member.value = std::move(value);
    return *this;
  }
  object_.members.push_back(Member{std::move(name), std::move(value)});
  return *this;
}

Json& Json::push_back(Json value) {
  if (!is_array()) {
    clear();
    make_array();
  }
  lone_surrogate_ |= value.lone_surrogate_;
  array_.items.push_back(std::move(value));
  return *this;
}

// parsing -----------------------------------------------------------------------------------------

class Json::Parser {
 public:
  Parser(std::string_view text, const JsonLimits& limits)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), limits_(limits) {}

  Expected<Json> run() {
    Json root;
    for (Json* place = &root; place;) {
      if (++values_ > limits_.max_values) {
        fail(concat({"more than ", std::to_string(limits_.max_values), " values"}),
             ErrorCode::limit);
        return std::move(error_);
      }
      if (!read_value(*place)) return std::move(error_);
      if (!next_place(place)) return std::move(error_);
    }
    skip_space();
    if (at_ == end_) return root;
    fail("unexpected text after the value");
    return std::move(error_);
  }

 private:
  bool fail(std::string_view what, ErrorCode code = ErrorCode::parse) {
    const auto offset = static_cast<std::size_t>(at_ - begin_);
    const std::string_view end = at_ == end_ ? ", but the text ends" : "";
    error_ = make_error(code, concat({what, end, " at byte ", std::to_string(offset)}), offset);
    return false;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool next_is(char c) const { return at_ != end_ && *at_ == c; }
  bool next_is_digit() const { return at_ != end_ && *at_ >= '0' && *at_ <= '9'; }

  // Reads a value that holds no other, or opens a container.
  bool read_value(Json& place) {
    skip_space();
    if (at_ == end_) return fail("expected a value");
    switch (*at_) {
      case '"':
        place.make_string();
        if (!read_string(place.string_)) return false;
        place.lone_surrogate_ = std::exchange(lone_surrogate_, false);
        if (place.lone_surrogate_ && open_) open_->lone_surrogate_ = true;
        return true;
      case '{':
        place.make_object();
        return open(place);
      case '[':
        place.make_array();
        return open(place);
      case 't':
        place.make_boolean(true);
        return read_word("true");
      case 'f':
        place.make_boolean(false);
        return read_word("false");
      case 'n':
        return read_word("null");
      default:
        return read_number(place);
    }
  }

  bool open(Json& place) {
    if (depth_ == limits_.max_depth)
      return fail(concat({"nested deeper than ", std::to_string(limits_.max_depth), " levels"}),
                  ErrorCode::limit);
    ++depth_;
    ++at_;
    place.link() = open_;
    open_ = &place;
    return true;
  }

  bool close() {
    if (open_->is_object()) {
      Object& members = open_->object_.members;
      const std::size_t before = members.size();
      json_keep_last(members);
      if (members.size() != before && limits_.unique_names)
        return fail("a name occurs twice in the object that ends");
    }
    ++at_;
    --depth_;
    Json* const outer = open_->link();
    if (outer) outer->lone_surrogate_ |= open_->lone_surrogate_;
    open_ = outer;
    return true;
  }

  // Goes on behind a value or an opening bracket, to the place of the next value; that is null when
  // the outermost value is complete.
  bool next_place(Json*& place) {
    while (open_) {
      skip_space();
      if (next_is(open_->is_array() ? ']' : '}')) {
        if (!close()) return false;
        continue;
      }
      return open_->is_array() ? next_item(place) : next_member(place);
    }
    place = nullptr;
    return true;
  }

  bool next_item(Json*& place) {
    Array& items = open_->array_.items;
    if (!items.empty()) {
      if (!next_is(',')) return fail("expected ',' or ']'");
      ++at_;
    }
    place = &items.emplace_back();
    return true;
  }

  bool next_member(Json*& place) {
    Object& members = open_->object_.members;
    if (!members.empty()) {
      if (!next_is(',')) return fail("expected ',' or '}'");
      ++at_;
      skip_space();
    }
    if (!next_is('"')) return fail(members.empty() ? "expected a name or '}'" : "expected a name");
    Member& member = members.emplace_back();
    if (!read_string(member.name)) return false;
    open_->lone_surrogate_ |= std::exchange(lone_surrogate_, false);
    skip_space();
    if (!next_is(':')) return fail("expected ':'");
    ++at_;
    place = &member.value;
    return true;
  }

  bool read_word(std::string_view word) {
    for (const char c : word) {
      if (!next_is(c)) return fail(concat({"expected '", word, "'"}));
      ++at_;
    }
    return true;
  }

  // Digits, at least one. Their value, modulo 2^64, goes to `value`.
  bool read_digits(std::uint64_t& value) {
    if (!next_is_digit()) return fail("expected a digit");
    for (; next_is_digit(); ++at_) value = value * 10 + static_cast<std::uint64_t>(*at_ - '0');
    return true;
  }

  bool read_number(Json& place) {
    const char* const start = at_;
    const bool negative = next_is('-');
    if (negative) ++at_;
    if (!next_is_digit()) return fail(negative ? "expected a digit" : "expected a value");
    std::uint64_t value = 0;
    const char* const digits = at_;
    if (next_is('0')) {
      ++at_;
    } else if (!read_digits(value)) {
      return false;
    }
    const auto count = at_ - digits;
    std::uint64_t ignored = 0;
    bool whole = true;
    if (next_is('.')) {
      whole = false;
      ++at_;
      if (!read_digits(ignored)) return false;
    }
    if (next_is('e') || next_is('E')) {
      whole = false;
      ++at_;
      if (next_is('+') || next_is('-')) ++at_;
      if (!read_digits(ignored)) return false;
    }
    if (whole && count <= 18 && (value != 0 || !negative)) {
      const auto number = static_cast<std::int64_t>(value);
      place.make_integer(negative ? -number : number);
      return true;
    }
    return make_number(place, start, whole && value != 0);
  }

  // Of a number that was read; `plain` when it is spelled as it would be if it is an integer.
  bool make_number(Json& place, const char* start, bool plain) {
    const std::string_view text(start, static_cast<std::size_t>(at_ - start));
    if (const auto integer = json_read_integer(text)) {
      place.make_integer(*integer);
      if (!plain) place.spell(text);
      return true;
    }
    const double number = json_read_double(text);
    if (!std::isfinite(number)) {
      at_ = start;
      return fail("a number too large for a double");
    }
    place.make_real(number);
    place.spell(text);
    return true;
  }

  // From the opening quote to behind the closing one, into an empty string.
  bool read_string(std::string& out) {
    const char* run = ++at_;
    for (;;) {
      at_ = json_run_in(at_, end_);
      if (at_ == end_) return fail("expected '\"'");
      const auto c = static_cast<unsigned char>(*at_);
      if (c >= 0x80) {
        const Utf8Step step = json_utf8_step(at_, end_);
        at_ += step.good;
        if (step.good != 0) continue;
        if (!limits_.accept_invalid_utf8) return fail("invalid UTF-8");
        out.append(run, at_).append(json_replacement);
        run = at_ += step.bad;
        continue;
      }
      if (c < 0x20) return fail("control character in a string");
      out.append(run, at_);
      ++at_;
      if (c == '"') return true;
      if (!read_escape(out)) return false;
      run = at_;
    }
  }

  // Behind the backslash.
  bool read_escape(std::string& out) {
    if (at_ == end_) return fail("expected an escape");
    char c = *at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        break;
      case 'n':
        c = '\n';
        break;
      case 't':
        c = '\t';
        break;
      case 'r':
        c = '\r';
        break;
      case 'b':
        c = '\b';
        break;
      case 'f':
        c = '\f';
        break;
      case 'u':
        ++at_;
        return read_unicode_escape(out);
      default:
        return fail("expected one of \"\\/bfnrtu after a backslash");
    }
    ++at_;
    out += c;
    return true;
  }

  bool read_hex(unsigned& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ == end_ ? '\0' : *at_;
      unsigned digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<unsigned>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<unsigned>(c - 'a') + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<unsigned>(c - 'A') + 10;
      } else {
        return fail("expected four hexadecimal digits");
      }
      code = code * 16 + digit;
    }
    return true;
  }

  bool read_unicode_escape(std::string& out) {
    unsigned code = 0;
    if (!read_hex(code)) return false;
    const bool first_half = code >= 0xd800 && code < 0xdc00;
    if (first_half && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
      const char* const behind_first = at_;
      unsigned low = 0;
      at_ += 2;
      if (!read_hex(low)) return false;
      if (low >= 0xdc00 && low < 0xe000) {
        append_utf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), out);
        return true;
      }
      at_ = behind_first;
    }
    if (code >= 0xd800 && code < 0xe000) {
      lone_surrogate_ = true;
      code = 0xfffd;
    }
    append_utf8(code, out);
    return true;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const JsonLimits limits_;
  Json* open_ = nullptr;  // the innermost open container; its link is the next outer one
  std::size_t values_ = 0;
  std::size_t depth_ = 0;
  bool lone_surrogate_ = false;  // in the string that was just read
  Error error_ = {};
};

Expected<Json> Json::parse(std::string_view text, const JsonLimits& limits) {
  return Parser(text, limits).run();
}

// writing -----------------------------------------------------------------------------------------

class Json::Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void write(const Json& root) {
    write_flat(root);
    while (!open_.empty()) {
      Open& open = open_.back();
      const bool array = open.container->is_array();
      const std::size_t index = open.next++;
      if (index == open.container->size()) {
        out_ += array ? ']' : '}';
        open_.pop_back();
        continue;
      }
      if (index != 0) out_ += ',';
      if (array) {
        write_flat(open.container->array_.items[index]);
      } else {
        const Member& member = open.container->object_.members[index];
        write_string(member.name);
        out_ += ':';
        write_flat(member.value);
      }
    }
  }

 private:
  struct Open {
    const Json* container;
    std::size_t next;
  };

  void write_flat(const Json& value) {
    switch (value.kind_) {
      case Kind::null:
        out_.append("null");
        break;
      case Kind::boolean:
        out_.append(value.boolean_ ? "true" : "false");
        break;
      case Kind::integer:
      case Kind::number:
        write_number(value);
        break;
      case Kind::string:
        write_string(value.string_);
        break;
      case Kind::array:
        out_ += '[';
        open_.push_back({&value, 0});
        break;
      case Kind::object:
        out_ += '{';
        open_.push_back({&value, 0});
        break;
    }
  }

  void write_number(const Json& value) {
    if (value.text_size_ != 0) {
      out_.append(value.spelling());
    } else if (value.kind_ == Kind::number) {
      json_append_double(value.number_.real, out_);
    } else {
      char text[24];
      const auto end = std::to_chars(text, text + sizeof text, value.number_.integer).ptr;
      out_.append(text, end);
    }
  }

  void write_string(const std::string& text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    const char* run = at;
    out_ += '"';
    for (;;) {
      at = json_run_out(at, end);
      if (at == end) break;
      if (static_cast<unsigned char>(*at) < 0x80) {
        out_.append(run, at);
        write_escaped(*at);
        run = ++at;
        continue;
      }
      const Utf8Step step = json_utf8_step(at, end);
      const std::size_t length = step.good + step.bad;
      const std::string_view instead =
          step.good == 0 ? json_replacement : escape_of(std::string_view(at, length));
      if (!instead.empty()) {
        out_.append(run, at).append(instead);
        run = at + length;
      }
      at += length;
    }
    out_.append(run, end).append(1, '"');
  }

  void write_escaped(char c) {
    constexpr char digits[] = "0123456789abcdef";
    switch (c) {
      case '"':
      case '\\':
        out_ += '\\';
        out_ += c;
        break;
      case '\n':
        out_.append("\\n");
        break;
      case '\t':
        out_.append("\\t");
        break;
      case '\r':
        out_.append("\\r");
        break;
      case '\b':
        out_.append("\\b");
        break;
      case '\f':
        out_.append("\\f");
        break;
      default:
        out_.append("\\u00");
        out_ += digits[static_cast<unsigned char>(c) >> 4];
        out_ += digits[static_cast<unsigned char>(c) & 15];
    }
  }

  // The escape of one code point above ASCII, or nothing.
  static std::string_view escape_of(std::string_view code_point) {
    if (code_point == "\xc2\x85") return "\\u0085";
    if (code_point == "\xe2\x80\xa8") return "\\u2028";
    if (code_point == "\xe2\x80\xa9") return "\\u2029";
    return {};
  }

  std::string& out_;
  std::vector<Open> open_;
};

std::string Json::dump() const {
  std::string out;
  dump_to(out);
  return out;
}

void Json::dump_to(std::string& out) const { Writer(out).write(*this); }

// =================================================================================================
// >>regex (definitions)
// =================================================================================================
//
// The parser writes the program of a Pike machine directly, without a tree: jumps are relative, so
// that the code of an atom can be moved and copied when a quantifier behind it asks for it. The
// parser recurses once per open group and stops at a depth of 200.
//
// The matcher walks the text once, one character at a time, and keeps the set of places in the
// program that are still possible, the preferred ones first: never more than there are steps in the
// program. That order is what makes the result the one a backtracking matcher finds first. A
// repeated atom x* is written as (?:x+)?: a first round that matched nothing then leaves the loop,
// as it does in a backtracking matcher. (Later rounds would need the loop's history in its state;
// that is not worth what it costs, since only the end of a span depends on it.)
//
// Where nothing is under way, the text is skipped up to the next byte that can begin a match; most
// commands are never looked at any closer by most patterns.

namespace {

// One character of a text: a code point, or one byte of malformed UTF-8, which gets the lone
// surrogate that Python's surrogateescape gives it. No well-formed text contains one.
struct RegexChar {
  std::uint32_t code = 0;
  std::size_t size = 1;
};

RegexChar regex_char_at(std::string_view text, std::size_t at) {
  const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + at;
  if (s[0] < 0x80) return {s[0], 1};
  switch (utf8_step(s, text.size() - at).good) {
    case 2:
      return {(s[0] & 0x1fu) << 6 | (s[1] & 0x3fu), 2};
    case 3:
      return {(s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu), 3};
    case 4:
      return {(s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu),
              4};
    default:
      return {0xdc00u + s[0], 1};
  }
}

// The character that ends at `end`, which is not 0.
RegexChar regex_char_before(std::string_view text, std::size_t end) {
  for (std::size_t size = 1; size <= 4 && size <= end; ++size) {
    const RegexChar c = regex_char_at(text.substr(0, end), end - size);
    if (c.size == size && (size > 1 || c.code < 0x80)) return c;
  }
  return regex_char_at(text.substr(0, end), end - 1);
}

// The first and the last character of a range.
using RegexRange = std::pair<std::uint32_t, std::uint32_t>;

constexpr std::uint32_t regex_last_code = 0x10ffff;

// White space above ASCII: exactly the characters of Python's str.isspace().
constexpr RegexRange regex_spaces[] = {
    {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

// What is not a word character above ASCII, by block; lone surrogates stand for malformed bytes.
constexpr RegexRange regex_non_words[] = {
    {0x80, 0xa9},        {0xab, 0xb1},       {0xb4, 0xb4},       {0xb6, 0xb8},
    {0xbb, 0xbb},        {0xbf, 0xbf},       {0xd7, 0xd7},       {0xf7, 0xf7},
    {0x2c2, 0x2c5},      {0x2d2, 0x2df},     {0x300, 0x36f},     {0x1680, 0x1680},
    {0x2000, 0x206f},    {0x207a, 0x207e},   {0x208a, 0x208f},   {0x20a0, 0x2101},
    {0x2190, 0x245f},    {0x249c, 0x24e9},   {0x2500, 0x2775},   {0x2794, 0x2bff},
    {0x2e00, 0x2e2e},    {0x2e30, 0x3004},   {0x3008, 0x3020},   {0x302a, 0x3030},
    {0xd800, 0xf8ff},    {0xfd3e, 0xfd4f},   {0xfe00, 0xfe6f},   {0xfeff, 0xff0f},
    {0xff1a, 0xff20},    {0xff3b, 0xff40},   {0xff5b, 0xff65},   {0xffe0, 0xffff},
    {0x1d000, 0x1d2df},  {0x1d300, 0x1d35f}, {0x1f000, 0x1f0ff}, {0x1f10d, 0x1fbef},
    {0xe0000, 0x10ffff},
};

// Sorts the ranges and joins those that touch.
void normalize_ranges(std::vector<RegexRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RegexRange& a, const RegexRange& b) { return a.first < b.first; });
  std::size_t size = 0;
  for (const RegexRange& range : ranges) {
    if (size > 0 && range.first <= ranges[size - 1].second + 1)
      ranges[size - 1].second = std::max(ranges[size - 1].second, range.second);
    else
      ranges[size++] = range;
  }
  ranges.resize(size);
}

// The ranges that are left; takes and gives normalized ones.
std::vector<RegexRange> complement(const std::vector<RegexRange>& ranges) {
  std::vector<RegexRange> rest;
  std::uint32_t next = 0;
  for (const RegexRange& range : ranges) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.second + 1;
  }
  if (next <= regex_last_code) rest.push_back({next, regex_last_code});
  return rest;
}

// The ranges of \d, \s or \w, or of the capital's complement.
std::vector<RegexRange> shorthand_ranges(char letter, bool ascii) {
  std::vector<RegexRange> ranges;
  switch (letter) {
    case 'd':
    case 'D':
      ranges = {{'0', '9'}};
      break;
    case 's':
    case 'S':
      ranges = {{'\t', '\r'}, {' ', ' '}};
      if (ascii) break;
      ranges.push_back({0x1c, 0x1f});
      ranges.insert(ranges.end(), std::begin(regex_spaces), std::end(regex_spaces));
      break;
    default:
      if (!ascii) {
        ranges.push_back({0, 0x7f});
        ranges.insert(ranges.end(), std::begin(regex_non_words), std::end(regex_non_words));
        normalize_ranges(ranges);
        ranges = complement(ranges);
      }
      for (const RegexRange& range :
           {RegexRange{'0', '9'}, RegexRange{'A', 'Z'}, RegexRange{'_', '_'}, RegexRange{'a', 'z'}})
        ranges.push_back(range);
  }
  normalize_ranges(ranges);
  return letter < 'a' ? complement(ranges) : ranges;
}

bool is_ascii_word(std::uint32_t code) {
  return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || code == '_' ||
         (code >= 'a' && code <= 'z');
}

bool is_regex_word(std::uint32_t code) {
  if (code < 0x80) return is_ascii_word(code);
  return std::none_of(
      std::begin(regex_non_words), std::end(regex_non_words),
      [code](const RegexRange& range) { return code >= range.first && code <= range.second; });
}

bool is_ascii_letter(std::uint32_t code) {
  return (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

bool is_ascii_digit(std::uint32_t code) { return code >= '0' && code <= '9'; }

// What can hold between two characters: a bit each, so that a position is judged once for all.
enum RegexAssertion : std::uint32_t {
  at_text_start = 1,
  at_line_start = 2,
  at_text_end = 4,
  at_last_line_end = 8,  // at the end, or before the newline that ends the text
  at_line_end = 16,
  at_word_edge = 32,
  at_no_word_edge = 64,
  at_ascii_word_edge = 128,
  at_no_ascii_word_edge = 256,
};

}  // namespace

struct Regex::Program {
  // A set of characters: a bit for each ASCII one, sorted ranges for the rest.
  class Set {
   public:
    // Takes normalized ranges.
    explicit Set(const std::vector<RegexRange>& ranges) {
      for (const RegexRange& range : ranges) {
        for (std::uint32_t code = range.first; code <= range.second && code < 0x80; ++code)
          ascii_[code >> 6] |= std::uint64_t{1} << (code & 63);
        if (range.second >= 0x80) ranges_.push_back({std::max(range.first, 0x80u), range.second});
      }
    }
    bool contains(std::uint32_t code) const {
      if (code < 0x80) return (ascii_[code >> 6] >> (code & 63) & 1) != 0;
      const auto behind = std::upper_bound(
          ranges_.begin(), ranges_.end(), code,
          [](std::uint32_t c, const RegexRange& range) { return c < range.first; });
      return behind != ranges_.begin() && code <= std::prev(behind)->second;
    }
    bool has_non_ascii() const { return !ranges_.empty(); }

   private:
    std::uint64_t ascii_[2] = {0, 0};
    std::vector<RegexRange> ranges_ = {};
  };

  // One step of a program. Offsets are relative to the step itself.
  struct Step {
    enum class Kind : std::uint8_t {
      one,     // consumes the character `value`
      folded,  // consumes an ASCII letter whose lower case is `value`
      set,     // consumes a character of set `value`
      split,   // goes on at `value`, or else at `other`
      jump,    // goes on at `value`
      check,   // goes on where the RegexAssertion `value` holds
      match,   // is done
    };
    Kind kind = Kind::match;
    std::int32_t value = 0;
    std::int32_t other = 0;
  };

  std::string pattern = {};
  std::vector<Step> steps = {};
  std::vector<Set> sets = {};
  bool has_assertions = false;
  // Whether each match begins with one of the bytes in `first_byte`: false when one may be empty.
  bool can_skip = false;
  std::array<bool, 256> first_byte = {};

  static std::size_t target(std::size_t from, std::int32_t offset) {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(from) + offset);
  }
  bool consumes(const Step& step, std::uint32_t code) const {
    switch (step.kind) {
      case Step::Kind::one:
        return code == static_cast<std::uint32_t>(step.value);
      case Step::Kind::folded:
        return (code | 0x20) == static_cast<std::uint32_t>(step.value);
      default:
        return sets[static_cast<std::size_t>(step.value)].contains(code);
    }
  }
};

// Reads a pattern and writes its program. Used once.
class Regex::Parser {
 public:
  Parser(std::string_view pattern, const Options& options) : pattern_(pattern) {
    flags_.ignore_case = options.ignore_case;
    flags_.dot_matches_newline = options.dot_matches_newline;
    flags_.multi_line = options.multi_line;
    common_sets_.fill(-1);
  }

  Expected<std::shared_ptr<const Program>> parse() {
    constexpr std::size_t longest_pattern = 65536;
    if (pattern_.size() > longest_pattern)
      fail(longest_pattern, "the pattern is longer than 65536 bytes", ErrorCode::limit);
    else if (alternatives() && at_ < pattern_.size())
      fail(at_, "unbalanced parenthesis");
    append(Kind::match, 0);
    if (error_) return *error_;
    program_->pattern = std::string(pattern_);
    find_first_bytes();
    return std::shared_ptr<const Program>(std::move(program_));
  }

 private:
  using Step = Program::Step;
  using Kind = Step::Kind;

  struct Flags {
    bool ignore_case = false;
    bool dot_matches_newline = false;
    bool multi_line = false;
    bool verbose = false;
    bool ascii = false;
  };

  // What stands before a quantifier.
  enum class Item { nothing, assertion, atom, repeated };

  struct Quantifier {
    std::size_t least = 0;
    std::size_t most = 0;  // `unbounded` for no bound
    bool lazy = false;
  };

  static constexpr std::string_view shorthands = "dDsSwW";
  static constexpr std::size_t deepest_nesting = 200;
  static constexpr std::size_t longest_program = 100000;
  static constexpr std::size_t largest_count = 10000;
  static constexpr std::size_t unbounded = static_cast<std::size_t>(-1);

  std::string_view pattern_;
  std::size_t at_ = 0;
  Flags flags_ = {};
  std::size_t depth_ = 0;
  bool at_start_ = true;  // nothing but flags and comments so far
  std::vector<std::string_view> names_ = {};
  std::array<std::int32_t, 14> common_sets_ = {};  // -1 where it is not made yet
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::optional<Error> error_ = {};

  // errors and input ------------------------------------------------------------------------------

  bool fail(std::size_t offset, std::string_view what, ErrorCode code = ErrorCode::parse) {
    if (!error_)
      error_ = make_error(code, concat({what, " at byte ", std::to_string(offset)}), offset);
    return false;
  }
  bool unsupported(std::size_t offset, std::string_view what) {
    return fail(offset, concat({what, " cannot be matched in linear time"}),
                ErrorCode::unsupported);
  }
  bool at_end() const { return at_ == pattern_.size(); }
  char peek() const { return at_end() ? '\0' : pattern_[at_]; }
  bool next_is(char c) const { return !at_end() && pattern_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  std::uint32_t take_char() {
    const RegexChar c = regex_char_at(pattern_, at_);
    at_ += c.size;
    return c.code;
  }

  // the program -----------------------------------------------------------------------------------

  std::vector<Step>& steps() { return program_->steps; }

  bool has_room(std::size_t more, std::size_t offset) {
    if (steps().size() + more <= longest_program) return true;
    return fail(offset, "the compiled pattern is too large", ErrorCode::limit);
  }
  bool append(Kind kind, std::int32_t value) {
    if (!has_room(1, at_)) return false;
    steps().push_back({kind, value, 0});
    return true;
  }
  static Step split(std::size_t into, std::size_t past, bool lazy) {
    const auto a = static_cast<std::int32_t>(into);
    const auto b = static_cast<std::int32_t>(past);
    return lazy ? Step{Kind::split, b, a} : Step{Kind::split, a, b};
  }
  bool append_char(std::uint32_t code) {
    const bool folded = flags_.ignore_case && is_ascii_letter(code);
    return append(folded ? Kind::folded : Kind::one,
                  static_cast<std::int32_t>(folded ? code | 0x20 : code));
  }
  std::int32_t add_set(const std::vector<RegexRange>& ranges) {
    program_->sets.emplace_back(ranges);
    return static_cast<std::int32_t>(program_->sets.size() - 1);
  }
  // The dot, \d and their like appear often: each of them has one set per program.
  bool append_common(std::size_t index, const std::vector<RegexRange>& ranges) {
    std::int32_t& common = common_sets_[index];
    if (common < 0) common = add_set(ranges);
    return append(Kind::set, common);
  }
  bool append_shorthand(char letter) {
    const std::size_t index = shorthands.find(letter) + (flags_.ascii ? shorthands.size() : 0);
    return append_common(index, shorthand_ranges(letter, flags_.ascii));
  }
  bool append_dot() {
    constexpr std::size_t index = 2 * shorthands.size();
    if (flags_.dot_matches_newline) return append_common(index, {{0, regex_last_code}});
    return append_common(index + 1, {{0, '\n' - 1}, {'\n' + 1, regex_last_code}});
  }
  bool append_assertion(RegexAssertion assertion) {
    program_->has_assertions = true;
    return append(Kind::check, static_cast<std::int32_t>(assertion));
  }

  // The bytes that can begin a match: what the first consuming steps take, whatever the position.
  void find_first_bytes() {
    std::vector<std::size_t> todo = {0};
    std::vector<bool> seen(steps().size());
    program_->can_skip = true;
    while (!todo.empty()) {
      const std::size_t at = todo.back();
      todo.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      const Step step = steps()[at];
      switch (step.kind) {
        case Kind::split:
          todo.push_back(Program::target(at, step.other));
          todo.push_back(Program::target(at, step.value));
          break;
        case Kind::jump:
          todo.push_back(Program::target(at, step.value));
          break;
        case Kind::check:
          todo.push_back(at + 1);
          break;
        case Kind::match:
          program_->can_skip = false;
          return;
        default:
          add_first_bytes(step);
      }
    }
  }
  void add_first_bytes(const Step& step) {
    auto& first = program_->first_byte;
    for (std::uint32_t code = 0; code < 0x80; ++code)
      if (program_->consumes(step, code)) first[code] = true;
    const bool high = step.kind == Kind::set
                          ? program_->sets[static_cast<std::size_t>(step.value)].has_non_ascii()
                          : step.value >= 0x80;
    if (high) std::fill(first.begin() + 0x80, first.end(), true);
  }

  // alternatives, sequences, quantifiers ----------------------------------------------------------

  bool alternatives() {
    std::vector<std::size_t> exits;
    std::size_t branch = steps().size();
    for (;;) {
      if (!sequence()) return false;
      if (!take('|')) break;
      at_start_ = false;
      // In front of the branch: try it, or else go on behind its jump to the end.
      if (!has_room(2, at_)) return false;
      steps().insert(steps().begin() + static_cast<std::ptrdiff_t>(branch),
                     split(1, steps().size() + 2 - branch, false));
      exits.push_back(steps().size());
      append(Kind::jump, 0);
      branch = steps().size();
    }
    for (const std::size_t exit : exits)
      steps()[exit].value = static_cast<std::int32_t>(steps().size() - exit);
    return true;
  }

  bool sequence() {
    Item item = Item::nothing;
    std::size_t item_start = steps().size();
    for (;;) {
      if (flags_.verbose) skip_verbose();
      if (error_) return false;
      if (at_end() || next_is('|') || next_is(')')) return true;
      const std::size_t offset = at_;
      Quantifier quantifier;
      if (take_quantifier(quantifier)) {
        if (item == Item::nothing || item == Item::assertion)
          return fail(offset, "nothing to repeat");
        if (item == Item::repeated) return fail(offset, "multiple repeat");
        if (error_ || !repeat(item_start, quantifier, offset)) return false;
        item = Item::repeated;
        continue;
      }
      const std::size_t start = steps().size();
      const Item next = take_item();
      if (error_) return false;
      if (next == Item::nothing) continue;  // a comment or flags: what stands before stays
      at_start_ = false;
      item = next;
      item_start = start;
    }
  }

  void skip_verbose() {
    while (!at_end()) {
      const char c = peek();
      if (c == ' ' || (c >= '\t' && c <= '\r'))
        ++at_;
      else if (c == '#')
        while (!at_end() && !take('\n')) skip_comment_char();
      else
        return;
    }
  }

  // False where no quantifier stands; true with an error_ when one does that cannot be.
  bool take_quantifier(Quantifier& quantifier) {
    const std::size_t offset = at_;
    if (take('*'))
      quantifier = {0, unbounded, false};
    else if (take('+'))
      quantifier = {1, unbounded, false};
    else if (take('?'))
      quantifier = {0, 1, false};
    else if (!take_counts(quantifier))
      return false;
    if (next_is('+'))
      unsupported(at_, "a possessive quantifier");
    else
      quantifier.lazy = take('?');
    if (quantifier.most != unbounded && quantifier.least > quantifier.most)
      fail(offset, "min repeat greater than max repeat");
    return true;
  }

  // {m} {m,} {,n} {m,n}. A brace of any other shape is a character like others.
  bool take_counts(Quantifier& quantifier) {
    const std::size_t offset = at_;
    if (!take('{')) return false;
    const auto number = [this](std::size_t absent) {
      if (!is_ascii_digit(static_cast<unsigned char>(peek()))) return absent;
      std::size_t value = 0;
      for (; is_ascii_digit(static_cast<unsigned char>(peek())); ++at_)
        value = std::min(value * 10 + static_cast<std::size_t>(peek() - '0'), largest_count + 1);
      return value;
    };
    const bool empty = next_is('}');
    quantifier.least = number(0);
    quantifier.most = take(',') ? number(unbounded) : quantifier.least;
    if (empty || !take('}')) {
      at_ = offset;
      return false;
    }
    if (quantifier.least > largest_count ||
        (quantifier.most > largest_count && quantifier.most != unbounded))
      fail(offset, "a repeat count is above 10000", ErrorCode::limit);
    return true;
  }

  // Makes the code from `start` to the end repeat. Counts are written out: x{2,4} as xx(x(x)?)?.
  bool repeat(std::size_t start, const Quantifier& quantifier, std::size_t offset) {
    const std::vector<Step> body(steps().begin() + static_cast<std::ptrdiff_t>(start),
                                 steps().end());
    const std::size_t size = body.size();
    if (size == 0) return true;
    const bool endless = quantifier.most == unbounded;
    const std::size_t copies =
        endless ? std::max<std::size_t>(quantifier.least, 1) : quantifier.most;
    const std::size_t optional = copies - std::min(copies, quantifier.least);

    std::vector<Step>& code = steps();
    code.resize(start);
    if (!has_room(copies * size + optional + (endless ? 1 : 0), offset)) return false;
    for (std::size_t copy = 0; copy < copies; ++copy) {
      // An optional copy is left to the end of the last one.
      if (copy >= quantifier.least) {
        const std::size_t left = copies - copy;
        code.push_back(split(1, left * (size + 1) + (endless ? 1 : 0), quantifier.lazy));
      }
      code.insert(code.end(), body.begin(), body.end());
    }
    if (!endless) return true;
    const auto back = -static_cast<std::int32_t>(size);
    code.push_back(quantifier.lazy ? Step{Kind::split, 1, back} : Step{Kind::split, back, 1});
    return true;
  }

  // items -----------------------------------------------------------------------------------------

  Item take_item() {
    const std::size_t offset = at_;
    const std::uint32_t c = take_char();
    switch (c) {
      case '\\':
        return escape(offset);
      case '[':
        set(offset);
        return Item::atom;
      case '(':
        return group(offset);
      case '.':
        append_dot();
        return Item::atom;
      case '^':
        append_assertion(flags_.multi_line ? at_line_start : at_text_start);
        return Item::assertion;
      case '$':
        append_assertion(flags_.multi_line ? at_line_end : at_last_line_end);
        return Item::assertion;
      default:
        append_char(c);
        return Item::atom;
    }
  }

  Item escape(std::size_t offset) {
    switch (peek()) {
      case 'A':
        ++at_;
        append_assertion(at_text_start);
        return Item::assertion;
      case 'Z':
        ++at_;
        append_assertion(at_text_end);
        return Item::assertion;
      case 'b':
        ++at_;
        append_assertion(flags_.ascii ? at_ascii_word_edge : at_word_edge);
        return Item::assertion;
      case 'B':
        ++at_;
        append_assertion(flags_.ascii ? at_no_ascii_word_edge : at_no_word_edge);
        return Item::assertion;
      default:
        break;
    }
    if (const char letter = take_shorthand()) {
      append_shorthand(letter);
      return Item::atom;
    }
    std::uint32_t code = 0;
    if (escaped_char(offset, false, code)) append_char(code);
    return Item::atom;
  }

  // The letter of \d, \D and so on, or 0.
  char take_shorthand() {
    if (at_end() || shorthands.find(peek()) == std::string_view::npos) return 0;
    return pattern_[at_++];
  }

  // An escape that stands for one character; `at_` is behind the backslash.
  bool escaped_char(std::size_t offset, bool in_set, std::uint32_t& code) {
    if (at_end()) return fail(offset, "bad escape (end of pattern)");
    const std::size_t first = at_;
    code = take_char();
    switch (code) {
      case 'a':
        code = '\a';
        return true;
      case 'f':
        code = '\f';
        return true;
      case 'n':
        code = '\n';
        return true;
      case 'r':
        code = '\r';
        return true;
      case 't':
        code = '\t';
        return true;
      case 'v':
        code = '\v';
        return true;
      case 'x':
        return hex(offset, 2, code);
      case 'u':
        return hex(offset, 4, code);
      case 'U':
        return hex(offset, 8, code);
      case 'N':
        return fail(offset, "named characters (\\N) are not known", ErrorCode::unsupported);
      default:
        break;
    }
    if (in_set && code == 'b') {
      code = '\b';
      return true;
    }
    if (is_ascii_digit(code)) {
      at_ = first;
      return octal(offset, in_set, code);
    }
    if (is_ascii_letter(code)) return fail(offset, "bad escape");
    return true;
  }

  bool hex(std::size_t offset, int digits, std::uint32_t& code) {
    code = 0;
    for (int i = 0; i < digits; ++i) {
      const auto c = static_cast<unsigned char>(peek());
      const auto lower = static_cast<unsigned char>(c | 0x20);
      if (is_ascii_digit(c))
        code = code << 4 | (c - '0' + 0u);
      else if (lower >= 'a' && lower <= 'f')
        code = code << 4 | (lower - 'a' + 10u);
      else
        return fail(offset, "incomplete escape");
      ++at_;
    }
    return code <= regex_last_code || fail(offset, "bad escape");
  }

  // \0, \01 and \012 are characters anywhere; another digit is one only where three octal digits
  // stand, or in a set. Everything else refers back to a group.
  bool octal(std::size_t offset, bool in_set, std::uint32_t& code) {
    const auto is_octal = [this](std::size_t at) {
      return at < pattern_.size() && pattern_[at] >= '0' && pattern_[at] <= '7';
    };
    const bool three = is_octal(at_) && is_octal(at_ + 1) && is_octal(at_ + 2);
    if (in_set ? !is_octal(at_) : peek() != '0' && !three)
      return in_set ? fail(offset, "bad escape") : unsupported(offset, "a back-reference");
    code = 0;
    for (int i = 0; i < 3 && is_octal(at_); ++i)
      code = code << 3 | static_cast<std::uint32_t>(pattern_[at_++] - '0');
    return code <= 0377 || fail(offset, "octal escape value outside of range 0-0o377");
  }

  // sets ------------------------------------------------------------------------------------------

  bool set(std::size_t offset) {
    std::vector<RegexRange> ranges;
    const bool negated = take('^');
    for (bool first = true; first || !take(']'); first = false) {
      if (!set_item(offset, ranges)) return false;
    }
    if (flags_.ignore_case) add_other_case(ranges);
    normalize_ranges(ranges);
    return append(Kind::set, add_set(negated ? complement(ranges) : ranges));
  }

  // One character, range or shorthand of the set that began at `set_offset`.
  bool set_item(std::size_t set_offset, std::vector<RegexRange>& ranges) {
    const std::size_t offset = at_;
    RegexRange range;
    char shorthand = 0;
    if (!set_bound(set_offset, range.first, shorthand)) return false;
    range.second = range.first;
    const bool is_range = next_is('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
    if (is_range) {
      ++at_;
      char other_shorthand = 0;
      if (!set_bound(set_offset, range.second, other_shorthand)) return false;
      if (shorthand || other_shorthand || range.second < range.first)
        return fail(offset, "bad character range");
    }
    if (!shorthand) {
      ranges.push_back(range);
      return true;
    }
    const std::vector<RegexRange> more = shorthand_ranges(shorthand, flags_.ascii);
    ranges.insert(ranges.end(), more.begin(), more.end());
    return true;
  }

  bool set_bound(std::size_t set_offset, std::uint32_t& code, char& shorthand) {
    if (at_end()) return fail(set_offset, "unterminated character set");
    const std::size_t offset = at_;
    code = take_char();
    if (code != '\\') return true;
    shorthand = take_shorthand();
    return shorthand || escaped_char(offset, true, code);
  }

  static void add_other_case(std::vector<RegexRange>& ranges) {
    const std::size_t size = ranges.size();
    for (std::size_t i = 0; i < size; ++i) {
      const RegexRange range = ranges[i];
      for (std::uint32_t code = std::max<std::uint32_t>(range.first, 'A');
           code <= std::min<std::uint32_t>(range.second, 'z'); ++code)
        if (is_ascii_letter(code)) ranges.push_back({code ^ 0x20, code ^ 0x20});
    }
  }

  // groups ----------------------------------------------------------------------------------------

  // Behind an opening parenthesis.
  Item group(std::size_t offset) {
    const Flags outer = flags_;
    if (take('?')) {
      if (take('#')) return comment(offset);
      bool ends = false;
      if (!group_head(offset, ends)) return Item::nothing;
      if (ends) return Item::nothing;
    }
    at_start_ = false;
    if (++depth_ > deepest_nesting) {
      fail(offset, "groups are nested more than 200 deep", ErrorCode::limit);
      return Item::nothing;
    }
    if (alternatives() && !take(')')) fail(offset, "missing ), unterminated subpattern");
    --depth_;
    flags_ = outer;
    return Item::atom;
  }

  Item comment(std::size_t offset) {
    while (!at_end()) {
      if (take(')')) return Item::nothing;
      skip_comment_char();
    }
    fail(offset, "missing ), unterminated comment");
    return Item::nothing;
  }

  // An escaped character does not end a comment.
  void skip_comment_char() {
    if (take('\\') && at_end()) fail(at_ - 1, "bad escape (end of pattern)");
    if (!at_end()) ++at_;
  }

  // What stands between (? and the content of a group. `ends` tells that there is no content: flags
  // for the rest of the pattern.
  bool group_head(std::size_t offset, bool& ends) {
    if (at_end()) return fail(offset, "unexpected end of pattern");
    switch (peek()) {
      case ':':
        ++at_;
        return true;
      case 'P':
        ++at_;
        return named_group(offset);
      case '=':
      case '!':
        return unsupported(offset, "look-ahead");
      case '<':
        if (starts_with(pattern_.substr(at_), "<=") || starts_with(pattern_.substr(at_), "<!"))
          return unsupported(offset, "look-behind");
        return fail(offset, "unknown extension ?<");
      case '(':
        return unsupported(offset, "a conditional group");
      case '>':
        return unsupported(offset, "an atomic group");
      default:
        return flag_group(offset, ends);
    }
  }

  bool named_group(std::size_t offset) {
    if (next_is('=')) return unsupported(offset, "a back-reference");
    if (!take('<')) return fail(offset, "unknown extension ?P");
    const std::size_t end = pattern_.find('>', at_);
    if (end == std::string_view::npos) return fail(at_, "missing >, unterminated name");
    const std::string_view group_name = pattern_.substr(at_, end - at_);
    if (group_name.empty()) return fail(at_, "missing group name");
    for (std::size_t i = 0; i < group_name.size();) {
      const RegexChar c = regex_char_at(group_name, i);
      if (!is_regex_word(c.code) || (i == 0 && is_ascii_digit(c.code)))
        return fail(at_, "bad character in group name");
      i += c.size;
    }
    if (std::find(names_.begin(), names_.end(), group_name) != names_.end())
      return fail(at_, "redefinition of group name");
    names_.push_back(group_name);
    at_ = end + 1;
    return true;
  }

  // (?flags) (?flags: (?flags-flags: (?-flags:
  bool flag_group(std::size_t offset, bool& ends) {
    Flags flags = flags_;
    std::string on;
    std::string off;
    if (!take_flags(offset, "aimsux", on)) return false;
    if (take('-')) {
      if (!take_flags(offset, "imsx", off)) return false;
      if (off.empty()) return fail(at_, "missing flag");
      if (off.find_first_of(on) != std::string::npos)
        return fail(at_, "bad inline flags: flag turned on and off");
    }
    if (on.find('a') != std::string::npos && on.find('u') != std::string::npos)
      return fail(at_, "bad inline flags: flags 'a' and 'u' are incompatible");
    if (on.empty() && off.empty()) return fail(offset, "unknown extension");
    for (const char flag : on) set_flag(flags, flag, true);
    for (const char flag : off) set_flag(flags, flag, false);
    if (off.empty() && take(')')) {
      if (!at_start_) return fail(offset, "global flags not at the start of the expression");
      ends = true;
    } else if (!take(':')) {
      return fail(at_, off.empty() ? "missing -, : or )" : "missing :");
    }
    flags_ = flags;
    return true;
  }

  bool take_flags(std::size_t offset, std::string_view known, std::string& flags) {
    for (; is_ascii_letter(static_cast<unsigned char>(peek())); ++at_) {
      const char flag = peek();
      if (known.find(flag) == std::string_view::npos) return fail(offset, "unknown flag");
      if (flags.find(flag) == std::string::npos) flags += flag;
    }
    return true;
  }

  static void set_flag(Flags& flags, char flag, bool value) {
    switch (flag) {
      case 'a':
        flags.ascii = true;
        break;
      case 'i':
        flags.ignore_case = value;
        break;
      case 'm':
        flags.multi_line = value;
        break;
      case 's':
        flags.dot_matches_newline = value;
        break;
      case 'u':
        flags.ascii = false;
        break;
      default:
        flags.verbose = value;
    }
  }
};

// Runs a program over one text. Used once.
class Regex::Matcher {
 public:
  Matcher(const Program& program, std::string_view text) : program_(program), text_(text) {}

  // Any match that begins at 0; one that is the whole text if `whole`.
  bool matches_start(bool whole) {
    anchored_ = true;
    whole_ = whole;
    any_will_do_ = true;
    return run(0);
  }
  bool matches_anywhere() {
    any_will_do_ = true;
    return run(0);
  }
  std::optional<Span> first_match(std::size_t from) {
    if (from > text_.size() || !run(from)) return std::nullopt;
    return best_;
  }

 private:
  using Kind = Program::Step::Kind;

  // A place in the program that was reached, and where in the text its match began.
  struct Thread {
    std::size_t step = 0;
    std::size_t begin = 0;
  };

  const Program& program_;
  std::string_view text_;
  bool anchored_ = false;
  bool whole_ = false;
  bool any_will_do_ = false;
  bool matched_ = false;
  Span best_ = {};
  std::vector<Thread> arrived_ = {};    // after the last character, the preferred first
  std::vector<Thread> ready_ = {};      // at steps that consume a character
  std::vector<std::size_t> seen_ = {};  // by step: the position + 1 at which it was reached
  std::vector<std::size_t> todo_ = {};  // of follow()

  bool run(std::size_t from) {
    for (std::size_t at = from;;) {
      if (arrived_.empty()) {
        if (matched_ || (anchored_ && at > from) || !skip(at)) return matched_;
        if (seen_.empty()) seen_.resize(program_.steps.size());
      }
      const bool at_end = at == text_.size();
      const RegexChar next = at_end ? RegexChar{} : regex_char_at(text_, at);
      const std::uint32_t holds = program_.has_assertions ? assertions(at, next) : 0;
      ready_.clear();
      bool go_on = true;
      for (std::size_t i = 0; go_on && i < arrived_.size(); ++i)
        go_on = follow(arrived_[i], at, holds);
      if (go_on && !matched_ && (!anchored_ || at == from)) follow({0, at}, at, holds);
      if (at_end || (matched_ && any_will_do_)) return matched_;
      arrived_.clear();
      for (const Thread& thread : ready_)
        if (program_.consumes(program_.steps[thread.step], next.code))
          arrived_.push_back({thread.step + 1, thread.begin});
      at += next.size;
    }
  }

  // Moves to the next byte that can begin a match; false when there is none.
  bool skip(std::size_t& at) const {
    if (!program_.can_skip) return true;
    const auto begins = [this](std::size_t i) {
      return program_.first_byte[static_cast<unsigned char>(text_[i])];
    };
    if (anchored_) return at < text_.size() && begins(at);
    while (at < text_.size() && !begins(at)) ++at;
    return at < text_.size();
  }

  // Goes from a thread's place to all that can be reached without a character. False when this was
  // the match: what is less preferred counts no more.
  bool follow(Thread thread, std::size_t at, std::uint32_t holds) {
    todo_.assign(1, thread.step);
    while (!todo_.empty()) {
      const std::size_t place = todo_.back();
      todo_.pop_back();
      if (seen_[place] == at + 1) continue;
      seen_[place] = at + 1;
      const Program::Step& step = program_.steps[place];
      switch (step.kind) {
        case Kind::split:
          todo_.push_back(Program::target(place, step.other));
          todo_.push_back(Program::target(place, step.value));
          break;
        case Kind::jump:
          todo_.push_back(Program::target(place, step.value));
          break;
        case Kind::check:
          if (holds & static_cast<std::uint32_t>(step.value)) todo_.push_back(place + 1);
          break;
        case Kind::match:
          if (whole_ && at != text_.size()) break;
          matched_ = true;
          best_ = {thread.begin, at};
          return false;
        default:
          ready_.push_back({place, thread.begin});
      }
    }
    return true;
  }

  // The RegexAssertions that hold at `at`, before the character `next`.
  std::uint32_t assertions(std::size_t at, RegexChar next) const {
    const bool start = at == 0;
    const bool end = at == text_.size();
    const RegexChar before = start ? RegexChar{} : regex_char_before(text_, at);
    const bool newline = !end && next.code == '\n';
    const bool edge = (!start && is_regex_word(before.code)) != (!end && is_regex_word(next.code));
    const bool ascii_edge =
        (!start && is_ascii_word(before.code)) != (!end && is_ascii_word(next.code));
    std::uint32_t holds = edge ? at_word_edge : at_no_word_edge;
    holds |= ascii_edge ? at_ascii_word_edge : at_no_ascii_word_edge;
    if (start) holds |= at_text_start;
    if (start || before.code == '\n') holds |= at_line_start;
    if (end) holds |= at_text_end;
    if (end || (newline && at + 1 == text_.size())) holds |= at_last_line_end;
    if (end || newline) holds |= at_line_end;
    return holds;
  }
};

Expected<Regex> Regex::compile(std::string_view pattern) { return compile(pattern, Options()); }

Expected<Regex> Regex::compile(std::string_view pattern, const Options& options) {
  auto program = Parser(pattern, options).parse();
  if (!program) return program.error();
  return Regex(std::move(*program));
}

bool Regex::match(std::string_view text) const {
  return Matcher(*program_, text).matches_start(false);
}

bool Regex::full_match(std::string_view text) const {
  return Matcher(*program_, text).matches_start(true);
}

bool Regex::search(std::string_view text) const {
  return Matcher(*program_, text).matches_anywhere();
}

std::optional<Regex::Span> Regex::find(std::string_view text, std::size_t from) const {
  return Matcher(*program_, text).first_match(from);
}

const std::string& Regex::pattern() const noexcept { return program_->pattern; }

// =================================================================================================
// >>shell (definitions)
// =================================================================================================
//
// In two steps. ShellParser turns text into a tree (ShellSyntax), by the grammar of POSIX.1-2024
// chapter 2 and bash's additions to it. ShellWalker then goes through the tree in the order of
// execution, as a shell would, except that it takes every branch: it keeps the variables, expands
// the words, and tells each simple command. Strings that are run (eval, the payloads of visitors)
// are parsed when the walk comes to them, into the same tree.
//
// Both steps recurse only as deep as Limits::max_depth allows. The parser reads each character at
// most once per level of nesting; it never goes back, except that `((` is looked through first, to
// tell arithmetic from a nested subshell. The walk is bounded by Limits: whatever makes one word
// stand for many, or many commands out of one, is charged to them.
//
// Where the shells themselves do not agree on how a text is read, or where a reading would be
// guesswork, that is a syntax error. Where a value cannot be known, it is unknown. The walk may
// tell a command that never runs; it must not miss one that does.

namespace {

constexpr std::uint32_t no_index = 0xffffffff;

// A slice of one of the tables of ShellSyntax.
struct ShellRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// A piece of a word before expansion.
struct ShellPart {
  enum class Kind : std::uint8_t {
    literal,     // `text`, quotes removed
    unknown,     // an unknown part of a payload
    tilde,       // ~ and ~name at the start; `text` is the name
    parameter,   // $name, ${name...}
    command,     // $( ) and backquotes: `node`
    process,     // <( ) and >( ): `node`
    arithmetic,  // $(( )): `operand`
  };
  Kind kind = Kind::literal;
  bool quoted = false;
  // Of ${name...}:
  char operation = 0;                  // one of - = ? + % # / : ^ , @ or 0
  bool colon = false;                  // :- := :? :+
  bool doubled = false;                // %% ## // ^^ ,,
  bool length = false;                 // ${#name}
  bool indirect = false;               // ${!name}
  bool output = false;                 // of process: >( )
  std::uint32_t subscript = no_index;  // a word
  std::uint32_t operand = no_index;    // a word
  std::uint32_t node = no_index;
  std::string_view text = {};  // literal text, or the name
};

// A word before expansion. Positions are bytes of the script.
struct ShellWord {
  ShellRange parts = {};
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool braces = false;  // has an unquoted { that may begin a brace expansion
  bool quoted = false;  // some of it is quoted: no alias, no here-document expansion
};

struct ShellAssignment {
  std::string_view name = {};
  std::uint32_t subscript = no_index;
  std::uint32_t value = no_index;  // a word, unless it is an array
  ShellRange elements = {};        // words, in `lists`
  bool array = false;
  bool append = false;    // +=
  bool declared = false;  // an operand of declare or its like
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct ShellRedirection {
  shell::Redirection::Kind kind = shell::Redirection::Kind::read;
  bool output = false;  // its operator is >, not <
  int fd = 0;
  std::uint32_t target = no_index;
};

struct ShellNode {
  enum class Kind : std::uint8_t {
    simple,          // words, assignments, redirections
    list,            // nodes
    and_or,          // nodes, each with its `joint`
    pipeline,        // nodes
    subshell,        // nodes: one
    group,           // nodes: one
    if_clause,       // nodes: condition, body, condition, body ... and perhaps a last body
    loop,            // nodes: condition, body
    for_clause,      // name, words, nodes: body; `flag`: has `in`
    arithmetic_for,  // words: one; nodes: body
    case_clause,     // words: the subject, then patterns; nodes: bodies
    function,        // name, nodes: body
    coprocess,       // nodes: one
    condition,       // [[ ]]: words
    arithmetic,      // (( )): words: one
  };
  Kind kind = Kind::simple;
  bool background = false;
  bool flag = false;
  char joint = 0;  // in an and_or: '&' or '|' before it
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  ShellRange words = {};  // in `lists`
  ShellRange nodes = {};  // in `lists`
  ShellRange assignments = {};
  ShellRange redirections = {};
  std::string_view name = {};
};

// The trees of a script and of the strings it runs.
struct ShellSyntax {
  std::vector<ShellPart> parts = {};
  std::vector<ShellWord> words = {};
  std::vector<ShellAssignment> assignments = {};
  std::vector<ShellRedirection> redirections = {};
  std::vector<ShellNode> nodes = {};
  std::vector<std::uint32_t> lists = {};      // indices of words or of nodes
  std::deque<std::string> texts = {};         // what the views of the above point into
  std::vector<std::uint32_t> pending = {};    // lists under construction
  std::vector<ShellPart> pending_parts = {};  // words under construction
};

// Characters, for fast tests.
struct CharSet {
  std::array<bool, 256> members = {};
  constexpr explicit CharSet(std::string_view characters) {
    for (const char c : characters) members[static_cast<unsigned char>(c)] = true;
  }
  constexpr bool has(char c) const { return members[static_cast<unsigned char>(c)]; }
};
constexpr CharSet word_end(" \t\n&|;<>()");
constexpr CharSet ends_plain_run(" \t\n&|;<>()\\'\"`${}]");
constexpr CharSet ends_quoted_run("\\'\"`$}]");

// Where a text stands in the script: byte i of it at begin + i, or, if it is not written there as
// it is, somewhere between begin and end.
struct ShellOrigin {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool exact = true;
};

bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }
bool is_name(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) &&
         std::all_of(text.begin(), text.end(), is_name_char);
}
bool is_shell_blank(char c) { return c == ' ' || c == '\t'; }
bool has_glob(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

// Up to `most` digits of a base from text[at] on; advances `at`.
std::uint32_t read_digits(std::string_view text, std::size_t& at, std::size_t most, unsigned base) {
  std::uint32_t value = 0;
  for (std::size_t n = 0; n < most && at < text.size(); ++n, ++at) {
    const char c = text[at];
    unsigned digit = 99;
    if (is_digit(c)) digit = static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A') + 10;
    if (digit >= base) break;
    value = value * base + digit;
  }
  return value;
}

// What may follow a backslash, in $'...' and in the strings of echo and printf.
enum class EscapeStyle {
  ansi_c,  // $'...'
  echo,    // echo; \c ends all output
  b,       // the operand of printf's %b; the same
  format,  // printf's format
};

// Decodes the escape after the backslash at text[at]; leaves `at` behind it. False: \c, the end of
// the output.
bool decode_escape(std::string_view text, std::size_t& at, EscapeStyle style,
                   shell::Dialect dialect, std::string& out) {
  const bool bash = dialect == shell::Dialect::bash;
  if (++at == text.size()) {
    out += '\\';
    return true;
  }
  const char c = text[at++];
  constexpr std::string_view letters = "abfnrtv\\";
  constexpr std::string_view values = "\a\b\f\n\r\t\v\\";
  if (const std::size_t i = letters.find(c); i != std::string_view::npos) {
    out += values[i];
    return true;
  }
  if (c == 'e' || (c == 'E' && bash)) {
    out += '\033';
    return true;
  }
  if ((c == '\'' || c == '"' || c == '?') && style == EscapeStyle::ansi_c) {
    out += c;
    return true;
  }
  if (c == '"' && style == EscapeStyle::format && bash) {
    out += c;
    return true;
  }
  if (c == 'c' && (style == EscapeStyle::echo || style == EscapeStyle::b)) return false;
  if (c == 'c' && style == EscapeStyle::ansi_c && at < text.size()) {
    out += static_cast<char>(text[at++] & 0x1f);
    return true;
  }
  if (c >= '0' && c <= '7') {
    // \0ddd in the strings of echo and %b; \ddd everywhere but in bash's echo.
    const bool zero_in_front = c == '0' && (style == EscapeStyle::echo || style == EscapeStyle::b);
    if (style == EscapeStyle::echo && bash && !zero_in_front) {
      out += '\\';
      out += c;
      return true;
    }
    if (!zero_in_front) --at;
    out += static_cast<char>(read_digits(text, at, 3, 8) & 0xff);
    return true;
  }
  if ((c == 'x' || c == 'u' || c == 'U') && bash) {
    const std::size_t digits_at = at;
    const std::uint32_t code = read_digits(text, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    if (at != digits_at) {
      if (c == 'x')
        out += static_cast<char>(code);
      else
        append_utf8(code, out);
      return true;
    }
  }
  out += '\\';
  out += c;
  return true;
}

// The value of $'text'. A NUL ends it.
std::string decode_ansi_c(std::string_view text) {
  std::string value;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      value += text[at++];
      continue;
    }
    const std::size_t size = value.size();
    decode_escape(text, at, EscapeStyle::ansi_c, shell::Dialect::bash, value);
    if (value.size() > size && value[size] == '\0') {
      value.resize(size);
      break;
    }
  }
  return value;
}

// Reads one text into the tree.
class ShellParser {
 public:
  ShellParser(ShellSyntax& syntax, const shell::Options& options, std::string_view text,
              ShellOrigin origin, unsigned depth)
      : syntax_(syntax), options_(options), text_(text), origin_(origin), depth_(depth) {}

  // The list node of the whole text. After a failure it holds what stands before the error.
  std::uint32_t parse() {
    const std::uint32_t node = parse_list(true);
    if (!failed_ && at_ < text_.size()) fail_here(concat({"unexpected ", quoted(token_here())}));
    return node;
  }

  bool failed() const { return failed_; }
  const Error& error() const { return error_; }
  bool dialect_dependent() const { return dialect_dependent_; }

 private:
  // What a word is part of.
  enum class Context {
    command,
    pattern,  // after =~ in [[ ]], where ( and | belong to it
  };

  bool bash() const { return options_.dialect == shell::Dialect::bash; }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool at_end() const { return at_ >= text_.size(); }
  bool looking_at(std::string_view token) const { return text_.substr(at_, token.size()) == token; }
  std::uint32_t position(std::size_t at) const {
    return origin_.exact ? origin_.begin + static_cast<std::uint32_t>(at) : origin_.begin;
  }
  std::uint32_t end_position(std::size_t at) const {
    const std::size_t within = std::min(at, text_.size());
    return origin_.exact ? origin_.begin + static_cast<std::uint32_t>(within) : origin_.end;
  }
  std::string_view token_here() const {
    std::size_t end = at_;
    while (end < text_.size() && end < at_ + 20 && !is_shell_blank(text_[end]) &&
           text_[end] != '\n')
      ++end;
    if (end == at_) end = std::min(at_ + 1, text_.size());
    return text_.substr(at_, end - at_);
  }

  void fail(ErrorCode code, std::string message, std::size_t at) {
    if (failed_) return;
    failed_ = true;
    error_ = make_error(code, std::move(message), position(std::min(at, text_.size())));
  }
  void fail_here(std::string message) { fail(ErrorCode::parse, std::move(message), at_); }
  // What began at `at` is not closed.
  void unterminated(std::string_view what, std::size_t at) {
    fail(ErrorCode::parse, concat({"unterminated ", what}), at);
  }
  bool enter() {
    if (++depth_ <= options_.limits.max_depth) return true;
    fail(ErrorCode::limit,
         concat({"nested deeper than ", std::to_string(options_.limits.max_depth), " levels"}),
         at_);
    return false;
  }
  // Reserves room for one more word or node.
  bool room() {
    if (syntax_.words.size() + syntax_.nodes.size() < 4 * options_.limits.max_words &&
        syntax_.parts.size() < 16 * options_.limits.max_words)
      return true;
    fail(ErrorCode::limit,
         concat({"more than ", std::to_string(options_.limits.max_words), " words"}), at_);
    return false;
  }

  // lists of indices ------------------------------------------------------------------------------

  std::size_t begin_list() const { return syntax_.pending.size(); }
  void add(std::uint32_t index) { syntax_.pending.push_back(index); }
  ShellRange end_list(std::size_t from) {
    const auto begin = static_cast<std::uint32_t>(syntax_.lists.size());
    syntax_.lists.insert(syntax_.lists.end(),
                         syntax_.pending.begin() + static_cast<std::ptrdiff_t>(from),
                         syntax_.pending.end());
    syntax_.pending.resize(from);
    return {begin, static_cast<std::uint32_t>(syntax_.lists.size())};
  }
  std::uint32_t add_node(ShellNode node, std::size_t end) {
    if (!room()) return no_index;
    node.end = end_position(end);
    syntax_.nodes.push_back(node);
    return static_cast<std::uint32_t>(syntax_.nodes.size() - 1);
  }
  ShellNode node_at(ShellNode::Kind kind, std::size_t at) const {
    ShellNode node;
    node.kind = kind;
    node.begin = position(at);
    return node;
  }

  // blanks, newlines, here-documents --------------------------------------------------------------

  // Blanks, comments and joined lines; only called between tokens.
  void skip_blanks() {
    for (;;) {
      const char c = peek();
      if (is_shell_blank(c)) {
        ++at_;
      } else if (c == '\\' && peek(1) == '\n') {
        at_ += 2;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  void skip_newlines() {
    for (skip_blanks(); !failed_ && peek() == '\n'; skip_blanks()) newline();
  }

  void newline() {
    ++at_;
    std::vector<HereDocument> documents;
    documents.swap(here_documents_);
    for (const HereDocument& document : documents)
      if (!failed_) read_here_document(document);
  }

  struct HereDocument {
    std::uint32_t redirection = 0;  // in the table once `placed`, before that in its command
    bool placed = false;
    std::string delimiter = {};
    bool quoted = false;
    bool strip_tabs = false;
  };

  // The lines up to the delimiter, or to the end of the text.
  void read_here_document(const HereDocument& document) {
    const std::size_t begin = at_;
    std::size_t end = at_;
    std::string stripped;  // the body without leading tabs
    std::string storage;
    for (; !at_end(); end = at_) {
      while (document.strip_tabs && peek() == '\t') ++at_;
      const std::size_t line_begin = at_;
      const std::string_view line = read_line(document.quoted, storage);
      if (line == document.delimiter) {
        // bash joins lines before it looks for the delimiter, dash does not.
        if (!storage.empty())
          fail(ErrorCode::parse, "delimiter of a here-document in joined lines", line_begin);
        break;
      }
      // There, bash ends the document, and takes the rest of the line for the script.
      if (substitutions_ > 0 && starts_with(line, document.delimiter) &&
          line.find(')') != std::string_view::npos)
        return fail(ErrorCode::parse, "text behind the delimiter of a here-document", line_begin);
      if (document.strip_tabs) stripped += text_.substr(line_begin, at_ - line_begin);
    }
    std::string_view body = text_.substr(begin, end - begin);
    ShellOrigin origin = {position(begin), end_position(end), origin_.exact};
    if (document.strip_tabs) {
      syntax_.texts.push_back(std::move(stripped));
      body = syntax_.texts.back();
      origin.exact = false;
    }
    std::uint32_t word = no_index;
    if (document.quoted) {
      const std::size_t parts = syntax_.pending_parts.size();
      add_quoted_literal(body);
      word = end_word(parts, begin, end);
    } else {
      ShellParser parser(syntax_, options_, body, origin, depth_);
      word = parser.parse_here_document_body();
      take_over(parser);
    }
    syntax_.redirections[document.redirection].target = word;
  }

  // A line of a here-document without its newline, which is consumed. Lines of an unquoted one that
  // end with a backslash are joined before the delimiter is looked for.
  std::string_view read_line(bool is_quoted, std::string& storage) {
    storage.clear();
    for (;;) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      std::size_t slashes = 0;
      while (!is_quoted && slashes < line.size() && line[line.size() - slashes - 1] == '\\')
        ++slashes;
      if (slashes % 2 == 0 || end == text_.size()) {
        if (storage.empty()) return line;
        storage += line;
        return storage;
      }
      storage += line.substr(0, line.size() - 1);
    }
  }

  void take_over(const ShellParser& parser) {
    dialect_dependent_ = dialect_dependent_ || parser.dialect_dependent_;
    if (parser.failed_ && !failed_) {
      failed_ = true;
      error_ = parser.error_;
    }
  }

  std::uint32_t parse_here_document_body() {
    const std::size_t parts = syntax_.pending_parts.size();
    while (!failed_ && !at_end()) read_quoted_piece(Quotes::here_document);
    return end_word(parts, 0, at_);
  }

  // words -----------------------------------------------------------------------------------------

  // Moves the parts from pending_parts[from] on into a new word.
  std::uint32_t end_word(std::size_t from, std::size_t begin, std::size_t end,
                         bool braces = false) {
    if (!room()) {
      syntax_.pending_parts.resize(from);
      return no_index;
    }
    ShellWord word;
    word.begin = position(begin);
    word.end = end_position(end);
    word.braces = braces;
    word.parts.begin = static_cast<std::uint32_t>(syntax_.parts.size());
    for (std::size_t i = from; i < syntax_.pending_parts.size(); ++i) {
      word.quoted = word.quoted || syntax_.pending_parts[i].quoted;
      syntax_.parts.push_back(syntax_.pending_parts[i]);
    }
    word.parts.end = static_cast<std::uint32_t>(syntax_.parts.size());
    syntax_.pending_parts.resize(from);
    syntax_.words.push_back(word);
    return static_cast<std::uint32_t>(syntax_.words.size() - 1);
  }

  ShellPart& add_part(ShellPart::Kind kind, bool quoted) {
    ShellPart part;
    part.kind = kind;
    part.quoted = quoted;
    syntax_.pending_parts.push_back(part);
    return syntax_.pending_parts.back();
  }
  // NUL bytes in it are unknown parts of a payload.
  void add_literal(std::string_view text, bool quoted) {
    while (!text.empty()) {
      const std::size_t size = std::min(text.find('\0'), text.size());
      if (size > 0) add_part(ShellPart::Kind::literal, quoted).text = text.substr(0, size);
      if (size < text.size()) add_part(ShellPart::Kind::unknown, quoted);
      text.remove_prefix(std::min(size + 1, text.size()));
    }
  }
  void add_quoted_literal(std::string_view text) {
    if (text.empty())
      add_part(ShellPart::Kind::literal, true);
    else
      add_literal(text, true);
  }

  static bool ends_word(char c) { return word_end.has(c); }

  // Reads a word of which at least one character is there.
  std::uint32_t parse_word(Context context = Context::command, bool assigned_value = false) {
    const std::size_t begin = at_;
    const std::size_t parts = syntax_.pending_parts.size();
    bool braces = false;
    unsigned parentheses = 0;  // of a pattern
    read_tilde();
    while (!failed_ && !at_end()) {
      const char c = peek();
      if (c == '(' && at_ > begin && context != Context::pattern && bash() &&
          std::string_view("?*+@!").find(text_[at_ - 1]) != std::string_view::npos) {
        read_extended_glob();
        continue;
      }
      if (context == Context::pattern && (c == '(' || c == ')' || c == '|')) {
        if (c == ')' && parentheses == 0) break;
        parentheses += c == '(' ? 1 : 0;
        parentheses -= c == ')' ? 1 : 0;
        add_literal(text_.substr(at_, 1), false);
        ++at_;
        continue;
      }
      if (context == Context::pattern && parentheses > 0 && is_shell_blank(c)) {
        ++at_;
        continue;
      }
      if ((c == '<' || c == '>') && peek(1) == '(' && bash()) {
        read_process_substitution();
        continue;
      }
      if (ends_word(c)) break;
      if (c == '{' && bash()) braces = true;
      if (c == ':' && assigned_value && peek(1) == '~') {
        add_literal(text_.substr(at_, 1), false);
        ++at_;
        read_tilde();
        continue;
      }
      read_piece(assigned_value);
    }
    if (assigned_value) braces = false;
    if (braces) note_braces(text_.substr(begin, at_ - begin));
    return end_word(parts, begin, at_, braces);
  }

  void note_braces(std::string_view text) {
    if (text.find('}') != std::string_view::npos &&
        (text.find(',') != std::string_view::npos || text.find("..") != std::string_view::npos))
      dialect_dependent_ = true;
  }

  void read_tilde() {
    if (peek() != '~') return;
    std::size_t end = at_ + 1;
    while (end < text_.size() && (is_name_char(text_[end]) || text_[end] == '-' ||
                                  text_[end] == '.' || text_[end] == '+'))
      ++end;
    const char next = end < text_.size() ? text_[end] : '/';
    if (next != '/' && next != ':' && !(next == '}' && in_braces_) && !ends_word(next)) return;
    add_part(ShellPart::Kind::tilde, false).text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
  }

  // An unquoted run, an escape, a quotation or an expansion.
  void read_piece(bool stop_at_colon = false) {
    switch (peek()) {
      case '\\':
        if (peek(1) == '\n') {
          at_ += 2;
        } else if (at_ + 1 >= text_.size()) {
          add_literal("\\", true);
          ++at_;
        } else {
          add_literal(text_.substr(at_ + 1, 1), true);
          at_ += 2;
        }
        return;
      case '\'':
        return read_single_quotes();
      case '"':
        return read_double_quotes();
      case '`':
        return read_backquotes(false);
      case '$':
        return read_dollar(Quotes::none);
      default:
        break;
    }
    const std::size_t begin = at_;
    do {
      ++at_;
    } while (at_ < text_.size() && !ends_plain_run.has(text_[at_]) &&
             !(stop_at_colon && text_[at_] == ':'));
    add_literal(text_.substr(begin, at_ - begin), false);
  }

  void read_single_quotes() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return unterminated("single quote", at_);
    add_quoted_literal(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  void read_ansi_c_quotes() {
    const std::size_t begin = at_;
    std::size_t end = at_ + 2;
    while (end < text_.size() && text_[end] != '\'') end += text_[end] == '\\' ? 2U : 1U;
    if (end >= text_.size()) return unterminated("single quote", begin);
    dialect_dependent_ = true;
    syntax_.texts.push_back(decode_ansi_c(text_.substr(begin + 2, end - begin - 2)));
    add_quoted_literal(syntax_.texts.back());
    at_ = end + 1;
  }

  // Quotation around an expansion.
  enum class Quotes { none, doubled, here_document, arithmetic };

  void read_double_quotes() {
    const std::size_t begin = at_++;
    const std::size_t parts = syntax_.pending_parts.size();
    while (!failed_ && !at_end() && peek() != '"') read_quoted_piece(Quotes::doubled);
    if (failed_) return;
    if (at_end()) return unterminated("double quote", begin);
    ++at_;
    if (syntax_.pending_parts.size() == parts) add_quoted_literal({});
  }

  // What stands in double quotes, a here-document or arithmetic.
  void read_quoted_piece(Quotes quotes) {
    switch (peek()) {
      case '\\': {
        const char next = peek(1);
        if (next == '\n') {
          at_ += 2;
        } else if (at_ + 1 < text_.size() && (next == '$' || next == '`' || next == '\\' ||
                                              (next == '"' && quotes != Quotes::here_document) ||
                                              (next == '}' && in_braces_))) {
          add_literal(text_.substr(at_ + 1, 1), true);
          at_ += 2;
        } else {
          add_literal("\\", true);
          ++at_;
        }
        return;
      }
      case '`':
        return read_backquotes(quotes == Quotes::doubled);
      case '$':
        return read_dollar(quotes);
      default:
        break;
    }
    const std::size_t begin = at_;
    do {
      ++at_;
    } while (at_ < text_.size() && !ends_quoted_run.has(text_[at_]));
    add_literal(text_.substr(begin, at_ - begin), true);
  }

  // $( ), $(( )), ${ }, $name, $'..', $"..", or a plain $.
  void read_dollar(Quotes quotes) {
    const bool quoted = quotes != Quotes::none;
    const char next = peek(1);
    if (joins_lines(at_ + 1)) return;
    if (next == '(') {
      if (peek(2) == '(' && arithmetic_end(at_ + 3) != std::string_view::npos)
        return read_arithmetic(quoted, 3, arithmetic_end(at_ + 3), 2);
      return read_command_substitution(quoted);
    }
    if (next == '{') return read_braced_parameter(quotes);
    if (next == '[' && bash()) {
      const std::size_t end = text_.find(']', at_ + 2);
      if (end == std::string_view::npos) return unterminated("$[", at_);
      dialect_dependent_ = true;
      return read_arithmetic(quoted, 2, end, 1);
    }
    if (next == '\'' && bash() && !quoted) return read_ansi_c_quotes();
    if (next == '\'' && !quoted) dialect_dependent_ = true;
    if (next == '"' && bash() && !quoted) {
      dialect_dependent_ = true;
      ++at_;
      return read_double_quotes();
    }
    std::size_t end = at_ + 1;
    if (is_name_start(next)) {
      while (end < text_.size() && is_name_char(text_[end])) ++end;
      if (joins_lines(end)) return;
    } else if (next != '\0' && (is_digit(next) || is_special_parameter(next))) {
      ++end;
    } else {
      add_literal("$", true);
      ++at_;
      return;
    }
    add_part(ShellPart::Kind::parameter, quoted).text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
  }
  // Shells join lines even in the middle of $name. Nobody writes that, but to hide something.
  bool joins_lines(std::size_t at) {
    if (text_.substr(at, 2) != "\\\n") return false;
    fail(ErrorCode::parse, "line joined in the middle of an expansion", at);
    return true;
  }
  static bool is_special_parameter(char c) {
    return std::string_view("@*#?-$!").find(c) != std::string_view::npos;
  }

  void read_command_substitution(bool quoted) {
    const std::size_t begin = at_;
    at_ += 2;
    const std::uint32_t node = parse_nested(')', "$(", begin);
    if (!failed_) add_part(ShellPart::Kind::command, quoted).node = node;
  }

  void read_process_substitution() {
    const std::size_t begin = at_;
    const bool output = peek() == '>';
    dialect_dependent_ = true;
    at_ += 2;
    const std::uint32_t node = parse_nested(')', output ? ">(" : "<(", begin);
    if (failed_) return;
    ShellPart& part = add_part(ShellPart::Kind::process, false);
    part.node = node;
    part.output = output;
  }

  // A list up to `close`, which is consumed. Here-documents that begin in it end in it.
  std::uint32_t parse_nested(char close, std::string_view what, std::size_t begin) {
    if (!enter()) return no_index;
    std::vector<HereDocument> outer;
    outer.swap(here_documents_);
    const bool outer_braces = std::exchange(in_braces_, false);
    ++substitutions_;
    const std::uint32_t node = parse_list(true);
    --substitutions_;
    in_braces_ = outer_braces;
    if (!failed_ && at_end()) unterminated(what, begin);
    if (!failed_ && peek() != close) fail_here(concat({"unexpected ", quoted(token_here())}));
    if (!failed_ && !here_documents_.empty())
      fail_here("here-document without a body before its substitution ends");
    here_documents_.swap(outer);
    if (!at_end()) ++at_;
    --depth_;
    return node;
  }

  void read_backquotes(bool in_double_quotes) {
    const std::size_t begin = at_++;
    std::size_t end = at_;
    bool escapes = false;
    while (end < text_.size() && text_[end] != '`') {
      escapes = escapes || text_[end] == '\\';
      end += text_[end] == '\\' ? 2U : 1U;
    }
    if (end >= text_.size()) return unterminated("backquote", begin);
    std::string_view inner = text_.substr(at_, end - at_);
    ShellOrigin origin = {position(at_), end_position(end), origin_.exact};
    if (escapes) {
      std::string text;
      for (std::size_t i = 0; i < inner.size(); ++i) {
        const char next = i + 1 < inner.size() ? inner[i + 1] : '\0';
        if (inner[i] == '\\' &&
            (next == '$' || next == '`' || next == '\\' || (next == '"' && in_double_quotes)))
          ++i;
        text += inner[i];
      }
      syntax_.texts.push_back(std::move(text));
      inner = syntax_.texts.back();
      origin.exact = false;
    }
    if (!enter()) return;
    ShellParser parser(syntax_, options_, inner, origin, depth_);
    const std::uint32_t node = parser.parse();
    take_over(parser);
    --depth_;
    at_ = end + 1;
    if (!failed_) add_part(ShellPart::Kind::command, in_double_quotes).node = node;
  }

  // Where the arithmetic that begins at `at` (behind two opening parentheses) has its `))`; npos
  // when these parentheses are those of nested subshells.
  std::size_t arithmetic_end(std::size_t at) const {
    unsigned depth = 0;
    for (; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        for (++at; at < text_.size() && text_[at] != '"'; ++at)
          if (text_[at] == '\\') ++at;
      } else if (c == '(') {
        ++depth;
      } else if (c == ')' && depth > 0) {
        --depth;
      } else if (c == ')') {
        return at + 1 < text_.size() && text_[at + 1] == ')' ? at : std::string_view::npos;
      }
    }
    return std::string_view::npos;
  }

  // Arithmetic from `skip` bytes behind here up to `end`, which `close` bytes end.
  void read_arithmetic(bool quoted, std::size_t skip, std::size_t end, std::size_t close) {
    at_ += skip;
    const std::uint32_t operand = arithmetic_word(end);
    at_ = end + close;
    if (!failed_) add_part(ShellPart::Kind::arithmetic, quoted).operand = operand;
  }
  std::uint32_t arithmetic_word(std::size_t end) {
    if (!enter()) return no_index;
    const std::string_view text = text_.substr(at_, end - at_);
    ShellParser parser(syntax_, options_, text, {position(at_), end_position(end), origin_.exact},
                       depth_);
    const std::uint32_t word = parser.parse_arithmetic_text();
    take_over(parser);
    --depth_;
    return word;
  }
  std::uint32_t parse_arithmetic_text() {
    const std::size_t parts = syntax_.pending_parts.size();
    while (!failed_ && !at_end()) {
      if (peek() == '\'') {
        // Some shells take it as a quote here, some do not: where the text ends is not certain.
        fail_here("single quote in arithmetic");
      } else if (peek() == '"') {
        ++at_;
      } else {
        read_quoted_piece(Quotes::arithmetic);
      }
    }
    return end_word(parts, 0, at_);
  }

  // ${...}, from the dollar on.
  void read_braced_parameter(Quotes quotes) {
    const std::size_t begin = at_;
    at_ += 2;
    if (bash() && (is_shell_blank(peek()) || peek() == '\n' || peek() == '|')) {
      // bash 5.3: ${ list; }
      dialect_dependent_ = true;
      if (peek() == '|') ++at_;
      const std::uint32_t node = parse_nested('}', "${", begin);
      if (!failed_) add_part(ShellPart::Kind::command, quotes != Quotes::none).node = node;
      return;
    }
    if (!enter()) return;
    ShellPart part;
    part.kind = ShellPart::Kind::parameter;
    part.quoted = quotes != Quotes::none;
    if (peek() == '#' && peek(1) != '}' &&
        !(peek(1) == '#' || peek(1) == '%' || peek(1) == ':' || peek(1) == '-' || peek(1) == '+' ||
          peek(1) == '=' || peek(1) == '?')) {
      part.length = true;
      ++at_;
    } else if (peek() == '!' && (is_name_char(peek(1)) || peek(1) == '@' || peek(1) == '*')) {
      part.indirect = true;
      ++at_;
    }
    read_parameter_name(part);
    if (!failed_ && peek() == '[') part.subscript = read_until(']', "[", quotes);
    if (!failed_) read_parameter_operation(part, quotes);
    if (!failed_ && peek() != '}') {
      if (at_end())
        unterminated("${", begin);
      else
        fail(ErrorCode::parse, concat({"bad substitution ", quoted(text_.substr(begin, 20))}),
             begin);
    }
    if (failed_) return;
    ++at_;
    --depth_;
    syntax_.pending_parts.push_back(part);
  }

  void read_parameter_name(ShellPart& part) {
    const std::size_t begin = at_;
    if (is_digit(peek())) {
      while (is_digit(peek())) ++at_;
    } else if (is_name_start(peek())) {
      while (is_name_char(peek())) ++at_;
    } else if (!at_end() && is_special_parameter(peek())) {
      ++at_;
    }
    part.text = text_.substr(begin, at_ - begin);
    if (part.text.empty()) {
      if (at_end())
        unterminated("${", begin - 2);
      else
        fail_here("bad substitution");
    }
  }

  void read_parameter_operation(ShellPart& part, Quotes quotes) {
    const char c = peek();
    if (c == '}' || at_end()) return;
    const char next = peek(1);
    if (c == ':' && next != '\0' && std::string_view("-=?+").find(next) != std::string_view::npos) {
      part.colon = true;
      part.operation = next;
      at_ += 2;
    } else if (std::string_view("-=?+").find(c) != std::string_view::npos) {
      part.operation = c;
      ++at_;
    } else if (std::string_view("%#/^,").find(c) != std::string_view::npos) {
      part.operation = c;
      part.doubled = next == c;
      at_ += part.doubled ? 2 : 1;
    } else if (c == ':' || c == '@' || (c == '*' && part.indirect)) {
      part.operation = c;
      ++at_;
    } else {
      return;
    }
    part.operand = read_until(
        '}', "${", quotes, std::string_view("-=?+").find(part.operation) == std::string_view::npos);
  }

  // The word up to an unquoted `close`. An opening bracket, for a subscript, is skipped first.
  // `pattern`: single quotes quote even within double quotes.
  std::uint32_t read_until(char close, std::string_view what, Quotes quotes, bool pattern = true) {
    const std::size_t begin = at_;
    if (close == ']') ++at_;
    const std::size_t parts = syntax_.pending_parts.size();
    const bool outer = std::exchange(in_braces_, close == '}');
    unsigned brackets = 0;
    const bool quoted = quotes != Quotes::none;
    if (!quoted) read_tilde();
    while (!failed_ && !at_end()) {
      const char c = peek();
      if (c == close && brackets == 0) break;
      if (close == ']' && c == '[') ++brackets;
      if (close == ']' && c == ']') --brackets;
      if (c == '\'' && quoted && !pattern) {
        read_quote_in_quotes();
      } else if (c == '\'' && quoted) {
        read_single_quotes();
      } else if (c == '"' && quoted) {
        read_double_quotes();
      } else if (quoted) {
        read_quoted_piece(quotes);
      } else if (at_process()) {
        read_process_substitution();
      } else {
        read_piece();
      }
    }
    in_braces_ = outer;
    if (failed_) return no_index;
    if (at_end()) {
      unterminated(what, begin);
      return no_index;
    }
    const std::uint32_t word = end_word(parts, begin, at_);
    if (close == ']') ++at_;
    return word;
  }

  // A single quote in "${x:-'..'}" stays in the text, but in bash it hides a closing brace.
  void read_quote_in_quotes() {
    dialect_dependent_ = true;
    std::size_t end = at_ + 1;
    if (bash()) {
      end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) return unterminated("single quote", at_);
      ++end;
    }
    add_literal(text_.substr(at_, end - at_), true);
    at_ = end;
  }

  // ?( *( +( @( !( : a pattern, if extglob is on; else a syntax error, so that nothing runs.
  void read_extended_glob() {
    if (!enter()) return;
    const std::size_t begin = at_;
    dialect_dependent_ = true;
    add_literal("*(", false);
    ++at_;
    while (!failed_ && !at_end() && peek() != ')') {
      if (peek() == '(') {
        read_extended_glob();
      } else if (peek() == '|' || is_shell_blank(peek()) || peek() == '\n') {
        add_literal(text_.substr(at_, 1), false);
        ++at_;
      } else if (ends_word(peek())) {
        fail_here(concat({"unexpected ", quoted(token_here())}));
      } else {
        read_piece();
      }
    }
    if (at_end()) return unterminated("(", begin);
    if (failed_) return;
    add_literal(")", false);
    ++at_;
    --depth_;
  }

  // the grammar -----------------------------------------------------------------------------------

  // The plain word of at most eight characters that stands here, such as a reserved word, or an
  // empty view. take_word() consumes it.
  std::string_view word_here() {
    std::size_t end = at_;
    while (end < text_.size() && end < at_ + 9 && !ends_plain_run.has(text_[end])) ++end;
    if (end == at_ && end < text_.size() && (text_[end] == '{' || text_[end] == '}')) ++end;
    if (text_.substr(at_, 2) == "]]") end = at_ + 2;
    if (text_.substr(end, 2) == "\\\n") return joined_word_here();
    if (end < text_.size() && !ends_word(text_[end])) return {};
    word_end_ = end;
    return text_.substr(at_, end - at_);
  }
  // The same where lines are joined in it or behind it.
  std::string_view joined_word_here() {
    static constexpr std::string_view words[] = {
        "!",    "{",  "}",   "[[",       "]]", "case", "coproc", "do",   "done", "elif",  "else",
        "esac", "fi", "for", "function", "if", "in",   "select", "then", "time", "until", "while"};
    std::string joined;
    std::size_t end = at_;
    for (; end < text_.size() && joined.size() < 10 && !ends_word(text_[end]); ++end) {
      if (text_.substr(end, 2) == "\\\n")
        ++end;
      else
        joined += text_[end];
    }
    const auto* const word = std::find(std::begin(words), std::end(words), joined);
    if (word == std::end(words)) return {};
    word_end_ = end;
    return *word;
  }
  void take_word() { at_ = word_end_; }
  // Whether the word ends a list.
  static bool ends_list(std::string_view word) {
    return word == "then" || word == "else" || word == "elif" || word == "fi" || word == "do" ||
           word == "done" || word == "esac" || word == "}";
  }
  // Consumes a reserved word that must be here.
  bool expect(std::string_view word, std::size_t begin, std::string_view construct) {
    if (failed_) return false;
    if (word_here() == word) {
      take_word();
      return true;
    }
    if (at_end())
      unterminated(construct, begin);
    else
      fail_here(concat({"unexpected ", quoted(token_here()), ", ", quoted(word), " is missing"}));
    return false;
  }

  // Commands up to the end of the text, a closing parenthesis, ;; or a reserved word that ends a
  // list. Only some lists may be empty.
  std::uint32_t parse_list(bool may_be_empty = false) {
    ShellNode list = node_at(ShellNode::Kind::list, at_);
    const std::size_t from = begin_list();
    for (;;) {
      skip_newlines();
      if (failed_ || at_end()) break;
      const char c = peek();
      if (c == ')') break;
      if (c == ';' && (peek(1) == ';' || peek(1) == '&')) break;
      if (ends_list(word_here())) break;
      const std::size_t size = syntax_.pending.size();
      const std::uint32_t node = parse_and_or();
      syntax_.pending.resize(size);  // of what failed, nothing is kept
      if (failed_) break;
      add(node);
      skip_blanks();
      if (peek() == '&') {
        syntax_.nodes[node].background = true;
        ++at_;
      } else if (peek() == ';' && peek(1) != ';' && peek(1) != '&') {
        ++at_;
      } else if (peek() != '\n') {
        break;
      }
    }
    const bool empty = begin_list() == from;
    list.nodes = end_list(from);
    if (!failed_ && empty && !may_be_empty)
      fail_here(at_end() ? std::string("unexpected end of the script")
                         : concat({"unexpected ", quoted(token_here())}));
    return add_node(list, at_);
  }

  std::uint32_t parse_and_or() {
    ShellNode chain = node_at(ShellNode::Kind::and_or, at_);
    const std::size_t from = begin_list();
    char joint = 0;
    for (;;) {
      const std::uint32_t node = parse_pipeline();
      if (node != no_index) {
        syntax_.nodes[node].joint = joint;
        add(node);
      }
      if (failed_) break;
      skip_blanks();
      if (!looking_at("&&") && !looking_at("||")) break;
      joint = peek();
      at_ += 2;
      skip_newlines();
    }
    if (begin_list() == from + 1 && joint == 0) {
      const std::uint32_t only = syntax_.pending.back();
      syntax_.pending.pop_back();
      return only;
    }
    chain.nodes = end_list(from);
    return add_node(chain, at_);
  }

  std::uint32_t parse_pipeline() {
    ShellNode pipeline = node_at(ShellNode::Kind::pipeline, at_);
    const std::size_t from = begin_list();
    const bool timed = skip_pipeline_prefixes();
    if (timed && (at_end() || peek() == ';' || peek() == '\n'))
      return add_node(node_at(ShellNode::Kind::list, at_), at_);
    for (;;) {
      skip_blanks();
      if (ends_list(word_here())) {
        fail_here(concat({"unexpected ", quoted(token_here())}));
        break;
      }
      const std::uint32_t node = parse_command();
      if (node != no_index) add(node);
      if (failed_) break;
      skip_blanks();
      if (peek() != '|' || peek(1) == '|') break;
      ++at_;
      if (peek() == '&') {
        if (!bash()) fail_here("unexpected '&'");
        dialect_dependent_ = true;
        ++at_;
      }
      skip_newlines();
    }
    if (begin_list() == from + 1) {
      const std::uint32_t only = syntax_.pending.back();
      syntax_.pending.pop_back();
      return only;
    }
    pipeline.nodes = end_list(from);
    return add_node(pipeline, at_);
  }

  // ! and time, in any number and order. True: bash's time, which needs no command behind it.
  bool skip_pipeline_prefixes() {
    bool timed = false;
    for (;;) {
      skip_blanks();
      const std::string_view word = word_here();
      if (word == "!") {
        take_word();
      } else if (peek() == '!' && peek(1) == '(') {
        ++at_;
      } else if (word == "time" && bash()) {
        dialect_dependent_ = true;
        timed = true;
        take_word();
        skip_blanks();
        if (word_here() == "-p") take_word();
        skip_blanks();
        if (word_here() == "--") take_word();
      } else {
        return timed;
      }
    }
  }

  std::uint32_t parse_command() {
    skip_blanks();
    const std::size_t begin = at_;
    const char c = peek();
    if (c == '(') {
      if (peek(1) == '(' && bash()) {
        dialect_dependent_ = true;
        const std::size_t end = arithmetic_end(at_ + 2);
        if (end != std::string_view::npos) return parse_arithmetic_command(end);
      }
      return parse_subshell();
    }
    // Only these can begin a reserved word.
    constexpr CharSet starts("{[fiwucs");
    if (starts.has(c)) {
      const std::string_view word = word_here();
      if (word == "{") return parse_group();
      if (word == "if") return parse_if();
      if (word == "while" || word == "until") return parse_loop(word);
      if (word == "for") return parse_for(word);
      if (word == "case") return parse_case();
      if (bash() && (word == "select" || word == "function" || word == "coproc" || word == "[[")) {
        dialect_dependent_ = true;
        if (word == "select") return parse_for(word);
        if (word == "function") return parse_function_keyword();
        if (word == "coproc") return parse_coprocess();
        return parse_condition();
      }
    }
    const std::uint32_t node = parse_simple();
    if (!failed_ && at_ == begin)
      fail_here(at_end() ? std::string("unexpected end of the script")
                         : concat({"unexpected ", quoted(token_here())}));
    return node;
  }

  // Ends a compound command: the redirections behind it.
  std::uint32_t finish(ShellNode node, std::size_t nodes_from) {
    node.nodes = end_list(nodes_from);
    if (failed_) return add_node(node, at_);
    const std::size_t end = at_;
    std::vector<ShellRedirection> redirections;
    for (skip_blanks(); !failed_ && at_redirection(); skip_blanks())
      parse_redirection(redirections);
    return add_node_with(node, {}, redirections, redirections.empty() ? end : last_token_end(end));
  }

  std::uint32_t parse_subshell() {
    ShellNode node = node_at(ShellNode::Kind::subshell, at_);
    const std::size_t from = begin_list();
    const std::size_t begin = at_++;
    if (!enter()) return no_index;
    add(parse_list());
    if (!failed_ && at_end()) unterminated("(", begin);
    if (!failed_ && peek() != ')') fail_here(concat({"unexpected ", quoted(token_here())}));
    if (!failed_) ++at_;
    --depth_;
    return finish(node, from);
  }

  std::uint32_t parse_group() {
    ShellNode node = node_at(ShellNode::Kind::group, at_);
    const std::size_t from = begin_list();
    const std::size_t begin = at_;
    take_word();
    if (!enter()) return no_index;
    add(parse_list());
    expect("}", begin, "{");
    --depth_;
    return finish(node, from);
  }

  std::uint32_t parse_if() {
    ShellNode node = node_at(ShellNode::Kind::if_clause, at_);
    const std::size_t from = begin_list();
    const std::size_t begin = at_;
    take_word();
    if (!enter()) return no_index;
    for (;;) {
      add(parse_list());
      if (!expect("then", begin, "if")) break;
      add(parse_list());
      if (failed_) break;
      if (word_here() == "elif") {
        take_word();
        continue;
      }
      if (word_here() == "else") {
        take_word();
        add(parse_list());
      }
      expect("fi", begin, "if");
      break;
    }
    --depth_;
    return finish(node, from);
  }

  std::uint32_t parse_loop(std::string_view word) {
    ShellNode node = node_at(ShellNode::Kind::loop, at_);
    const std::size_t from = begin_list();
    const std::size_t begin = at_;
    take_word();
    if (!enter()) return no_index;
    add(parse_list());
    parse_do(begin, word);
    --depth_;
    return finish(node, from);
  }

  // do ... done
  void parse_do(std::size_t begin, std::string_view construct) {
    if (!expect("do", begin, construct)) return;
    add(parse_list());
    expect("done", begin, construct);
  }

  // for, and select, which is the same to us.
  std::uint32_t parse_for(std::string_view word) {
    ShellNode node = node_at(ShellNode::Kind::for_clause, at_);
    const std::size_t begin = at_;
    take_word();
    if (!enter()) return no_index;
    skip_blanks();
    const std::size_t words_from = begin_list();
    if (looking_at("((") && bash()) {
      dialect_dependent_ = true;
      const std::size_t end = arithmetic_end(at_ + 2);
      if (end == std::string_view::npos) fail_here("for (( is not closed by ))");
      if (failed_) return no_index;
      node.kind = ShellNode::Kind::arithmetic_for;
      at_ += 2;
      add(arithmetic_word(end));
      at_ = end + 2;
    } else {
      const std::size_t name_begin = at_;
      while (is_name_char(peek())) ++at_;
      node.name = text_.substr(name_begin, at_ - name_begin);
      if (!is_name(node.name))
        fail(ErrorCode::parse, concat({word, " needs a variable name"}), at_);
      skip_newlines();
      if (word_here() == "in") {
        node.flag = true;
        take_word();
        for (skip_blanks(); !failed_ && !at_end() && (!ends_word(peek()) || at_process());
             skip_blanks())
          add(parse_word());
      }
    }
    node.words = end_list(words_from);
    skip_blanks();
    if (peek() == ';') ++at_;
    skip_newlines();
    const std::size_t from = begin_list();
    if (!failed_ && word_here() == "{" && bash()) {
      add(parse_group());
    } else {
      parse_do(begin, word);
    }
    --depth_;
    return finish(node, from);
  }
  bool at_process() const { return bash() && (peek() == '<' || peek() == '>') && peek(1) == '('; }

  std::uint32_t parse_case() {
    ShellNode node = node_at(ShellNode::Kind::case_clause, at_);
    const std::size_t begin = at_;
    take_word();
    if (!enter()) return no_index;
    skip_blanks();
    // The words of all arms are listed first, their bodies then.
    std::vector<std::uint32_t> words;
    std::vector<std::uint32_t> bodies;
    if (at_end() || (ends_word(peek()) && !at_process())) fail_here("case needs a word");
    if (!failed_) words.push_back(parse_word());
    skip_newlines();
    expect("in", begin, "case");
    for (;;) {
      skip_newlines();
      if (failed_ || word_here() == "esac") break;
      if (peek() == '(') ++at_;
      parse_patterns(words, begin);
      if (failed_) break;
      bodies.push_back(parse_list(true));
      if (failed_) break;
      if (looking_at(";;&") || looking_at(";&")) {
        if (!bash()) fail_here("unexpected ';&'");
        dialect_dependent_ = true;
        at_ += looking_at(";;&") ? 3U : 2U;
      } else if (looking_at(";;")) {
        at_ += 2;
      } else {
        break;
      }
    }
    expect("esac", begin, "case");
    const std::size_t words_from = begin_list();
    for (const std::uint32_t word : words) add(word);
    node.words = end_list(words_from);
    const std::size_t from = begin_list();
    for (const std::uint32_t body : bodies) add(body);
    --depth_;
    return finish(node, from);
  }

  // pattern | pattern ... )
  void parse_patterns(std::vector<std::uint32_t>& words, std::size_t begin) {
    for (;;) {
      skip_blanks();
      if (at_end()) return unterminated("case", begin);
      if (ends_word(peek())) return fail_here(concat({"unexpected ", quoted(token_here())}));
      words.push_back(parse_word());
      if (failed_) return;
      skip_blanks();
      if (peek() == ')') break;
      if (peek() != '|') {
        if (at_end()) return unterminated("case", begin);
        return fail_here(concat({"unexpected ", quoted(token_here()), " in a case pattern"}));
      }
      ++at_;
    }
    ++at_;
  }

  // [[ ... ]]
  std::uint32_t parse_condition() {
    ShellNode node = node_at(ShellNode::Kind::condition, at_);
    const std::size_t begin = at_;
    take_word();
    const std::size_t from = begin_list();
    bool after_match = false;  // =~ stood before
    for (;;) {
      skip_newlines();
      if (failed_) break;
      if (at_end()) {
        unterminated("[[", begin);
        break;
      }
      if (word_here() == "]]") {
        take_word();
        break;
      }
      if (looking_at("&&") || looking_at("||")) {
        at_ += 2;
      } else if (!after_match && (peek() == '(' || peek() == ')')) {
        ++at_;
      } else if (!at_process() && (peek() == '<' || peek() == '>')) {
        ++at_;
      } else if (ends_word(peek()) && !at_process() && peek() != '(') {
        fail_here(concat({"unexpected ", quoted(token_here()), " in [["}));
      } else {
        const std::size_t word_begin = at_;
        add(parse_word(after_match ? Context::pattern : Context::command));
        after_match = text_.substr(word_begin, at_ - word_begin) == "=~";
        continue;
      }
      after_match = false;
    }
    node.words = end_list(from);
    return finish(node, begin_list());
  }

  std::uint32_t parse_arithmetic_command(std::size_t end) {
    ShellNode node = node_at(ShellNode::Kind::arithmetic, at_);
    at_ += 2;
    const std::size_t from = begin_list();
    add(arithmetic_word(end));
    at_ = end + 2;
    node.words = end_list(from);
    return finish(node, begin_list());
  }

  std::uint32_t parse_coprocess() {
    ShellNode node = node_at(ShellNode::Kind::coprocess, at_);
    const std::size_t begin = at_;
    take_word();
    if (!enter()) return no_index;
    skip_blanks();
    // A name is only taken in front of a compound command.
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    std::size_t next = end;
    while (next < text_.size() && is_shell_blank(text_[next])) ++next;
    if (end > at_ && next > end && next < text_.size() &&
        (text_[next] == '{' || text_[next] == '(')) {
      const std::string_view name = text_.substr(at_, end - at_);
      if (is_name(name) && !is_reserved(name)) at_ = next;
    }
    const std::size_t from = begin_list();
    const std::uint32_t body = parse_command();
    if (body != no_index) add(body);
    if (!failed_ && at_ == begin) fail_here("coproc needs a command");
    --depth_;
    node.nodes = end_list(from);
    return add_node(node, at_);
  }
  static bool is_reserved(std::string_view word) {
    return word == "if" || word == "while" || word == "until" || word == "for" || word == "case" ||
           word == "select" || word == "function" || word == "time" || word == "coproc";
  }

  std::uint32_t parse_function_keyword() {
    const std::size_t begin = at_;
    take_word();
    skip_blanks();
    const std::size_t name_begin = at_;
    while (!at_end() && !ends_word(peek())) ++at_;
    const std::string_view name = text_.substr(name_begin, at_ - name_begin);
    if (name.empty()) fail_here("function needs a name");
    skip_blanks();
    at_parentheses();
    return parse_function_body(name, begin);
  }

  std::uint32_t parse_function_body(std::string_view name, std::size_t begin) {
    ShellNode node = node_at(ShellNode::Kind::function, begin);
    node.name = name;
    if (!enter()) return no_index;
    skip_newlines();
    const std::size_t from = begin_list();
    const std::uint32_t body = failed_ ? no_index : parse_command();
    if (body != no_index) add(body);
    --depth_;
    node.nodes = end_list(from);
    return add_node(node, at_);
  }

  // simple commands -------------------------------------------------------------------------------

  std::uint32_t parse_simple() {
    ShellNode node = node_at(ShellNode::Kind::simple, at_);
    const std::size_t begin = at_;
    const std::size_t from = begin_list();
    std::vector<ShellAssignment> assignments;
    std::vector<ShellRedirection> redirections;
    bool declares = false;
    for (skip_blanks(); !failed_ && !at_end(); skip_blanks()) {
      if (at_redirection()) {
        parse_redirection(redirections);
        continue;
      }
      if (ends_word(peek()) && !at_process()) break;
      const bool first = begin_list() == from;
      if (first || declares) {
        ShellAssignment assignment;
        if (parse_assignment(assignment, !first)) {
          assignments.push_back(assignment);
          continue;
        }
        if (failed_) break;
      }
      const std::size_t word_begin = at_;
      const std::uint32_t word = parse_word();
      if (failed_) break;
      add(word);
      if (!first) continue;
      const std::string_view name = text_.substr(word_begin, at_ - word_begin);
      declares = bash() && (name == "declare" || name == "typeset" || name == "local" ||
                            name == "export" || name == "readonly");
      if (assignments.empty() && redirections.empty() && at_parentheses()) {
        syntax_.pending.resize(from);
        return parse_function_body(name, begin);
      }
    }
    node.words = end_list(from);
    return add_node_with(node, assignments, redirections, last_token_end(begin));
  }
  // A command ends where its last token ends, not where the blanks behind it do.
  std::size_t last_token_end(std::size_t begin) const {
    std::size_t end = at_;
    while (end > begin && is_shell_blank(text_[end - 1])) --end;
    return end;
  }
  // () of a function definition; consumes it.
  bool at_parentheses() {
    std::size_t at = at_;
    while (at < text_.size() && is_shell_blank(text_[at])) ++at;
    if (at >= text_.size() || text_[at] != '(') return false;
    for (++at; at < text_.size() && is_shell_blank(text_[at]);) ++at;
    if (at >= text_.size() || text_[at] != ')') return false;
    at_ = at + 1;
    return true;
  }

  std::uint32_t add_node_with(ShellNode node, const std::vector<ShellAssignment>& assignments,
                              const std::vector<ShellRedirection>& redirections, std::size_t end) {
    node.assignments.begin = static_cast<std::uint32_t>(syntax_.assignments.size());
    for (const ShellAssignment& assignment : assignments) syntax_.assignments.push_back(assignment);
    node.assignments.end = static_cast<std::uint32_t>(syntax_.assignments.size());
    node.redirections.begin = static_cast<std::uint32_t>(syntax_.redirections.size());
    // The here-documents of this command learn where their redirections are.
    for (HereDocument& document : here_documents_) {
      if (!document.placed) document.redirection += node.redirections.begin;
      document.placed = true;
    }
    for (const ShellRedirection& redirection : redirections)
      syntax_.redirections.push_back(redirection);
    node.redirections.end = static_cast<std::uint32_t>(syntax_.redirections.size());
    return add_node(node, end);
  }

  // NAME=value, NAME+=value, NAME[subscript]=value, NAME=(elements). False: something else stands
  // here, and nothing was consumed. `arrays_only`: in the operands of declare and its like.
  bool parse_assignment(ShellAssignment& assignment, bool arrays_only) {
    std::size_t end = at_;
    if (!is_name_start(peek())) return false;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    assignment.name = text_.substr(at_, end - at_);
    std::size_t subscript = 0;
    // dash takes NAME[subscript]= and NAME+= for the names of commands.
    if (end < text_.size() && text_[end] == '[' && bash()) {
      subscript = end;
      end = subscript_end(end);
    }
    const bool append = text_.substr(end, 2) == "+=" && bash();
    if (append) ++end;
    if (end >= text_.size() || text_[end] != '=') return false;
    const bool array = bash() && end + 1 < text_.size() && text_[end + 1] == '(';
    if (arrays_only && !array) return false;
    dialect_dependent_ = dialect_dependent_ || append || array || subscript != 0;
    assignment.begin = position(at_);
    assignment.append = append;
    assignment.declared = arrays_only;
    if (subscript != 0) {
      at_ = subscript;
      assignment.subscript = read_until(']', "[", Quotes::none);
      if (failed_) return false;
    }
    at_ = end + 1;
    if (array) {
      parse_elements(assignment);
    } else if (!at_end() && (!ends_word(peek()) || at_process())) {
      assignment.value = parse_word(Context::command, true);
    }
    assignment.end = end_position(at_);
    return !failed_;
  }
  // Behind the bracket that closes the one at `at`, within the word.
  std::size_t subscript_end(std::size_t at) const {
    unsigned depth = 0;
    for (; at < text_.size(); ++at) {
      const char c = text_[at];
      if (is_shell_blank(c) || c == '\n' || c == ';' || c == '|' || c == '&') break;
      if (c == '[') ++depth;
      if (c == ']' && --depth == 0) return at + 1;
    }
    return text_.size();
  }
  void parse_elements(ShellAssignment& assignment) {
    const std::size_t begin = at_++;
    assignment.array = true;
    const std::size_t from = begin_list();
    for (skip_newlines(); !failed_ && !at_end() && peek() != ')'; skip_newlines()) {
      if (ends_word(peek()) && !at_process())
        fail_here(concat({"unexpected ", quoted(token_here()), " in an array"}));
      else
        add(parse_word());
    }
    if (at_end()) return unterminated("array", begin);
    ++at_;
    assignment.elements = end_list(from);
  }

  // Whether a redirection begins here, with its number or {name}.
  bool at_redirection() const {
    std::size_t at = at_;
    while (at < text_.size() && is_digit(text_[at])) ++at;
    if (at == at_ && peek() == '{' && bash() && is_name_start(peek(1))) {
      ++at;
      while (at < text_.size() && is_name_char(text_[at])) ++at;
      if (at >= text_.size() || text_[at] != '}') return false;
      ++at;
    }
    if (at >= text_.size()) return false;
    if (at == at_ && looking_at("&>") && bash()) return true;
    if (text_[at] != '<' && text_[at] != '>') return false;
    return at > at_ || !at_process();
  }

  void parse_redirection(std::vector<ShellRedirection>& redirections) {
    using Kind = shell::Redirection::Kind;
    ShellRedirection redirection;
    const bool both = looking_at("&>");
    int number = -1;
    if (both) {
      dialect_dependent_ = true;
      ++at_;
    } else if (peek() == '{') {
      dialect_dependent_ = true;
      number = -2;
      while (peek() != '}') ++at_;
      ++at_;
    } else if (is_digit(peek())) {
      for (number = 0; is_digit(peek()); ++at_)
        number = number > 1023 || number == -2 ? -2 : number * 10 + (peek() - '0');
      if (number > 1023) number = -2;
    }
    const std::size_t operator_at = at_;
    const bool output = peek() == '>';
    ++at_;
    redirection.kind = output ? Kind::write : Kind::read;
    if (looking_at(">") && output) {
      redirection.kind = Kind::append;
      ++at_;
    } else if (looking_at("|") && output && !both) {
      ++at_;
    } else if (looking_at("&") && !both) {
      redirection.kind = Kind::duplicate;
      ++at_;
    } else if (looking_at(">") && !output) {
      redirection.kind = Kind::read_write;
      ++at_;
    } else if (looking_at("<") && !output) {
      redirection.kind = Kind::here_document;
      ++at_;
      if (looking_at("<") && bash()) {
        dialect_dependent_ = true;
        redirection.kind = Kind::here_string;
        ++at_;
      }
    }
    redirection.fd = number == -2 ? -1 : number >= 0 ? number : output ? 1 : 0;
    redirection.output = output;
    if (redirection.kind == Kind::here_document) {
      begin_here_document(static_cast<std::uint32_t>(redirections.size()));
    } else {
      skip_blanks();
      if (at_end() || (ends_word(peek()) && !at_process()))
        return fail(ErrorCode::parse, "redirection without a target", operator_at);
      redirection.target = parse_word();
    }
    redirections.push_back(redirection);
  }

  // The delimiter; the body follows after the end of the line.
  void begin_here_document(std::uint32_t order) {
    HereDocument document;
    document.redirection = order;
    while (text_.substr(at_, 2) == "\\\n") at_ += 2;
    if (peek() == '-') {
      document.strip_tabs = true;
      ++at_;
    }
    skip_blanks();
    const std::size_t begin = at_;
    while (!at_end() && !ends_word(peek())) {
      const char c = peek();
      if (c == '\\' && peek(1) == '\n') {
        at_ += 2;
      } else if (c == '\\') {
        document.quoted = true;
        document.delimiter += text_.substr(at_ + 1, 1);
        at_ = std::min(at_ + 2, text_.size());
      } else if (c == '\'' || c == '"') {
        document.quoted = true;
        const std::size_t end = text_.find(c, at_ + 1);
        if (end == std::string_view::npos) return unterminated("quote", at_);
        const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
        if (c == '"' && inner.find_first_of("\\$`") != std::string_view::npos)
          return fail_here("escape or expansion in the delimiter of a here-document");
        document.delimiter += inner;
        at_ = end + 1;
      } else if (c == '$' || c == '`') {
        // The shells do not agree on where such a delimiter ends.
        return fail_here("expansion in the delimiter of a here-document");
      } else {
        document.delimiter += c;
        ++at_;
      }
    }
    if (at_ == begin) return fail_here("here-document without a delimiter");
    here_documents_.push_back(std::move(document));
  }

  ShellSyntax& syntax_;
  const shell::Options& options_;
  std::string_view text_;
  ShellOrigin origin_;
  unsigned depth_ = 0;
  std::size_t at_ = 0;
  unsigned substitutions_ = 0;  // around what is read now
  std::size_t word_end_ = 0;    // of the word that word_here() has found
  bool in_braces_ = false;      // in the word of ${ }, where \} is an escape in double quotes
  bool failed_ = false;
  bool dialect_dependent_ = false;
  Error error_ = {};
  std::vector<HereDocument> here_documents_ = {};  // whose bodies follow after this line
};

// A string that the script makes, and what is known of it (see shell::Word).
struct ShellText {
  std::string text = {};
  bool assumed = false;
  bool glob = false;
  bool home = false;
  bool operator==(const ShellText& other) const {
    return text == other.text && assumed == other.assumed && glob == other.glob &&
           home == other.home;
  }
  bool known() const { return text.find('\0') == std::string::npos; }
};

ShellText unknown_text() {
  ShellText text;
  text.text.push_back('\0');
  return text;
}

// One value that a variable may have.
struct ShellValue {
  std::vector<ShellText> elements = {};  // one, unless it is an array
  bool array = false;
  bool unset = false;
  bool environment = false;  // whatever the script was started with
  bool operator==(const ShellValue& other) const {
    return elements == other.elements && array == other.array && unset == other.unset &&
           environment == other.environment;
  }
};

ShellValue scalar_value(ShellText text) {
  ShellValue value;
  value.elements.push_back(std::move(text));
  return value;
}

struct ShellVariable {
  std::vector<ShellValue> values = {};  // what it is, depending on the branches taken
  std::uint64_t last_read = 0;          // a step of the walk
  std::uint64_t frame = 0;              // that knows its former value
};

// Puts a path behind a directory and takes `.`, `..` and doubled slashes out of it. `~` at the
// start stays the name of a directory that has a parent.
std::string join_shell_path(std::string_view directory, std::string_view path) {
  std::string joined;
  if (starts_with(path, "/") || starts_with(path, "~") || directory.empty())
    joined = std::string(path);
  else
    joined = concat({directory, "/", path});
  const bool absolute = starts_with(joined, "/");
  std::vector<std::string_view> names;
  for (std::size_t at = 0; at <= joined.size();) {
    const std::size_t end = std::min(joined.find('/', at), joined.size());
    const std::string_view name = std::string_view(joined).substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    const bool climbs = name == "..";
    if (climbs && !names.empty() && names.back() != "..")
      names.pop_back();
    else if (!climbs || !absolute)
      names.push_back(name);
  }
  std::string result;
  for (const std::string_view name : names) {
    if (!result.empty() || absolute) result += '/';
    result += name;
  }
  if (result.empty()) result = absolute ? "/" : ".";
  return result;
}

// Goes through a tree as a shell would.
class ShellWalker {
 public:
  ShellWalker(const shell::Options& options, FunctionRef<void(const shell::Visit&)> visit)
      : options_(options), visit_(visit) {}

  shell::Outcome walk(std::string_view script) {
    if (script.size() > 0x7fffffff) {
      stop(ErrorCode::limit, "longer than 2 GiB", 0);
      return std::move(outcome_);
    }
    const std::size_t nul = script.find('\0');
    if (nul != std::string_view::npos) {
      stop(ErrorCode::parse, "NUL byte", nul);
      return std::move(outcome_);
    }
    last_in_shell_ = script.find("lastpipe") != std::string_view::npos;
    if (!options_.work_dir.empty()) {
      ShellText directory;
      directory.text = options_.work_dir;
      assign(work_dir_key, scalar_value(std::move(directory)));
    }
    ShellParser parser(syntax_, options_, script,
                       {0, static_cast<std::uint32_t>(script.size()), true}, 0);
    const std::uint32_t root = parser.parse();
    outcome_.dialect_dependent = outcome_.dialect_dependent || parser.dialect_dependent();
    if (root != no_index) run(root);
    run_traps();
    if (parser.failed() && outcome_.complete) {
      outcome_.complete = false;
      outcome_.error = parser.error();
    }
    return std::move(outcome_);
  }

 private:
  // Keys among the variables that no script can name.
  static constexpr std::string_view work_dir_key = ".";
  static constexpr std::string_view positional_key = "@";
  static constexpr std::size_t max_values = 16;      // of one variable; more: not known
  static constexpr std::size_t max_choices = 16;     // tellings of one command
  static constexpr std::size_t max_activations = 3;  // of a recursive function

  bool bash() const { return options_.dialect == shell::Dialect::bash; }
  bool stopped() const { return !outcome_.complete; }
  void stop(ErrorCode code, std::string message, std::size_t at) {
    if (stopped()) return;
    outcome_.complete = false;
    outcome_.error = make_error(code, std::move(message), at);
  }
  void over_limit(std::size_t most, std::string_view what, std::size_t at) {
    stop(ErrorCode::limit, concat({"more than ", std::to_string(most), " ", what}), at);
  }
  const ShellNode& node(std::uint32_t index) const { return syntax_.nodes[index]; }
  std::uint32_t item(ShellRange range, std::size_t i) const {
    return syntax_.lists[range.begin + i];
  }
  static std::size_t size(ShellRange range) { return range.end - range.begin; }

  // variables -------------------------------------------------------------------------------------

  // A stretch of the walk whose assignments can be taken back.
  struct Frame {
    std::uint64_t id = 0;
    std::uint64_t first_step = 0;
    std::vector<std::pair<std::string, std::optional<ShellVariable>>> former = {};
    bool keeps = false;  // the values that are overwritten, in `between`
    std::vector<std::pair<std::string, ShellVariable>> between = {};
  };
  // What a branch has changed.
  using Changes = std::vector<std::pair<std::string, ShellVariable>>;

  // `keeps`: it may be left in the middle.
  void open_frame(bool keeps = false) {
    Frame frame;
    frame.keeps = keeps;
    frame.id = ++last_frame_;
    frame.first_step = step_;
    frames_.push_back(std::move(frame));
  }
  // Takes the frame's assignments back and gives what they were; `between`, when given, what they
  // had been before, if it was kept.
  Changes take_frame(Changes* between = nullptr) {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (between != nullptr) *between = std::move(frame.between);
    Changes changes;
    for (auto& [name, former] : frame.former) {
      const auto at = variables_.find(name);
      changes.emplace_back(name, std::move(at->second));
      if (former)
        at->second = std::move(*former);
      else
        variables_.erase(at);
    }
    return changes;
  }

  void assign(std::string_view name, ShellValue value) {
    if (is_name(name)) {
      run_value(name, value);
      if (references_ || has_attribute(name, 'i')) value = scalar_value(unknown_text());
      if (has_attribute(name, 'r')) return add_value(name, std::move(value));
    }
    ShellVariable variable;
    variable.values.push_back(std::move(value));
    set_variable(name, std::move(variable));
  }
  // What declare and readonly have said of variables: 'r' that they keep their value, 'i' that what
  // is stored is not what is written.
  bool has_attribute(std::string_view name, char attribute) const {
    if (attributes_.empty()) return false;
    const auto at = attributes_.find(name);
    return at != attributes_.end() && at->second.find(attribute) != std::string::npos;
  }
  // bash evaluates subscripts in values, where it takes them for arithmetic or for a name, and
  // expands some variables by itself.
  void run_value(std::string_view name, const ShellValue& value) {
    const bool expanded = name == "PS4" || name == "BASH_ENV" || name == "ENV";
    for (const ShellText& element : value.elements)
      if (has_substitution(element.text) && (expanded || (bash() && has_subscript(element.text))))
        run_expansion_text(element.text);
  }
  void set_variable(std::string_view name, ShellVariable variable) {
    auto at = variables_.find(name);
    const std::uint64_t frame = frames_.empty() ? 0 : frames_.back().id;
    if (at == variables_.end()) {
      if (!frames_.empty()) frames_.back().former.emplace_back(std::string(name), std::nullopt);
      at = variables_.emplace(std::string(name), ShellVariable()).first;
    } else if (frame != 0 && at->second.frame != frame) {
      frames_.back().former.emplace_back(std::string(name), std::move(at->second));
    } else if (frame != 0 && frames_.back().keeps) {
      frames_.back().between.emplace_back(std::string(name), std::move(at->second));
    }
    at->second = std::move(variable);
    at->second.frame = frame;
  }
  // Values that variables may have after all.
  void add_values(const Changes& changes) {
    for (const auto& [name, variable] : changes)
      for (const ShellValue& value : variable.values) add_value(name, value);
  }
  // Adds a value to those a variable may have.
  void add_value(std::string_view name, ShellValue value) {
    ShellVariable variable = variable_of(name);
    merge_value(variable, std::move(value));
    set_variable(name, std::move(variable));
  }
  static void merge_value(ShellVariable& variable, ShellValue value) {
    if (std::find(variable.values.begin(), variable.values.end(), value) != variable.values.end())
      return;
    if (variable.values.size() < max_values)
      variable.values.push_back(std::move(value));
    else
      variable.values.assign(1, scalar_value(unknown_text()));
  }
  // After branches of which one was taken, or none if `maybe_none`.
  void merge(std::vector<Changes> branches, bool maybe_none) {
    std::map<std::string, std::vector<const ShellVariable*>> changed;
    for (const Changes& changes : branches)
      for (const auto& [name, variable] : changes) changed[name].push_back(&variable);
    for (const auto& [name, variables] : changed) {
      ShellVariable merged;
      if (maybe_none || variables.size() < branches.size()) merged = variable_of(name);
      for (const ShellVariable* variable : variables)
        for (const ShellValue& value : variable->values) merge_value(merged, value);
      set_variable(name, std::move(merged));
    }
  }

  // The variable, or what it is when the script has not set it.
  ShellVariable& variable_of(std::string_view name) {
    auto at = variables_.find(name);
    if (at == variables_.end())
      at = variables_.emplace(std::string(name), initial_variable(name)).first;
    return at->second;
  }
  static ShellVariable initial_variable(std::string_view name) {
    ShellText text = unknown_text();
    bool environment = true;
    if (name == "IFS") text.text = " \t\n";
    if (name == "HOME") text.text = "~";
    if (name == "HOME") text.home = true;
    if (name == work_dir_key) text.text.clear();
    if (name == "IFS" || name == "HOME" || name == work_dir_key) environment = false;
    ShellVariable variable;
    if (name[0] == '+') {
      // Whether a variable of the environment is there; see add_either().
      variable.values.resize(2);
      variable.values[1].unset = true;
      return variable;
    }
    variable.values.push_back(scalar_value(std::move(text)));
    variable.values[0].environment = environment;
    if (name == positional_key) {
      variable.values[0] = ShellValue();
      variable.values[0].array = true;
    }
    return variable;
  }

  // A variable with several values, and the one that is being looked at.
  struct Choice {
    std::string name = {};
    std::size_t index = 0;
    std::size_t count = 0;
  };

  // The value in the present choice.
  const ShellValue& value_of(std::string_view name) {
    ShellVariable& variable = variable_of(name);
    variable.last_read = ++step_;
    if (references_ && is_name(name)) return unknown_value_;
    if (variable.values.size() == 1) return variable.values[0];
    if (too_many_choices_) return unknown_value_;
    for (const Choice& choice : choices_)
      if (choice.name == name)
        return variable.values[std::min(choice.index, variable.values.size() - 1)];
    choices_.push_back({std::string(name), 0, variable.values.size()});
    return variable.values[0];
  }

  // Calls `tell` once for each combination of the values that it asks for.
  template <class Tell>
  void for_each_choice(Tell tell) {
    std::vector<Choice> outer;
    outer.swap(choices_);
    const bool outer_many = std::exchange(too_many_choices_, false);
    std::size_t told = 0;
    do {
      tell(told == 0);
      ++told;
    } while (!stopped() && told < max_choices && next_choice());
    if (told == max_choices && next_choice() && !stopped()) {
      too_many_choices_ = true;
      tell(false);
    }
    choices_.swap(outer);
    too_many_choices_ = outer_many;
  }
  bool next_choice() {
    while (!choices_.empty()) {
      if (++choices_.back().index < choices_.back().count) return true;
      choices_.pop_back();
    }
    return false;
  }

  // expansion -------------------------------------------------------------------------------------

  // Words under construction.
  struct Fields {
    std::vector<shell::Word>& out;
    bool single = false;  // an assignment or a redirection: one word whatever it contains
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    shell::Word word = {};
    bool started = false;
    bool assumed = false;  // what is added now
  };

  void add_text(Fields& fields, std::string_view text, bool quoted) {
    text_bytes_ += text.size();
    if (text_bytes_ > options_.limits.max_text)
      return over_limit(options_.limits.max_text, "bytes of words", fields.begin);
    fields.word.text += text;
    fields.word.assumed = fields.word.assumed || fields.assumed;
    fields.started = fields.started || quoted || !text.empty();
    if (!quoted && has_glob(text)) fields.word.glob = true;
  }
  void add_unknown(Fields& fields, bool quoted) {
    add_text(fields, std::string_view("\0", 1), quoted);
    if (!quoted && !fields.single) fields.word.split = true;
  }
  // Counts work that is not seen in the words as if it were text.
  void charge(std::size_t amount) {
    text_bytes_ += amount;
    if (text_bytes_ > options_.limits.max_text)
      over_limit(options_.limits.max_text, "bytes of words", 0);
  }
  void end_field(Fields& fields) {
    fields.word.begin = fields.begin;
    fields.word.end = fields.end;
    fields.out.push_back(std::move(fields.word));
    fields.word = shell::Word();
    fields.started = false;
    if (++words_ > options_.limits.max_words)
      over_limit(options_.limits.max_words, "words", fields.begin);
  }

  // The value of an expansion: split into fields when it is not quoted.
  void add_value_text(Fields& fields, const ShellText& text, bool quoted) {
    if (text.home && !fields.started && fields.word.text.empty()) {
      fields.word.home = true;
    } else if (text.home) {
      return add_unknown(fields, true);
    }
    if (text.assumed) fields.word.assumed = true;
    if (text.glob) fields.word.glob = true;
    if (quoted || fields.single) {
      add_text(fields, text.text, true);
      if (!quoted && has_glob(text.text)) fields.word.glob = true;
      return;
    }
    add_split(fields, text.text);
  }
  void add_split(Fields& fields, std::string_view text) {
    const ShellValue& ifs = value_of("IFS");
    std::string separators = ifs.elements.empty() ? std::string() : ifs.elements[0].text;
    if (ifs.unset) separators = " \t\n";
    if (separators.find('\0') != std::string::npos) return add_unknown(fields, false);
    std::size_t begin = 0;
    for (std::size_t at = 0; at <= text.size() && !stopped(); ++at) {
      const bool ends = at < text.size() && separators.find(text[at]) != std::string::npos;
      const bool unknown = at < text.size() && text[at] == '\0';
      if (at < text.size() && !ends && !unknown) continue;
      if (at > begin) add_text(fields, text.substr(begin, at - begin), false);
      begin = at + 1;
      if (unknown) add_unknown(fields, false);
      if (!ends) continue;
      // Blanks around another separator are part of it.
      const auto is_blank = [text](std::size_t i) {
        return is_shell_blank(text[i]) || text[i] == '\n';
      };
      bool blank = is_blank(at);
      while (at + 1 < text.size() && separators.find(text[at + 1]) != std::string::npos &&
             (blank || is_blank(at + 1)))
        blank = is_blank(++at) && blank;
      begin = at + 1;
      if (fields.started || !blank) end_field(fields);
    }
  }

  void expand_word(std::uint32_t index, Fields& fields) {
    const ShellWord word = syntax_.words[index];
    fields.begin = word.begin;
    fields.end = word.end;
    if (word.braces && !fields.single) return expand_braces(word, fields);
    expand_parts(word.parts, fields);
    if (fields.started || fields.single) end_field(fields);
  }
  void expand_parts(ShellRange parts, Fields& fields) {
    for (std::uint32_t i = parts.begin; i < parts.end && !stopped(); ++i)
      expand_part(ShellPart(syntax_.parts[i]), fields, false);
  }

  // `operand`: part of the word of ${x:-word}, whose unquoted blanks separate fields.
  void expand_part(const ShellPart& part, Fields& fields, bool operand) {
    switch (part.kind) {
      case ShellPart::Kind::literal:
        if (operand && !part.quoted && !fields.single) return add_split(fields, part.text);
        return add_text(fields, part.text, part.quoted);
      case ShellPart::Kind::unknown:
        return add_unknown(fields, part.quoted);
      case ShellPart::Kind::tilde:
        return expand_tilde(part, fields);
      case ShellPart::Kind::parameter:
        return expand_parameter(part, fields);
      case ShellPart::Kind::command: {
        const ShellText text = output_of(part.node);
        return add_value_text(fields, text, part.quoted);
      }
      case ShellPart::Kind::process: {
        run_process(part);
        add_unknown(fields, true);
        fields.word.process = true;
        return;
      }
      case ShellPart::Kind::arithmetic: {
        const std::string value = arithmetic(part.operand);
        if (value.empty()) return add_unknown(fields, true);
        return add_text(fields, value, true);
      }
    }
  }

  void expand_tilde(const ShellPart& part, Fields& fields) {
    if (part.text.empty()) {
      const ShellValue home = value_of("HOME");
      if (home.elements.size() == 1) return add_value_text(fields, home.elements[0], true);
      return add_unknown(fields, true);
    }
    if (part.text == "+" || part.text == "-") return add_unknown(fields, true);
    if (!is_name_start(part.text[0])) return add_text(fields, concat({"~", part.text}), false);
    ShellText user;
    user.text = concat({"~", part.text});
    user.home = true;
    add_value_text(fields, user, true);
  }

  // The one string that a word makes.
  ShellText expand_single(std::uint32_t index) {
    if (index == no_index) return {};
    std::vector<shell::Word> words;
    Fields fields{words, true};
    expand_word(index, fields);
    if (words.empty()) return {};
    return text_of(std::move(words[0]));
  }
  static ShellText text_of(shell::Word word) {
    ShellText text;
    text.text = std::move(word.text);
    text.assumed = word.assumed;
    text.glob = word.glob;
    text.home = word.home;
    return text;
  }

  // {a,b} and {1..3} ------------------------------------------------------------------------------

  // A part, or one of the characters { , } of an unquoted text.
  struct BracePiece {
    ShellPart part = {};
    char mark = 0;
    std::size_t close = 0;  // of a {: where its } is; 0: it is a plain character
    bool comma = false;     // of a {: a comma belongs to it
  };
  using BraceWord = std::vector<ShellPart>;

  void expand_braces(const ShellWord& word, Fields& fields) {
    std::vector<BracePiece> pieces;
    for (std::uint32_t i = word.parts.begin; i < word.parts.end; ++i)
      add_brace_pieces(syntax_.parts[i], pieces);
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].mark == '{') open.push_back(i);
      if (pieces[i].mark == ',' && !open.empty()) pieces[open.back()].comma = true;
      if (pieces[i].mark == '}' && !open.empty()) {
        pieces[open.back()].close = i;
        open.pop_back();
      }
    }
    for (const BraceWord& parts : brace_words(pieces, 0, pieces.size(), word.begin)) {
      for (std::size_t i = 0; i < parts.size() && !stopped(); ++i) {
        if (i == 0 && !parts[0].quoted && parts[0].kind == ShellPart::Kind::literal &&
            starts_with(parts[0].text, "~"))
          expand_leading_tilde(parts[0], parts.size() == 1, fields);
        else
          expand_part(parts[i], fields, false);
      }
      if (fields.started) end_field(fields);
    }
  }
  // A ~ that begins a word only after the expansion of braces. `alone`: nothing follows the part.
  void expand_leading_tilde(const ShellPart& part, bool alone, Fields& fields) {
    const std::size_t end = std::min(part.text.find('/'), part.text.size());
    if (end == part.text.size() && !alone) return expand_part(part, fields, false);
    ShellPart tilde = part;
    tilde.kind = ShellPart::Kind::tilde;
    tilde.text = part.text.substr(1, end - 1);
    expand_part(tilde, fields, false);
    ShellPart rest = part;
    rest.text = part.text.substr(end);
    if (!rest.text.empty()) expand_part(rest, fields, false);
  }
  static void add_brace_pieces(const ShellPart& part, std::vector<BracePiece>& pieces) {
    BracePiece piece;
    piece.part = part;
    if (part.kind != ShellPart::Kind::literal || part.quoted) {
      pieces.push_back(piece);
      return;
    }
    std::string_view text = part.text;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of("{,}"), text.size());
      const std::size_t count = end == 0 ? 1 : end;
      piece.part.text = text.substr(0, count);
      piece.mark = end == 0 ? text[0] : '\0';
      pieces.push_back(piece);
      text.remove_prefix(count);
    }
  }

  std::vector<BraceWord> brace_words(const std::vector<BracePiece>& pieces, std::size_t from,
                                     std::size_t to, std::size_t at) {
    std::vector<BraceWord> words(1);
    for (std::size_t i = from; i < to && !stopped(); ++i) {
      const BracePiece& piece = pieces[i];
      std::vector<BraceWord> alternatives;
      if (piece.mark == '{' && piece.close != 0 && piece.close < to) {
        if (piece.comma)
          alternatives = brace_list(pieces, i, at);
        else
          alternatives = brace_sequence(pieces, i);
      }
      if (alternatives.empty()) {
        for (BraceWord& word : words) word.push_back(piece.part);
        if (words.size() > 1) brace_parts_ += words.size();
      } else {
        std::vector<BraceWord> product;
        for (const BraceWord& word : words) {
          for (const BraceWord& alternative : alternatives) {
            product.push_back(word);
            product.back().insert(product.back().end(), alternative.begin(), alternative.end());
            brace_parts_ += product.back().size() + 1;
            if (brace_parts_ > options_.limits.max_words) break;
          }
        }
        words = std::move(product);
        i = piece.close;
      }
      if (brace_parts_ > options_.limits.max_words)
        over_limit(options_.limits.max_words, "words from braces", at);
    }
    return words;
  }
  std::vector<BraceWord> brace_list(const std::vector<BracePiece>& pieces, std::size_t open,
                                    std::size_t at) {
    std::vector<BraceWord> all;
    if (++brace_depth_ > options_.limits.max_depth) {
      stop(ErrorCode::limit,
           concat({"nested deeper than ", std::to_string(options_.limits.max_depth), " levels"}),
           at);
      return all;
    }
    std::size_t from = open + 1;
    for (std::size_t i = from; i <= pieces[open].close && !stopped(); ++i) {
      if (pieces[i].mark == '{' && pieces[i].close != 0) {
        i = pieces[i].close;
        continue;
      }
      if (pieces[i].mark != ',' && i != pieces[open].close) continue;
      for (BraceWord& word : brace_words(pieces, from, i, at)) all.push_back(std::move(word));
      from = i + 1;
    }
    --brace_depth_;
    return all;
  }
  // {1..3}, {a..e}, {1..9..2}
  std::vector<BraceWord> brace_sequence(const std::vector<BracePiece>& pieces, std::size_t open) {
    if (pieces[open].close != open + 2 || pieces[open + 1].part.kind != ShellPart::Kind::literal ||
        pieces[open + 1].part.quoted)
      return {};
    const std::string_view text = pieces[open + 1].part.text;
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return {};
    std::string_view first = text.substr(0, dots);
    std::string_view last = text.substr(dots + 2);
    std::string_view step_text = "1";
    if (const std::size_t more = last.find(".."); more != std::string_view::npos) {
      step_text = last.substr(more + 2);
      last = last.substr(0, more);
    }
    long long from = 0;
    long long to = 0;
    long long step = 0;
    if (!read_integer(step_text, step)) return {};
    const bool letters = first.size() == 1 && last.size() == 1 && !is_digit(first[0]) &&
                         !is_digit(last[0]) && is_name_start(first[0]) && is_name_start(last[0]);
    if (letters) {
      from = first[0];
      to = last[0];
    } else if (!read_integer(first, from) || !read_integer(last, to)) {
      return {};
    }
    step = std::max(step < 0 ? -step : step, 1LL);
    const bool padded = !letters && (is_padded(first) || is_padded(last));
    const std::size_t width = padded ? std::max(first.size(), last.size()) : 0;
    std::vector<BraceWord> words;
    for (long long value = from; from <= to ? value <= to : value >= to;
         value += from <= to ? step : -step) {
      std::string member =
          letters ? std::string(1, static_cast<char>(value)) : padded_number(value, width);
      syntax_.texts.push_back(std::move(member));
      ShellPart part;
      part.quoted = true;
      part.text = syntax_.texts.back();
      words.push_back({part});
      if (++brace_parts_ > options_.limits.max_words) break;
    }
    return words;
  }
  static bool read_integer(std::string_view text, long long& value) {
    if (text.empty() || text.size() > 9) return false;
    if (text[0] == '+') text.remove_prefix(1);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
  }
  // In arithmetic, a 0 in front makes a number octal.
  static bool read_decimal(std::string_view text, long long& value) {
    return !is_padded(text) && read_integer(text, value);
  }
  static bool is_padded(std::string_view text) {
    if (!text.empty() && text[0] == '-') text.remove_prefix(1);
    return text.size() > 1 && text[0] == '0';
  }
  static std::string padded_number(long long value, std::size_t width) {
    std::string digits = std::to_string(value < 0 ? -value : value);
    const std::size_t sign = value < 0 ? 1 : 0;
    if (digits.size() + sign < width) digits.insert(0, width - sign - digits.size(), '0');
    return value < 0 ? concat({"-", digits}) : digits;
  }

  // parameters ------------------------------------------------------------------------------------

  // What a parameter stands for.
  struct Parameter {
    enum class State {
      set,
      unset,
      environment,  // not set by the script
      unknown,      // set to something that is not known
    };
    State state = State::set;
    std::vector<ShellText> elements = {};
    bool all = false;   // $@ or ${name[@]}: a field for each element even in quotes
    bool many = false;  // $@, $*, ${name[@]}, ${name[*]}
  };

  void expand_parameter(const ShellPart& part, Fields& fields) {
    Parameter parameter = read_parameter(part);
    if (part.operation != 0 || part.length) {
      if (apply_operation(part, parameter, fields)) return;
    }
    add_parameter(part, parameter, fields);
  }

  void add_parameter(const ShellPart& part, const Parameter& parameter, Fields& fields) {
    switch (parameter.state) {
      case Parameter::State::unset:
        if (part.quoted && !parameter.all) add_text(fields, {}, true);
        return;
      case Parameter::State::environment:
      case Parameter::State::unknown: {
        // The working directory is one path, however it is called; numbers have no blanks.
        const bool whole = part.quoted || (!parameter.many && is_whole(part.text));
        add_unknown(fields, whole && !(parameter.all && part.quoted));
        if (parameter.all && part.quoted && !fields.single) fields.word.split = true;
        return;
      }
      case Parameter::State::set:
        break;
    }
    const bool separate = parameter.many && !fields.single && (parameter.all || !part.quoted);
    for (std::size_t i = 0; i < parameter.elements.size() && !stopped(); ++i) {
      if (i > 0 && separate && fields.started) end_field(fields);
      if (i > 0 && !separate) add_text(fields, parameter.all ? " " : joint(), true);
      add_value_text(fields, parameter.elements[i], part.quoted);
      // What was not known when it became an element may have been several, or none.
      if (parameter.many && !parameter.elements[i].known() && !fields.single)
        fields.word.split = true;
    }
    if (parameter.elements.empty() && part.quoted && !parameter.all) add_text(fields, {}, true);
  }
  // What stands between the elements of "$*".
  std::string joint() {
    const ShellValue& ifs = value_of("IFS");
    if (ifs.unset) return " ";
    return ifs.elements.empty() ? std::string() : ifs.elements[0].text.substr(0, 1);
  }
  static bool is_whole(std::string_view name) {
    return name == "PWD" || name == "#" || name == "?" || name == "$" || name == "!" || name == "-";
  }

  Parameter read_parameter(const ShellPart& part) {
    Parameter parameter;
    const std::string_view name = part.text;
    if (part.indirect) return indirect_parameter(part);
    if (name == "@" || name == "*") {
      parameter.many = true;
      parameter.all = name == "@";
      read_elements(value_of(positional_key), parameter);
      return parameter;
    }
    if (is_digit(name[0]) && name != "0") return positional_parameter(name);
    if (name == "#") return count_parameter();
    if (name.size() == 1 && !is_name_start(name[0]) && name != "0") {
      parameter.state = Parameter::State::unknown;
      return parameter;
    }
    if (part.subscript != no_index) return element_parameter(part);
    if (name == "PWD" && variables_.find(name) == variables_.end()) {
      read_elements(value_of(work_dir_key), parameter);
      if (parameter.state == Parameter::State::set && !is_whole_path(parameter.elements[0]))
        parameter.state = Parameter::State::unknown;
      return parameter;
    }
    const ShellValue& value = value_of(name);
    if (value.array && value.elements.size() > 1) {
      // Without a subscript, an array is its first element.
      parameter.elements.push_back(value.elements[0]);
      return parameter;
    }
    read_elements(value, parameter);
    return parameter;
  }

  void read_elements(const ShellValue& value, Parameter& parameter) {
    charge(value.elements.size());
    if (value.unset || (value.array && value.elements.empty() && !parameter.many)) {
      parameter.state = Parameter::State::unset;
    } else if (value.environment) {
      parameter.state = Parameter::State::environment;
    } else if (value.elements.size() == 1 && value.elements[0].text == std::string_view("\0", 1)) {
      parameter.state = Parameter::State::unknown;
    } else {
      parameter.elements = value.elements;
    }
  }

  static bool is_whole_path(const ShellText& text) {
    return text.home || starts_with(text.text, "/");
  }
  Parameter positional_parameter(std::string_view name) {
    Parameter parameter;
    const ShellValue& value = value_of(positional_key);
    long long number = 0;
    const bool read = read_integer(name, number);
    const std::size_t index = read ? static_cast<std::size_t>(number) - 1 : value.elements.size();
    charge(std::min(index, value.elements.size()));
    // Behind words that may be several, positions are not certain.
    for (std::size_t i = 0; i < value.elements.size() && i <= index; ++i)
      if (!value.elements[i].known()) parameter.state = Parameter::State::unknown;
    if (parameter.state == Parameter::State::unknown) {
      if (index < value.elements.size() && value.elements[index].text.size() > 1) {
        parameter.state = Parameter::State::set;
        parameter.elements.push_back(value.elements[index]);
      }
      return parameter;
    }
    if (index < value.elements.size())
      parameter.elements.push_back(value.elements[index]);
    else
      parameter.state = Parameter::State::unset;
    return parameter;
  }
  Parameter count_parameter() {
    Parameter parameter;
    const ShellValue& value = value_of(positional_key);
    charge(value.elements.size());
    for (const ShellText& element : value.elements)
      if (!element.known()) parameter.state = Parameter::State::unknown;
    ShellText count;
    count.text = std::to_string(value.elements.size());
    if (parameter.state == Parameter::State::set) parameter.elements.push_back(std::move(count));
    return parameter;
  }

  Parameter element_parameter(const ShellPart& part) {
    Parameter parameter;
    const ShellText subscript = expand_single(part.subscript);
    const ShellValue& value = value_of(part.text);
    if (subscript.text == "@" || subscript.text == "*") {
      parameter.many = true;
      parameter.all = subscript.text == "@";
      read_elements(value, parameter);
      return parameter;
    }
    long long index = 0;
    if (value.environment || !read_decimal(subscript.text, index)) {
      parameter.state = Parameter::State::unknown;
      return parameter;
    }
    const auto size = static_cast<long long>(value.elements.size());
    if (index < 0) index += size;
    if (index >= 0 && index < size && !value.unset)
      parameter.elements.push_back(value.elements[static_cast<std::size_t>(index)]);
    else
      parameter.state = Parameter::State::unset;
    return parameter;
  }

  Parameter indirect_parameter(const ShellPart& part) {
    Parameter parameter;
    parameter.state = Parameter::State::unknown;
    ShellPart direct = part;
    direct.indirect = false;
    direct.operation = 0;
    const Parameter named = read_parameter(direct);
    if (part.operation == '*' || part.operation == '@' || named.state != Parameter::State::set ||
        named.elements.size() != 1 || !is_name(named.elements[0].text))
      return parameter;
    syntax_.texts.push_back(named.elements[0].text);
    direct.text = syntax_.texts.back();
    direct.subscript = no_index;
    return read_parameter(direct);
  }

  // Applies ${#name} or the operation. True: the result has been added.
  bool apply_operation(const ShellPart& part, Parameter& parameter, Fields& fields) {
    using State = Parameter::State;
    if (part.length) {
      const bool known = parameter.state == State::set && !parameter.many &&
                         parameter.elements.size() == 1 && parameter.elements[0].known() &&
                         is_ascii(parameter.elements[0].text) && !parameter.elements[0].home;
      if (known)
        add_text(fields, std::to_string(parameter.elements[0].text.size()), true);
      else
        add_unknown(fields, true);
      return true;
    }
    const bool empty = parameter.state == State::unset ||
                       (part.colon && parameter.state == State::set &&
                        (parameter.elements.empty() ||
                         (parameter.elements.size() == 1 && parameter.elements[0].text.empty())));
    switch (part.operation) {
      case '-':
      case '=':
      case '?':
        if (parameter.state == State::environment) {
          if (part.operation == '?') break;
          assume_operand(part, fields);
          return true;
        }
        if (parameter.state == State::unknown || !empty) {
          walk_operand(part);
          return false;
        }
        if (part.operation == '=') {
          if (part.indirect) references_ = true;
          // What it gives is the variable's value, split like one.
          const ShellText value = expand_single(part.operand);
          assign(part.text, scalar_value(value));
          add_value_text(fields, value, part.quoted);
          if (part.quoted) add_text(fields, {}, true);
          return true;
        }
        if (part.operation == '?') add_unknown(fields, part.quoted);
        if (part.operation != '?') add_operand(part, fields);
        return true;
      case '+':
        if (parameter.state == State::environment || parameter.state == State::unknown)
          add_either(part, fields);
        else if (!empty)
          add_operand(part, fields);
        else
          walk_operand(part);
        if (part.quoted) add_text(fields, {}, true);
        return true;
      default:
        break;
    }
    const ShellText operand = expand_single(part.operand);
    if (part.operation == '@' && operand.text == "P") run_prompt(parameter);
    if (parameter.state == State::unset) return false;
    bool known =
        parameter.state == State::set && operand.known() && is_plain_pattern(part, operand);
    if (part.operation == ':' && parameter.many) {
      known = known && take_slice(part, operand.text, parameter.elements);
    } else {
      for (ShellText& element : parameter.elements)
        known = known && element.known() && !element.home && edit(part, operand.text, element.text);
    }
    if (!known && parameter.state == State::set) parameter.state = State::unknown;
    return false;
  }

  // Whether the operand means the same with and without its quotes, and with and without extglob.
  bool is_plain_pattern(const ShellPart& part, const ShellText& operand) const {
    if (part.operation == ':' || part.operation == '@' || part.operand == no_index) return true;
    if (operand.text.find('(') != std::string::npos) return false;
    return !syntax_.words[part.operand].quoted ||
           operand.text.find_first_of("*?[]\\/&") == std::string::npos;
  }
  void add_operand(const ShellPart& part, Fields& fields) {
    if (part.operand == no_index) return;
    const ShellRange parts = syntax_.words[part.operand].parts;
    for (std::uint32_t i = parts.begin; i < parts.end && !stopped(); ++i)
      expand_part(ShellPart(syntax_.parts[i]), fields, true);
    if (part.quoted) add_text(fields, {}, true);
  }
  // ${name:+word} of a variable that may be set or not: both are told.
  void add_either(const ShellPart& part, Fields& fields) {
    const ShellValue& value = value_of(concat({"+", part.text}));
    if (&value == &unknown_value_) return add_unknown(fields, part.quoted);
    if (!value.unset) return assume_operand(part, fields);
    fields.word.assumed = true;
    walk_operand(part);
  }
  void assume_operand(const ShellPart& part, Fields& fields) {
    const bool outer = std::exchange(fields.assumed, true);
    if (part.operation == '=')
      add_value_text(fields, expand_single(part.operand), part.quoted);
    else
      add_operand(part, fields);
    if (part.quoted) add_text(fields, {}, true);
    fields.word.assumed = true;
    fields.assumed = outer;
    if (part.operation != '=') return;
    if (part.indirect) references_ = true;
    if (steers_programs(part.text)) {
      ShellNode here;
      here.begin = fields.begin;
      here.end = fields.end;
      tell_assignment(here, part.text, variable_of(part.text));
    }
    ShellText text = expand_single(part.operand);
    text.assumed = true;
    assign(part.text, scalar_value(std::move(text)));
  }
  // For the commands in an operand that is not used, as far as the walk can tell.
  void walk_operand(const ShellPart& part) {
    open_frame();
    expand_single(part.operand);
    take_frame();
  }

  // Changes `text` as the operation says; false when that is not known.
  bool edit(const ShellPart& part, const std::string& operand, std::string& text) {
    switch (part.operation) {
      case '^':
      case ',':
        if (!operand.empty()) return false;
        for (std::size_t i = 0;
             i < (part.doubled ? text.size() : std::min<std::size_t>(text.size(), 1)); ++i) {
          char& c = text[i];
          if (part.operation == '^' && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
          if (part.operation == ',' && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        }
        return true;
      case '%':
      case '#':
        return remove_match(part, operand, text);
      case '/':
        return replace(part, operand, text);
      case ':':
        return take_substring(operand, text);
      case '@':
        if (operand == "U" || operand == "L") {
          for (char& c : text) {
            if (operand == "U" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
            if (operand == "L" && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
          }
          return true;
        }
        return false;
      default:
        return false;
    }
  }
  // Only patterns of plain characters and stars at the far end: what names are cut with.
  static bool remove_match(const ShellPart& part, std::string_view pattern, std::string& text) {
    const bool front = part.operation == '#';
    const bool star = !pattern.empty() && (front ? pattern.front() : pattern.back()) == '*';
    if (star) pattern = front ? pattern.substr(1) : pattern.substr(0, pattern.size() - 1);
    if (has_glob(pattern) || pattern.find('\\') != std::string_view::npos) return false;
    if (!star) {
      if (front && starts_with(text, pattern)) text.erase(0, pattern.size());
      if (!front && ends_with(text, pattern)) text.erase(text.size() - pattern.size());
      return true;
    }
    const bool first = front != part.doubled;
    const std::size_t at = first ? text.find(pattern) : text.rfind(pattern);
    if (at == std::string::npos) return true;
    if (front)
      text.erase(0, at + pattern.size());
    else
      text.erase(at);
    return true;
  }
  bool replace(const ShellPart& part, std::string_view operand, std::string& text) {
    const std::size_t slash = operand.find('/');
    const std::string_view pattern = operand.substr(0, slash);
    const std::string_view with =
        slash == std::string_view::npos ? std::string_view() : operand.substr(slash + 1);
    if (pattern.empty() || has_glob(pattern) || pattern.find('\\') != std::string_view::npos ||
        with.find_first_of("&\\") != std::string_view::npos ||
        (!part.doubled && (pattern[0] == '#' || pattern[0] == '%')))
      return false;
    std::string result;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t found = text.find(pattern, at);
      if (found == std::string::npos) break;
      result.append(text, at, found - at);
      result += with;
      at = found + pattern.size();
      text_bytes_ += with.size();
      if (!part.doubled || text_bytes_ > options_.limits.max_text) break;
    }
    result.append(text, std::min(at, text.size()), std::string::npos);
    text = std::move(result);
    return true;
  }
  // ${@:2}, ${name[@]:1:3}. Positional parameters count from 1.
  static bool take_slice(const ShellPart& part, std::string_view operand,
                         std::vector<ShellText>& elements) {
    const std::size_t colon = operand.find(':');
    const bool positional = part.text == "@" || part.text == "*";
    long long offset = 0;
    long long length = static_cast<long long>(elements.size());
    if (!read_decimal(operand.substr(0, colon), offset) || offset < (positional ? 1 : 0))
      return false;
    if (colon != std::string_view::npos &&
        (!read_decimal(operand.substr(colon + 1), length) || length < 0))
      return false;
    for (const ShellText& element : elements)
      if (!element.known()) return false;
    const std::size_t from =
        std::min(static_cast<std::size_t>(offset) - (positional ? 1U : 0U), elements.size());
    const std::size_t count = std::min(static_cast<std::size_t>(length), elements.size() - from);
    elements = std::vector<ShellText>(elements.begin() + static_cast<std::ptrdiff_t>(from),
                                      elements.begin() + static_cast<std::ptrdiff_t>(from + count));
    return true;
  }
  static bool take_substring(std::string_view operand, std::string& text) {
    const std::size_t colon = operand.find(':');
    std::string_view offset_text = operand.substr(0, colon);
    while (!offset_text.empty() && offset_text[0] == ' ') offset_text.remove_prefix(1);
    const auto size = static_cast<long long>(text.size());
    long long offset = 0;
    long long length = size;
    if (!is_ascii(text) || (!offset_text.empty() && !read_decimal(offset_text, offset)))
      return false;
    if (colon != std::string_view::npos && !read_decimal(operand.substr(colon + 1), length))
      return false;
    if (offset < 0) offset += size;
    if (length < 0) length += size - offset;
    if (offset < 0 || offset > size || length < 0) {
      text.clear();
      return true;
    }
    text = text.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
    return true;
  }
  static bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
  }

  // The value of arithmetic that is a number as it stands; else nothing. Variables in it are
  // evaluated, and bash runs the substitutions in the subscripts they contain.
  std::string arithmetic(std::uint32_t index) {
    const ShellText text = expand_single(index);
    long long number = 0;
    run_arithmetic_text(text.text);
    if (text.assumed || !read_integer(text.text, number) || text.text[0] == '0') return {};
    return std::to_string(number);
  }
  void run_arithmetic_text(std::string_view text) {
    const bool assigns = text.find('=') != std::string_view::npos ||
                         text.find("++") != std::string_view::npos ||
                         text.find("--") != std::string_view::npos;
    if (has_substitution(text)) run_expansion_text(std::string(text));
    for (std::size_t at = 0; at < text.size() && !stopped();) {
      std::size_t end = at;
      while (end < text.size() && is_name_char(text[end])) ++end;
      if (end > at && is_name_start(text[at])) {
        run_arithmetic_value(text.substr(at, end - at));
        if (assigns) assign_unknown(text.substr(at, end - at));
      }
      at = std::max(end, at + 1);
    }
  }
  void run_arithmetic_value(std::string_view name) {
    if (variables_.find(name) == variables_.end()) return;
    const ShellValue value = value_of(name);
    for (const ShellText& element : value.elements)
      if (has_substitution(element.text)) run_expansion_text(element.text);
  }
  static bool has_subscript(std::string_view text) {
    const std::size_t open = text.find('[');
    return open != std::string_view::npos && open > 0 && is_name_char(text[open - 1]);
  }
  static bool has_substitution(std::string_view text) {
    return text.find("$(") != std::string_view::npos || text.find('`') != std::string_view::npos;
  }
  // Builtins that take names of variables evaluate the subscripts in them: unset 'a[$(command)]'.
  void run_subscripts(const shell::Command& command) {
    for (const shell::Word& word : command.words)
      if (has_subscript(word.text) && has_substitution(word.text)) run_expansion_text(word.text);
  }
  // ${name@P}: the value is expanded as a prompt.
  void run_prompt(const Parameter& parameter) {
    for (const ShellText& element : parameter.elements) run_expansion_text(element.text);
  }

  // running ---------------------------------------------------------------------------------------

  // What a list writes to standard output, as far as known.
  struct Output {
    std::string text = {};
    bool assumed = false;
  };
  void write_output(std::string_view text) {
    if (output_ == nullptr) return;
    output_->text += text;
    text_bytes_ += text.size();
  }
  void write_unknown() {
    // One unknown part says as much as two.
    if (output_ != nullptr && (output_->text.empty() || output_->text.back() != '\0'))
      write_output(std::string_view("\0", 1));
  }

  bool enter(std::size_t at) {
    if (depth_ < options_.limits.max_depth) {
      ++depth_;
      return true;
    }
    stop(ErrorCode::limit,
         concat({"nested deeper than ", std::to_string(options_.limits.max_depth), " levels"}), at);
    return false;
  }

  void run(std::uint32_t index) {
    if (stopped()) return;
    const ShellNode node = syntax_.nodes[index];
    // Lists are held by the constructs that count.
    const bool counts = node.kind > ShellNode::Kind::pipeline;
    if (counts && !enter(node.begin)) return;
    here_begin_ = node.begin;
    here_end_ = node.end;
    if (node.background)
      run_background(index, node);
    else
      run_foreground(index, node);
    if (counts) --depth_;
  }
  void run_background(std::uint32_t index, const ShellNode& node) {
    const bool outer = std::exchange(background_, true);
    ++parallel_;
    open_frame();
    run_foreground(index, node);
    take_frame();
    --parallel_;
    background_ = outer;
  }
  void run_foreground(std::uint32_t index, const ShellNode& node) {
    if (node.kind == ShellNode::Kind::simple) return run_simple(node);
    if (node.kind == ShellNode::Kind::function) return define(index, node);
    if (size(node.redirections) == 0) return run_compound(node);
    // Its redirections hold for everything in it.
    shell::Input input = input_;
    for_each_choice([&](bool) {
      std::vector<shell::Redirection> redirections;
      expand_redirections(node, redirections, input);
      shell::Command command;
      command.redirections = std::move(redirections);
      command.compound = true;
      tell(node, std::move(command));
    });
    std::swap(input, input_);
    Output* const outer = output_;
    if (redirects_output(node)) output_ = nullptr;
    run_compound(node);
    output_ = outer;
    std::swap(input, input_);
  }

  void run_compound(const ShellNode& node) {
    switch (node.kind) {
      case ShellNode::Kind::simple:
      case ShellNode::Kind::function:
        return;
      case ShellNode::Kind::list:
        for (std::size_t i = 0; i < size(node.nodes); ++i) run(item(node.nodes, i));
        return;
      case ShellNode::Kind::and_or:
        return run_and_or(node);
      case ShellNode::Kind::pipeline:
        return run_pipeline(node);
      case ShellNode::Kind::subshell:
        open_frame();
        run(item(node.nodes, 0));
        take_frame();
        return;
      case ShellNode::Kind::group:
        return run(item(node.nodes, 0));
      case ShellNode::Kind::if_clause:
        return run_if(node);
      case ShellNode::Kind::loop:
        return run_loop(node);
      case ShellNode::Kind::for_clause:
        return run_for(node);
      case ShellNode::Kind::arithmetic_for:
        for_each_choice([&](bool) { arithmetic(item(node.words, 0)); });
        return run_loop(node);
      case ShellNode::Kind::case_clause:
        return run_case(node);
      case ShellNode::Kind::coprocess:
        return run_coprocess(node);
      case ShellNode::Kind::condition:
        return run_condition(node);
      case ShellNode::Kind::arithmetic:
        return run_arithmetic(node);
    }
  }

  // What came after the first `written` bytes of output may have been written, or not.
  void forget_output(std::size_t written) {
    if (output_ == nullptr || output_->text.size() <= written) return;
    output_->text.resize(written);
    write_unknown();
  }
  // Runs what may or may not run; gives what it changed.
  Changes run_branch(std::uint32_t index) {
    const std::size_t written = output_ == nullptr ? 0 : output_->text.size();
    open_frame();
    run(index);
    forget_output(written);
    return take_frame();
  }

  // After &&, commands run in a state that knows all before them; after ||, that of the failure of
  // some of them.
  void run_and_or(const ShellNode& node) {
    run(item(node.nodes, 0));
    const std::size_t written = output_ == nullptr ? 0 : output_->text.size();
    // What each command changes may be what remains: the next one may not run.
    std::vector<Changes> steps;
    open_frame();
    char before = 0;
    for (std::size_t i = 1; i < size(node.nodes); ++i) {
      const char joint = this->node(item(node.nodes, i)).joint;
      // Behind ||, and what follows behind &&, it is not known which of those before have run.
      if (i > 1 && (joint == '|' || before == '|')) {
        steps.push_back(take_frame());
        merge(std::move(steps), true);
        steps.clear();
        open_frame();
      }
      open_frame();
      run(item(node.nodes, i));
      Changes changes = take_frame();
      for (const auto& [name, variable] : changes) set_variable(name, variable);
      steps.push_back(std::move(changes));
      before = joint;
    }
    forget_output(written);
    steps.push_back(take_frame());
    merge(std::move(steps), true);
  }
  void merge_one(Changes changes) {
    std::vector<Changes> branches;
    branches.push_back(std::move(changes));
    merge(std::move(branches), true);
  }

  void run_if(const ShellNode& node) {
    const std::size_t count = size(node.nodes);
    std::vector<Changes> branches;
    for (std::size_t i = 0; i + 1 < count; i += 2) {
      run(item(node.nodes, i));
      branches.push_back(run_branch(item(node.nodes, i + 1)));
    }
    if (count % 2 == 1) branches.push_back(run_branch(item(node.nodes, count - 1)));
    merge(std::move(branches), count % 2 == 0);
  }

  // Runs a loop's parts until nothing new can come of another round: what a round changes and an
  // earlier part of the next one reads is not known from then on.
  template <class Round>
  void run_rounds(Round round) {
    for (int rounds = 0; rounds < 2 && !stopped(); ++rounds) {
      const std::size_t written = output_ == nullptr ? 0 : output_->text.size();
      const bool outer = std::exchange(left_, false);
      const std::size_t definitions = bodies_ + aliases_set_;
      open_frame(true);
      const std::uint64_t first_step = frames_.back().first_step;
      round();
      forget_output(written);
      Changes between;
      Changes changes = take_frame(&between);
      if (!left_) between.clear();
      left_ = outer;
      std::vector<std::string> carried;
      for (const auto& [name, variable] : changes) {
        const auto at = variables_.find(name);
        if (at != variables_.end() && at->second.last_read > first_step) carried.push_back(name);
      }
      merge_one(std::move(changes));
      add_values(between);
      for (const std::string& name : carried) add_value(name, scalar_value(unknown_text()));
      if (carried.empty() && definitions == bodies_ + aliases_set_) return;
    }
  }
  void run_loop(const ShellNode& node) {
    run_rounds([&] {
      for (std::size_t i = 0; i < size(node.nodes); ++i) run(item(node.nodes, i));
    });
  }

  void run_for(const ShellNode& node) {
    ShellVariable variable;
    if (node.flag) {
      for_each_choice([&](bool) {
        std::vector<shell::Word> words;
        Fields fields{words};
        for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
          expand_word(item(node.words, i), fields);
        for (shell::Word& word : words)
          merge_value(variable, scalar_value(text_of(std::move(word))));
      });
    } else {
      for_each_choice([&](bool) {
        const ShellValue& arguments = value_of(positional_key);
        charge(arguments.elements.size());
        for (const ShellText& element : arguments.elements)
          merge_value(variable, scalar_value(element));
      });
    }
    for (const ShellValue& value : variable.values) run_value(node.name, value);
    if (steers_programs(node.name)) tell_assignment(node, node.name, variable);
    // Without words the body does not run; it is told all the same.
    if (variable.values.empty()) variable.values.push_back(scalar_value({}));
    run_rounds([&] {
      set_variable(node.name, variable);
      run(item(node.nodes, 0));
    });
  }

  // Variables that decide which program or library runs: setting them is told as an assignment,
  // however it is done.
  static bool steers_programs(std::string_view name) {
    return name == "PATH" || name == "BASH_ENV" || name == "ENV" || name == "IFS" ||
           starts_with(name, "LD_") || starts_with(name, "PYTHON") || starts_with(name, "GIT_");
  }
  void tell_assignment(const ShellNode& node, std::string_view name,
                       const ShellVariable& variable) {
    for (const ShellValue& value : variable.values) {
      shell::Command command;
      shell::Assignment assignment;
      assignment.name = std::string(name);
      if (!value.elements.empty()) assignment.value.text = value.elements[0].text;
      assignment.value.begin = node.begin;
      assignment.value.end = node.end;
      command.assignments.push_back(std::move(assignment));
      tell(node, std::move(command));
    }
  }
  void run_case(const ShellNode& node) {
    for_each_choice([&](bool) {
      for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
        expand_single(item(node.words, i));
    });
    std::vector<Changes> branches;
    for (std::size_t i = 0; i < size(node.nodes) && !stopped(); ++i)
      branches.push_back(run_branch(item(node.nodes, i)));
    merge(std::move(branches), true);
  }

  void run_coprocess(const ShellNode& node) {
    const bool outer = std::exchange(background_, true);
    const shell::Input input = std::exchange(input_, unknown_input());
    Output* const output = std::exchange(output_, nullptr);
    ++parallel_;
    open_frame();
    if (size(node.nodes) > 0) run(item(node.nodes, 0));
    take_frame();
    --parallel_;
    output_ = output;
    input_ = input;
    background_ = outer;
  }
  static shell::Input unknown_input() {
    shell::Input input;
    input.kind = shell::Input::Kind::unknown;
    return input;
  }

  // [[ ]] and (( )) run no program, but are told as commands of these names.
  void run_condition(const ShellNode& node) {
    for_each_choice([&](bool) {
      shell::Command command;
      command.words.push_back(plain_word("[[", node));
      Fields fields{command.words, true};
      for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
        expand_word(item(node.words, i), fields);
      command.words.push_back(plain_word("]]", node));
      run_subscripts(tell(node, std::move(command)));
    });
  }
  void run_arithmetic(const ShellNode& node) {
    for_each_choice([&](bool) {
      shell::Command command;
      command.words.push_back(plain_word("((", node));
      Fields fields{command.words, true};
      expand_word(item(node.words, 0), fields);
      command.words.push_back(plain_word("))", node));
      const shell::Command told = tell(node, std::move(command));
      run_arithmetic_text(told.words[1].text);
    });
  }
  static shell::Word plain_word(std::string_view text, const ShellNode& node) {
    shell::Word word;
    word.text = std::string(text);
    word.begin = node.begin;
    word.end = node.end;
    return word;
  }

  void run_pipeline(const ShellNode& node) {
    const std::size_t count = size(node.nodes);
    const bool outer_pipeline = std::exchange(pipeline_, true);
    Output* const outer_output = output_;
    const shell::Input outer_input = input_;
    const shell::Command* const outer_producer = producer_;
    ++parallel_;
    std::deque<shell::Command> stages;
    for (std::size_t i = 0; i < count && !stopped(); ++i) {
      Output output;
      const bool last = i + 1 == count;
      output_ = last ? outer_output : &output;
      stages.emplace_back();
      keep_ = last ? nullptr : &stages.back();
      const bool simple = this->node(item(node.nodes, i)).kind == ShellNode::Kind::simple;
      open_frame();
      run(item(node.nodes, i));
      // bash can be told to run the last command of a pipeline itself.
      if (last && last_in_shell_)
        merge_one(take_frame());
      else
        take_frame();
      keep_ = nullptr;
      if (last) break;
      producer_ = simple ? &stages.back() : nullptr;
      input_ = shell::Input();
      input_.kind = output.text == std::string_view("\0", 1) ? shell::Input::Kind::unknown
                                                             : shell::Input::Kind::known;
      if (input_.kind == shell::Input::Kind::known) input_.text = std::move(output.text);
    }
    --parallel_;
    producer_ = outer_producer;
    output_ = outer_output;
    input_ = outer_input;
    pipeline_ = outer_pipeline;
  }

  // $(list): what it writes.
  ShellText output_of(std::uint32_t index) {
    Output output;
    run_apart(index, &output, input_);
    while (!output.text.empty() && output.text.back() == '\n') output.text.pop_back();
    ShellText text;
    text.text = std::move(output.text);
    text.assumed = output.assumed;
    return text;
  }
  void run_process(const ShellPart& part) {
    run_apart(part.node, nullptr, part.output ? unknown_input() : input_);
  }
  // In a shell of its own.
  void run_apart(std::uint32_t index, Output* output, shell::Input input) {
    if (index == no_index || !enter(syntax_.nodes[index].begin)) return;
    Output* const outer_output = std::exchange(output_, output);
    const shell::Command* const outer_producer = std::exchange(producer_, nullptr);
    shell::Command* const outer_keep = std::exchange(keep_, nullptr);
    std::swap(input_, input);
    open_frame();
    if (index != no_index && enter(node(index).begin)) {
      run(index);
      --depth_;
    }
    take_frame();
    std::swap(input_, input);
    keep_ = outer_keep;
    producer_ = outer_producer;
    output_ = outer_output;
    --depth_;
  }

  // functions and aliases -------------------------------------------------------------------------

  void define(std::uint32_t index, const ShellNode& node) {
    outcome_.definitions.push_back({std::string(node.name), false, node.begin, node.end});
    std::vector<std::uint32_t>& bodies = functions_[std::string(node.name)];
    if (std::find(bodies.begin(), bodies.end(), index) == bodies.end()) {
      bodies.push_back(index);
      ++bodies_;
    }
    if (size(node.nodes) == 0) return;
    // The body as it stands; when the function is called, it is told again with its arguments.
    // bash calls this one itself, with what it did not find.
    const bool outer = std::exchange(defined_, node.name != "command_not_found_handle");
    Output* const output = std::exchange(output_, nullptr);
    shell::Input input;
    std::swap(input, input_);
    open_frame();
    ShellValue arguments;
    arguments.array = true;
    arguments.elements.push_back(unknown_text());
    assign(positional_key, std::move(arguments));
    run(item(node.nodes, 0));
    take_frame();
    std::swap(input, input_);
    output_ = output;
    defined_ = outer;
  }

  // A function that is running.
  struct Activation {
    std::string name = {};
    std::vector<std::string> arguments = {};
    unsigned parallel = 0;
    std::vector<std::pair<std::string, ShellVariable>> locals = {};  // and what they were before
  };

  void call(const shell::Command& command, const std::vector<std::uint32_t>& bodies) {
    Activation activation;
    activation.name = command.words[0].text;
    for (std::size_t i = 1; i < command.words.size(); ++i)
      activation.arguments.push_back(command.words[i].text);
    activation.parallel = parallel_;
    std::size_t running = 0;
    for (const Activation& other : activations_) {
      if (other.name != activation.name) continue;
      ++running;
      if (other.arguments == activation.arguments) return;
    }
    ShellValue arguments;
    arguments.array = true;
    if (running >= max_activations) {
      // Recursion with ever new arguments: from here on, with any.
      activation.arguments.assign(1, std::string(1, '\0'));
      arguments.elements.push_back(unknown_text());
      if (running > max_activations) return;
    } else {
      for (std::size_t i = 1; i < command.words.size(); ++i)
        arguments.elements.push_back(text_of(command.words[i]));
    }
    activations_.push_back(std::move(activation));
    shell::Input input = command.input;
    std::swap(input, input_);
    for (const std::uint32_t body : std::vector<std::uint32_t>(bodies)) {
      const ShellValue outer = value_of(positional_key);
      charge(outer.elements.size() + arguments.elements.size());
      assign(positional_key, arguments);
      run_body(body);
      for (auto& [name, former] : activations_.back().locals) set_variable(name, std::move(former));
      activations_.back().locals.clear();
      assign(positional_key, outer);
    }
    std::swap(input, input_);
    activations_.pop_back();
  }
  void run_body(std::uint32_t function) {
    const bool outer = std::exchange(left_, false);
    open_frame(true);
    run(item(syntax_.nodes[function].nodes, 0));
    Changes between;
    Changes changes = take_frame(&between);
    for (auto& [name, variable] : changes) set_variable(name, std::move(variable));
    if (left_) add_values(between);
    left_ = outer;
  }
  bool is_fork_bomb(const shell::Command& command) const {
    if (command.words.empty()) return false;
    for (const Activation& activation : activations_)
      if (activation.name == command.words[0].text && parallel_ > activation.parallel) return true;
    return false;
  }

  // simple commands -------------------------------------------------------------------------------

  void run_simple(const ShellNode& node) {
    // Each choice starts from the same state, and what they change is merged.
    std::vector<Changes> branches;
    const std::size_t written = output_ == nullptr ? 0 : output_->text.size();
    std::string printed;
    bool differs = false;
    for_each_choice([&](bool first) {
      const std::size_t from = output_ == nullptr ? 0 : output_->text.size();
      open_frame();
      run_simple_once(node, true);
      branches.push_back(take_frame());
      if (output_ == nullptr) return;
      if (first) {
        printed = output_->text.substr(from);
      } else {
        differs = differs || output_->text.compare(from, std::string::npos, printed) != 0;
        output_->text.resize(from);
      }
    });
    merge(std::move(branches), false);
    if (!differs) return;
    output_->text.resize(written);
    write_unknown();
  }

  void run_simple_once(const ShellNode& node, bool first) {
    shell::Command command;
    Fields fields{command.words};
    for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
      expand_word(item(node.words, i), fields);
    const bool temporary = !command.words.empty() && size(node.assignments) > 0;
    if (temporary) open_frame();
    for (std::uint32_t i = node.assignments.begin; i < node.assignments.end && !stopped(); ++i)
      run_assignment(ShellAssignment(syntax_.assignments[i]), first || temporary, command);
    command.input = input_;
    expand_redirections(node, command.redirections, command.input);
    const shell::Command told = tell(node, std::move(command));
    if (!stopped()) run_effects(node, told, first);
    if (!temporary) return;
    const Changes changes = take_frame();
    for (std::uint32_t i = node.assignments.begin; i < node.assignments.end; ++i)
      if (syntax_.assignments[i].declared) keep_declared(syntax_.assignments[i].name, changes);
    // In front of a special builtin they stay, by POSIX; in bash only when it is called sh.
    if (!is_special_builtin(told.words[0].text)) return;
    outcome_.dialect_dependent = true;
    if (bash()) return;
    for (const auto& [name, variable] : changes) set_variable(name, variable);
  }
  static bool is_special_builtin(std::string_view name) {
    static constexpr std::string_view names[] = {
        ".",        ":",      "break", "continue", "eval",   "exec",  "exit", "export",
        "readonly", "return", "set",   "shift",    "source", "times", "trap", "unset"};
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  }
  void keep_declared(std::string_view name, const Changes& changes) {
    for (const auto& [changed, variable] : changes)
      if (changed == name) set_variable(name, variable);
  }

  void run_assignment(const ShellAssignment& assignment, bool replaces, shell::Command& command) {
    ShellValue value;
    if (assignment.array) {
      value.array = true;
      std::vector<shell::Word> words;
      Fields fields{words};
      for (std::size_t i = 0; i < size(assignment.elements) && !stopped(); ++i)
        expand_word(item(assignment.elements, i), fields);
      for (shell::Word& word : words) value.elements.push_back(text_of(std::move(word)));
    } else {
      value.elements.push_back(expand_single(assignment.value));
    }

    if (assignment.append && assignment.subscript == no_index)
      value = appended(assignment, std::move(value));
    shell::Assignment told;
    told.name = std::string(assignment.name);
    for (const ShellText& element : value.elements) {
      if (&element != &value.elements[0]) told.value.text += ' ';
      told.value.text += element.text;
      told.value.assumed = told.value.assumed || element.assumed;
      told.value.glob = told.value.glob || element.glob;
    }
    if (!value.elements.empty()) told.value.home = value.elements[0].home;
    told.value.begin = assignment.begin;
    told.value.end = assignment.end;
    if (!assignment.declared) command.assignments.push_back(std::move(told));
    if (assignment.subscript != no_index) value = appended(assignment, std::move(value));
    if (replaces)
      assign(assignment.name, std::move(value));
    else
      add_value(assignment.name, std::move(value));
  }
  // NAME+=value and NAME[subscript]=value.
  ShellValue appended(const ShellAssignment& assignment, ShellValue value) {
    ShellValue whole = value_of(assignment.name);
    if (assignment.subscript != no_index) {
      const ShellText subscript = expand_single(assignment.subscript);
      long long index = 0;
      const bool fits = read_decimal(subscript.text, index) && !whole.environment &&
                        index == static_cast<long long>(whole.unset ? 0 : whole.elements.size());
      const bool fresh = whole.environment && read_integer(subscript.text, index) && index == 0;
      if (assignment.append || !(fits || fresh)) {
        // What the array holds then is known no more than as one of its elements.
        ShellValue unknown = scalar_value(unknown_text());
        unknown.array = true;
        return unknown;
      }
      charge(whole.elements.size());
      if (fresh || whole.unset) whole = ShellValue();
      whole.array = true;
      whole.elements.push_back(std::move(value.elements[0]));
      return whole;
    }
    if (whole.unset) return value;
    if (whole.environment) return scalar_value(unknown_text());
    if (value.array) {
      whole.array = true;
      for (ShellText& element : value.elements) whole.elements.push_back(std::move(element));
      charge(whole.elements.size());
      return whole;
    }
    if (whole.elements.empty()) whole.elements.emplace_back();
    ShellText& target = whole.elements[0];
    charge(target.text.size());
    target.text += value.elements[0].home ? std::string(1, '\0') : value.elements[0].text;
    target.assumed = target.assumed || value.elements[0].assumed;
    target.glob = target.glob || value.elements[0].glob;
    return whole;
  }

  void expand_redirections(const ShellNode& node, std::vector<shell::Redirection>& out,
                           shell::Input& input) {
    using Kind = shell::Redirection::Kind;
    for (std::uint32_t i = node.redirections.begin; i < node.redirections.end && !stopped(); ++i) {
      const ShellRedirection parsed = syntax_.redirections[i];
      shell::Redirection redirection;
      redirection.kind = parsed.kind;
      redirection.fd = parsed.fd;
      std::vector<shell::Word> words;
      Fields fields{words, true};
      if (parsed.target != no_index) expand_word(parsed.target, fields);
      if (!words.empty()) redirection.target = std::move(words[0]);
      if (parsed.kind == Kind::duplicate && !is_descriptor(redirection.target.text)) {
        // >&name is &>name in bash.
        redirection.kind = parsed.output ? Kind::write : Kind::read;
        outcome_.dialect_dependent = true;
      }
      if (redirection.fd == 0) read_from(redirection, input);
      out.push_back(std::move(redirection));
    }
  }
  static bool is_descriptor(std::string_view text) {
    if (text == "-" || text == std::string_view("\0", 1)) return true;
    if (ends_with(text, "-")) text.remove_suffix(1);
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  }
  static void read_from(const shell::Redirection& redirection, shell::Input& input) {
    using Kind = shell::Redirection::Kind;
    const std::string& target = redirection.target.text;
    if (redirection.kind == Kind::write || redirection.kind == Kind::append) return;
    if (redirection.kind == Kind::duplicate && target == "0") return;
    input = unknown_input();
    if (redirection.kind == Kind::here_document || redirection.kind == Kind::here_string) {
      input.kind = shell::Input::Kind::known;
      input.text = target;
      if (redirection.kind == Kind::here_string) input.text += '\n';
    } else if (target == "/dev/null" || target == "-") {
      input.kind = shell::Input::Kind::known;
    }
  }
  bool redirects_output(const ShellNode& node) const {
    for (std::uint32_t i = node.redirections.begin; i < node.redirections.end; ++i) {
      const ShellRedirection& redirection = syntax_.redirections[i];
      if (redirection.output && redirection.fd == 1) return true;
    }
    return false;
  }

  // Completes the command and hands it to the visitor; follows what that gives back.
  shell::Command tell(const ShellNode& node, shell::Command command) {
    if (stopped()) return command;
    command.begin = node.begin;
    command.end = node.end;
    command.depth = depth_;
    command.pipeline = pipeline_;
    command.background = background_;
    command.defined = defined_;
    command.tolerant = tolerant_;
    const ShellValue& directory = value_of(work_dir_key);
    if (!directory.elements.empty()) {
      charge(directory.elements[0].text.size());
      command.work_dir.text = directory.elements[0].text;
      command.work_dir.home = directory.elements[0].home;
      command.work_dir.assumed = directory.elements[0].assumed;
    }
    command.fork_bomb = is_fork_bomb(command);
    if (++commands_ > options_.limits.max_commands) {
      over_limit(options_.limits.max_commands, "commands", command.begin);
      return command;
    }
    if (keep_ != nullptr) *keep_ = command;
    std::vector<shell::Payload> payloads;
    visit_({command, producer_, payloads});
    for (shell::Payload& payload : payloads)
      if (!stopped()) follow(std::move(payload), command);
    return command;
  }

  // Runs a string as a script.
  void follow(shell::Payload payload, const shell::Command& command) {
    const bool same_shell = payload.same_shell;
    if (!same_shell) open_frame();
    if (!same_shell) {
      ShellValue arguments;
      arguments.array = true;
      for (std::size_t i = 1; i < payload.arguments.size(); ++i)
        arguments.elements.push_back(text_of(payload.arguments[i]));
      if (!payload.arguments.empty()) assign("0", scalar_value(text_of(payload.arguments[0])));
      assign(positional_key, std::move(arguments));
    }
    std::swap(payload.input, input_);
    Output* const output = same_shell ? output_ : std::exchange(output_, nullptr);
    const bool outer = std::exchange(tolerant_, tolerant_ || payload.tolerant);
    run_text(std::move(payload.text), command, tolerant_);
    tolerant_ = outer;
    output_ = output;
    std::swap(payload.input, input_);
    if (!same_shell) take_frame();
  }

  void run_text(std::string text, const shell::Command& command, bool tolerant) {
    if (!enter(command.begin)) return;
    const bool is_known = text.find('\0') == std::string::npos;
    syntax_.texts.push_back(std::move(text));
    const auto begin = static_cast<std::uint32_t>(command.begin);
    const auto end = static_cast<std::uint32_t>(command.end);
    ShellParser parser(syntax_, options_, syntax_.texts.back(), {begin, end, false}, depth_);
    const std::uint32_t root = parser.parse();
    outcome_.dialect_dependent = outcome_.dialect_dependent || parser.dialect_dependent();
    if (root != no_index) run(root);
    // What unknown parts make of a string is not for the parser to say.
    tolerant = tolerant || !is_known;
    if (parser.failed() && (!tolerant || parser.error().code == ErrorCode::limit) && !stopped()) {
      outcome_.complete = false;
      outcome_.error = parser.error();
      outcome_.error.message =
          concat({"in the string that this command runs: ", parser.error().message});
    }
    --depth_;
  }

  // For the substitutions in a string that is expanded.
  void run_expansion_text(const std::string& text) {
    shell::Command command;
    command.begin = here_begin_;
    command.end = here_end_;
    run_text(concat({": \"", text, "\""}), command, true);
  }

  // What a command that has been told does to the shell, and what it writes.
  void run_effects(const ShellNode& node, const shell::Command& command, bool first) {
    Output* const output = output_;
    if (writes_elsewhere(command)) output_ = nullptr;
    const std::vector<shell::Word>& words = command.words;
    std::size_t at = 0;
    while (at + 1 < words.size() && (words[at].text == "command" || words[at].text == "builtin")) {
      ++at;
      while (at + 1 < words.size() && (words[at].text == "-p" || words[at].text == "--")) ++at;
    }
    if (words.empty()) {
      if (!command.redirections.empty()) write_unknown();  // $(<file)
    } else if (!words[0].known()) {
      // It may be anything, cd too.
      write_unknown();
      set_work_dir(unknown_text(), first);
    } else if (!run_alias(node, command) && !run_function(command)) {
      run_builtin(command, at, first);
    }
    output_ = output;
  }
  static bool writes_elsewhere(const shell::Command& command) {
    for (const shell::Redirection& redirection : command.redirections)
      if (redirection.fd == 1 &&
          (redirection.writes() || redirection.kind == shell::Redirection::Kind::duplicate))
        return true;
    return false;
  }

  bool run_function(const shell::Command& command) {
    if (functions_.empty()) return false;
    const auto at = functions_.find(command.words[0].text);
    if (at == functions_.end()) return false;
    if (defined_)
      write_unknown();
    else
      call(command, at->second);
    return true;
  }

  // An alias's text, with the rest of the command behind it.
  bool run_alias(const ShellNode& node, const shell::Command& command) {
    if (aliases_.empty() || size(node.words) == 0) return false;
    const auto at = aliases_.find(command.words[0].text);
    if (at == aliases_.end() || syntax_.words[item(node.words, 0)].quoted) return false;
    for (const std::string& running : running_aliases_)
      if (running == at->first) return false;
    if (at->second.find_first_of("#'\"\\`(){}\n") != std::string::npos ||
        at->second.find("<<") != std::string::npos) {
      stop(ErrorCode::parse, "alias that changes how the rest is read", command.begin);
      return true;
    }
    std::string text = at->second;
    bool next_too = !text.empty() && is_shell_blank(text.back());
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      // Behind an alias that ends with a blank, the next word is looked at, too.
      const auto next = next_too ? aliases_.find(command.words[i].text) : aliases_.end();
      next_too =
          next != aliases_.end() && !next->second.empty() && is_shell_blank(next->second.back());
      if (next != aliases_.end()) {
        text += concat({" ", next->second});
        continue;
      }
      text += " '";
      for (const char c : command.words[i].text) {
        if (c == '\'')
          text += "'\\''";
        else
          text += c;
      }
      text += '\'';
    }
    running_aliases_.push_back(at->first);
    run_text(std::move(text), command, true);
    running_aliases_.pop_back();
    return true;
  }

  enum class Builtin {
    alias,
    cat,
    change_directory,
    declare,
    compgen,
    echo,
    eval,
    exec,
    exit,
    hash,
    leave,
    let,
    pop_directory,
    printf,
    read,
    set,
    shift,
    silent,
    tee,
    trap,
    unset,
  };
  // What the walk knows of commands: those that change the shell, and those whose output it can
  // tell. Sorted by name.
  static std::optional<Builtin> builtin_of(std::string_view name) {
    struct Entry {
      std::string_view name;
      Builtin builtin;
    };
    static constexpr Entry entries[] = {
        {":", Builtin::silent},
        {"[", Builtin::silent},
        {"alias", Builtin::alias},
        {"break", Builtin::leave},
        {"cat", Builtin::cat},
        {"cd", Builtin::change_directory},
        {"chdir", Builtin::change_directory},
        {"compgen", Builtin::compgen},
        {"continue", Builtin::leave},
        {"declare", Builtin::declare},
        {"echo", Builtin::echo},
        {"eval", Builtin::eval},
        {"exec", Builtin::exec},
        {"exit", Builtin::exit},
        {"export", Builtin::declare},
        {"false", Builtin::silent},
        {"getopts", Builtin::read},
        {"hash", Builtin::hash},
        {"let", Builtin::let},
        {"local", Builtin::declare},
        {"mapfile", Builtin::read},
        {"popd", Builtin::pop_directory},
        {"printf", Builtin::printf},
        {"pushd", Builtin::change_directory},
        {"read", Builtin::read},
        {"readarray", Builtin::read},
        {"readonly", Builtin::declare},
        {"return", Builtin::leave},
        {"set", Builtin::set},
        {"shift", Builtin::shift},
        {"sleep", Builtin::silent},
        {"tee", Builtin::tee},
        {"test", Builtin::silent},
        {"trap", Builtin::trap},
        {"true", Builtin::silent},
        {"typeset", Builtin::declare},
        {"unset", Builtin::unset},
        {"wait", Builtin::silent},
    };
    const auto* const found = std::lower_bound(
        std::begin(entries), std::end(entries), name,
        [](const Entry& entry, std::string_view wanted) { return entry.name < wanted; });
    if (found == std::end(entries) || found->name != name) return std::nullopt;
    return found->builtin;
  }

  static bool names_variables(Builtin builtin) {
    return builtin == Builtin::declare || builtin == Builtin::let || builtin == Builtin::read ||
           builtin == Builtin::silent || builtin == Builtin::unset;
  }
  void run_builtin(const shell::Command& command, std::size_t at, bool first) {
    const std::optional<Builtin> builtin = builtin_of(command.words[at].text);
    if (!builtin) return write_unknown();
    if (names_variables(*builtin)) run_subscripts(command);
    switch (*builtin) {
      case Builtin::alias:
        return run_alias_definitions(command, at);
      case Builtin::cat:
        return run_cat(command, at);
      case Builtin::change_directory:
        return run_cd(command, at, first);
      case Builtin::declare:
        return run_declare(command, at, first);
      case Builtin::echo:
        return run_echo(command, at);
      case Builtin::eval:
        return run_eval(command, at);
      case Builtin::exec:
        if (at + 1 == command.words.size()) input_ = command.input;
        return write_unknown();
      case Builtin::let:
        for (std::size_t i = at + 1; i < command.words.size(); ++i)
          run_arithmetic_text(command.words[i].text);
        return;
      case Builtin::compgen:
        return run_compgen(command, at);
      case Builtin::exit:
        return write_unknown();  // whether more comes
      case Builtin::hash:
        return run_hash(command, at);
      case Builtin::leave:
        left_ = true;
        return;
      case Builtin::pop_directory:
        return set_work_dir(unknown_text(), first);
      case Builtin::printf:
        return run_printf(command, at);
      case Builtin::read:
        return run_read(command, at);
      case Builtin::set:
        return run_set(command, at);
      case Builtin::shift:
        return run_shift(command, at);
      case Builtin::silent:
        return;
      case Builtin::tee:
        return write_input(command);
      case Builtin::trap:
        return run_trap(command, at);
      case Builtin::unset:
        return run_unset(command, at);
    }
  }

  void run_eval(const shell::Command& command, std::size_t at) {
    std::string text;
    if (at + 1 < command.words.size() && command.words[at + 1].text == "--") ++at;
    for (std::size_t i = at + 1; i < command.words.size(); ++i) {
      if (!text.empty()) text += ' ';
      text += command.words[i].text;
    }
    if (!text.empty()) run_text(std::move(text), command, false);
  }

  // Handlers see what the variables are in the end, too.
  void run_traps() {
    in_traps_ = true;
    for (std::size_t i = 0; i < traps_.size() && !stopped(); ++i) {
      shell::Command command;
      command.begin = traps_[i].begin;
      command.end = traps_[i].end;
      run_text(traps_[i].text, command, false);
    }
  }
  // The handler runs later, or never.
  void run_trap(const shell::Command& command, std::size_t at) {
    std::size_t handler = at + 1;
    bool operands = false;
    if (handler < command.words.size() && command.words[handler].text == "--") {
      operands = true;
      ++handler;
    }
    if (handler + 1 >= command.words.size()) return;
    const std::string& text = command.words[handler].text;
    if (text.empty() || text == "-" || (!operands && starts_with(text, "-"))) return;
    Output* const output = std::exchange(output_, nullptr);
    open_frame();
    run_text(text, command, false);
    merge_one(take_frame());
    output_ = output;
    if (in_traps_) return;
    for (const Trap& trap : traps_)
      if (trap.text == text) return;
    if (traps_.size() < 64) return traps_.push_back({text, command.begin, command.end});
    over_limit(64, "traps", command.begin);
  }

  void run_alias_definitions(const shell::Command& command, std::size_t at) {
    for (std::size_t i = at + 1; i < command.words.size(); ++i) {
      const shell::Word& word = command.words[i];
      const std::size_t equals = word.text.find('=');
      if (equals == std::string::npos || equals == 0) continue;
      const std::string name = word.text.substr(0, equals);
      std::string value = word.text.substr(equals + 1);
      outcome_.definitions.push_back({name, true, word.begin, word.end});
      set_alias(name, value);
      const bool outer = std::exchange(defined_, true);
      Output* const output = std::exchange(output_, nullptr);
      open_frame();
      run_text(std::move(value), command, true);
      take_frame();
      output_ = output;
      defined_ = outer;
    }
  }

  void set_work_dir(ShellText directory, bool first) {
    if (first)
      assign(work_dir_key, scalar_value(std::move(directory)));
    else
      add_value(work_dir_key, scalar_value(std::move(directory)));
  }
  void run_cd(const shell::Command& command, std::size_t at, bool first) {
    std::size_t operand = at + 1;
    while (operand < command.words.size() && command.words[operand].text.size() > 1 &&
           command.words[operand].text[0] == '-')
      ++operand;
    ShellText target;
    if (operand < command.words.size()) {
      target = text_of(command.words[operand]);
    } else {
      const ShellValue& home = value_of("HOME");
      target = home.elements.size() == 1 ? home.elements[0] : unknown_text();
    }
    const ShellValue& directory = value_of(work_dir_key);
    const ShellText from = directory.elements.empty() ? unknown_text() : directory.elements[0];
    const bool whole = is_whole_path(target);
    if (!target.known() || target.text == "-" || target.glob || (!whole && !from.known()))
      return set_work_dir(unknown_text(), first);
    ShellText result;
    result.home = whole ? target.home : from.home;
    result.assumed = target.assumed || (!whole && from.assumed);
    result.text =
        join_shell_path(whole ? std::string_view() : std::string_view(from.text), target.text);
    // Above a home directory the name is no longer that of one.
    if (result.home && (result.text.empty() || result.text[0] != '~'))
      return set_work_dir(home_parent(), first);
    set_work_dir(std::move(result), first);
  }
  static ShellText home_parent() {
    ShellText text;
    text.text = "/home";
    return text;
  }

  // Within a function, what is declared is its own.
  void make_local(std::string_view name) {
    if (activations_.empty() || !is_name(name)) return;
    auto& locals = activations_.back().locals;
    for (const auto& local : locals)
      if (local.first == name) return;
    if (locals.size() < 64) locals.emplace_back(std::string(name), variable_of(name));
  }
  void run_declare(const shell::Command& command, std::size_t at, bool first) {
    const std::string& builtin = command.words[at].text;
    const bool local = builtin == "local" || builtin == "declare" || builtin == "typeset";
    bool changes_value = false;  // -a, -i, -l, -u ...: what is stored is not what is written
    bool keeps_value = builtin == "readonly";
    for (std::size_t i = at + 1; i < command.words.size(); ++i) {
      const shell::Word& word = command.words[i];
      if (!word.text.empty() && (word.text[0] == '-' || word.text[0] == '+')) {
        changes_value = changes_value || word.text.find_first_of("aAilun") != std::string::npos;
        references_ = references_ || word.text.find('n') != std::string::npos;
        keeps_value = keeps_value || word.text.find('r') != std::string::npos;
        continue;
      }
      const std::size_t equals = word.text.find('=');
      const std::string_view declared = std::string_view(word.text).substr(0, equals);
      if (local) make_local(declared);
      if (changes_value && is_name(declared)) attributes_[std::string(declared)] = "i";
      if (equals == std::string::npos) {
        if (keeps_value && is_name(declared)) attributes_[std::string(declared)] += 'r';
        continue;
      }
      const bool append = equals > 0 && word.text[equals - 1] == '+';
      const std::string name = word.text.substr(0, equals - (append ? 1 : 0));
      if (!is_name(name)) {
        assign_unknown(name);
        continue;
      }
      ShellText text = text_of(word);
      text.text.erase(0, equals + 1);
      text.home = starts_with(text.text, "~");
      if (changes_value || append) text = unknown_text();
      if (first)
        assign(name, scalar_value(std::move(text)));
      else
        add_value(name, scalar_value(std::move(text)));
      if (keeps_value) attributes_[name] += 'r';
    }
  }

  void run_unset(const shell::Command& command, std::size_t at) {
    for (std::size_t i = at + 1; i < command.words.size(); ++i) {
      if (command.words[i].text == "-f") return;
      if (!is_name(command.words[i].text)) {
        assign_unknown(command.words[i].text);
        continue;
      }
      ShellValue value;
      value.unset = true;
      assign(command.words[i].text, std::move(value));
    }
  }
  // The variable, or the array of name[subscript], has any value from here on.
  void assign_unknown(std::string_view text) {
    const std::string_view name = text.substr(0, text.find('['));
    if (is_name(name)) assign(name, scalar_value(unknown_text()));
  }
  // Any operand that can be a name may be assigned anything. That of -C is a command.
  void run_read(const shell::Command& command, std::size_t at) {
    for (std::size_t i = at + 1; i < command.words.size(); ++i) {
      const std::string& word = command.words[i].text;
      assign_unknown(word);
      if (word.size() < 2 || word[0] != '-') continue;
      // A cluster of options: -a and -v may have their name in it, -C its command.
      for (std::size_t from = 2; from < std::min<std::size_t>(word.size(), 8); ++from)
        assign_unknown(std::string_view(word).substr(from));
      const std::size_t callback = word.find('C');
      if (callback == std::string::npos) continue;
      if (callback + 1 < word.size())
        run_text(word.substr(callback + 1), command, true);
      else if (i + 1 < command.words.size())
        run_text(command.words[i + 1].text, command, true);
    }
    assign("REPLY", scalar_value(unknown_text()));
    assign("MAPFILE", scalar_value(unknown_text()));
  }
  // What compgen expands and runs.
  void run_compgen(const shell::Command& command, std::size_t at) {
    for (std::size_t i = at + 1; i < command.words.size(); ++i) {
      if (has_substitution(command.words[i].text)) run_expansion_text(command.words[i].text);
      if (ends_with(command.words[i].text, "C") && i + 1 < command.words.size())
        run_text(command.words[i + 1].text, command, true);
    }
  }
  // hash -p FILE NAME: from here on, NAME is FILE.
  void run_hash(const shell::Command& command, std::size_t at) {
    for (std::size_t i = at + 1; i + 2 < command.words.size(); ++i)
      if (ends_with(command.words[i].text, "p") && starts_with(command.words[i].text, "-"))
        set_alias(command.words[i + 2].text, command.words[i + 1].text);
  }
  void set_alias(const std::string& name, std::string value) {
    std::string& alias = aliases_[name];
    if (alias != value) ++aliases_set_;
    alias = std::move(value);
  }
  void run_set(const shell::Command& command, std::size_t at) {
    std::size_t i = at + 1;
    bool given = false;
    for (; i < command.words.size() && !given; ++i) {
      const std::string& word = command.words[i].text;
      if (word == "--") {
        given = true;
      } else if (word.empty() || (word[0] != '-' && word[0] != '+')) {
        break;
      } else if (word == "-o" || word == "+o") {
        ++i;
      }
    }
    if (!given && i >= command.words.size()) return;
    ShellValue value;
    value.array = true;
    for (; i < command.words.size(); ++i) value.elements.push_back(text_of(command.words[i]));
    assign(positional_key, std::move(value));
  }
  void run_shift(const shell::Command& command, std::size_t at) {
    long long count = 1;
    if (at + 1 < command.words.size() && !read_integer(command.words[at + 1].text, count))
      count = -1;
    ShellValue value = value_of(positional_key);
    charge(value.elements.size());
    const auto size = static_cast<long long>(value.elements.size());
    if (count < 0 || (size > 0 && !value.elements[0].known())) {
      value.elements.assign(1, unknown_text());
    } else if (count <= size) {
      value.elements.erase(value.elements.begin(),
                           value.elements.begin() + static_cast<std::ptrdiff_t>(count));
    }
    assign(positional_key, std::move(value));
  }

  // output ----------------------------------------------------------------------------------------

  void write_input(const shell::Command& command) {
    if (output_ == nullptr) return;
    if (command.input.kind == shell::Input::Kind::known)
      write_output(command.input.text);
    else
      write_unknown();
  }
  void run_cat(const shell::Command& command, std::size_t at) {
    for (std::size_t i = at + 1; i < command.words.size(); ++i)
      if (command.words[i].text != "-") return write_unknown();
    write_input(command);
  }
  // A word as it is printed; what it stands for is not always known.
  void write_word(const shell::Word& word) {
    if (word.home || word.glob) return write_unknown();
    if (output_ != nullptr && word.assumed) output_->assumed = true;
    write_output(word.text);
  }

  void run_echo(const shell::Command& command, std::size_t at) {
    if (output_ == nullptr) return;
    bool escapes = !bash();
    bool ends_line = true;
    std::size_t i = at + 1;
    for (; i < command.words.size(); ++i) {
      const std::string& word = command.words[i].text;
      if (word.size() < 2 || word[0] != '-' ||
          word.find_first_not_of("neE", 1) != std::string::npos)
        break;
      if (word != "-n") outcome_.dialect_dependent = true;
      if (word != "-n" && !bash()) break;
      for (const char c : word.substr(1)) {
        if (c == 'n') ends_line = false;
        if (c != 'n') escapes = c == 'e';
      }
      if (!bash()) {
        ++i;
        break;
      }
    }
    for (bool first = true; i < command.words.size(); ++i, first = false) {
      if (!first) write_output(" ");
      shell::Word word = command.words[i];
      if (word.text.find('\\') != std::string::npos) {
        outcome_.dialect_dependent = true;
        std::string text;
        if (escapes && !decode_text(word.text, EscapeStyle::echo, text)) {
          write_output(text);
          return;
        }
        if (escapes) word.text = std::move(text);
      }
      write_word(word);
    }
    if (ends_line) write_output("\n");
  }
  // Decodes a string with escapes; false: \c ended the output.
  bool decode_text(std::string_view source, EscapeStyle style, std::string& text) const {
    for (std::size_t at = 0; at < source.size();) {
      if (source[at] != '\\')
        text += source[at++];
      else if (!decode_escape(source, at, style, options_.dialect, text))
        return false;
    }
    return true;
  }

  void run_printf(const shell::Command& command, std::size_t at) {
    std::size_t i = at + 1;
    std::string variable;
    if (i + 1 < command.words.size() && command.words[i].text == "-v") {
      variable = command.words[i + 1].text;
      i += 2;
    } else if (i < command.words.size() && starts_with(command.words[i].text, "-v")) {
      variable = command.words[i++].text.substr(2);
    }
    if (i < command.words.size() && command.words[i].text == "--") ++i;
    if (output_ == nullptr && variable.empty()) return;
    Output printed;
    Output* const outer = std::exchange(output_, &printed);
    if (i < command.words.size()) print(command, i);
    output_ = outer;
    if (!variable.empty()) {
      ShellText text;
      text.text = std::move(printed.text);
      text.assumed = printed.assumed;
      if (is_name(variable))
        assign(variable, scalar_value(std::move(text)));
      else
        assign_unknown(variable);
      return;
    }
    if (output_ != nullptr && printed.assumed) output_->assumed = true;
    write_output(printed.text);
  }
  // printf's format, again and again while there are arguments.
  void print(const shell::Command& command, std::size_t format_at) {
    const shell::Word& format = command.words[format_at];
    if (!format.known() || format.glob || format.home) return write_unknown();
    if (format.text.find('\\') != std::string::npos) outcome_.dialect_dependent = true;
    std::size_t argument = format_at + 1;
    const std::size_t first = argument;
    // Which conversion gets which word is not known behind one that may be several.
    for (std::size_t i = argument; i < command.words.size(); ++i)
      if (command.words[i].split) return write_unknown();
    do {
      const std::size_t before = argument;
      if (!print_once(command, format.text, argument)) return;
      if (argument == before) return;
    } while (argument < command.words.size() && argument > first && !stopped() &&
             text_bytes_ <= options_.limits.max_text);
  }
  bool print_once(const shell::Command& command, std::string_view format, std::size_t& argument) {
    for (std::size_t at = 0; at < format.size();) {
      const char c = format[at];
      if (c == '\\') {
        std::string text;
        if (!decode_escape(format, at, EscapeStyle::format, options_.dialect, text)) return false;
        write_output(text);
      } else if (c != '%') {
        const std::size_t end = std::min(format.find_first_of("\\%", at), format.size());
        write_output(format.substr(at, end - at));
        at = end;
      } else if (at + 1 < format.size() && format[at + 1] == '%') {
        write_output("%");
        at += 2;
      } else {
        const char conversion = at + 1 < format.size() ? format[at + 1] : '\0';
        if (!print_argument(command, conversion, argument)) {
          write_unknown();
          return false;
        }
        at += 2;
      }
    }
    return true;
  }
  // False: what it prints is not known.
  bool print_argument(const shell::Command& command, char conversion, std::size_t& argument) {
    const bool given = argument < command.words.size();
    shell::Word word;
    if (given) word = command.words[argument++];
    switch (conversion) {
      case 's':
        write_word(word);
        return true;
      case 'b': {
        std::string text;
        if (!decode_text(word.text, EscapeStyle::b, text)) return false;
        word.text = std::move(text);
        outcome_.dialect_dependent = true;
        write_word(word);
        return true;
      }
      case 'c':
        word.text = word.text.substr(0, 1);
        write_word(word);
        return true;
      case 'd':
      case 'i': {
        long long number = 0;
        if (given && (!read_integer(word.text, number) || is_padded(word.text))) return false;
        write_output(std::to_string(number));
        return true;
      }
      default:
        return false;
    }
  }

  const shell::Options& options_;
  FunctionRef<void(const shell::Visit&)> visit_;
  shell::Outcome outcome_ = {};
  ShellSyntax syntax_ = {};

  std::map<std::string, ShellVariable, std::less<>> variables_ = {};
  std::vector<Frame> frames_ = {};
  std::uint64_t last_frame_ = 0;
  std::uint64_t step_ = 0;  // counts the reading of variables
  std::vector<Choice> choices_ = {};
  bool too_many_choices_ = false;
  std::map<std::string, std::string, std::less<>> attributes_ = {};
  bool left_ = false;       // a loop or a function, by break, continue or return
  std::size_t bodies_ = 0;  // of functions
  std::size_t aliases_set_ = 0;
  bool references_ = false;  // declare -n: an assignment may go to another variable than it says
  const ShellValue unknown_value_ = scalar_value(unknown_text());

  std::map<std::string, std::vector<std::uint32_t>, std::less<>> functions_ = {};
  std::map<std::string, std::string, std::less<>> aliases_ = {};
  std::vector<std::string> running_aliases_ = {};
  struct Trap {
    std::string text = {};
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::vector<Trap> traps_ = {};
  bool in_traps_ = false;
  std::vector<Activation> activations_ = {};

  shell::Input input_ = {};
  Output* output_ = nullptr;                  // where standard output goes, if anybody asks
  const shell::Command* producer_ = nullptr;  // of input_
  shell::Command* keep_ = nullptr;            // where the next command is kept for the one behind
  bool last_in_shell_ = false;                // the script speaks of lastpipe
  bool pipeline_ = false;
  bool background_ = false;
  bool defined_ = false;
  bool tolerant_ = false;
  unsigned parallel_ = 0;  // pipelines and background lists around
  unsigned depth_ = 0;
  unsigned brace_depth_ = 0;
  std::size_t here_begin_ = 0;  // the node that runs
  std::size_t here_end_ = 0;

  std::size_t commands_ = 0;
  std::size_t words_ = 0;
  std::size_t text_bytes_ = 0;
  std::size_t brace_parts_ = 0;
};

bool same_words(const std::vector<shell::Word>& left, const std::vector<shell::Word>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const shell::Word& a, const shell::Word& b) { return a.text == b.text; });
}
// Whether two commands that begin at the same place are told alike.
bool same_command(const shell::Command& left, const shell::Command& right) {
  const auto same_value = [](const shell::Assignment& a, const shell::Assignment& b) {
    return a.name == b.name && a.value.text == b.value.text;
  };
  const auto same_target = [](const shell::Redirection& a, const shell::Redirection& b) {
    return a.kind == b.kind && a.fd == b.fd && a.target.text == b.target.text;
  };
  return left.end == right.end && left.defined == right.defined &&
         left.work_dir.text == right.work_dir.text && left.input.kind == right.input.kind &&
         left.input.text == right.input.text && same_words(left.words, right.words) &&
         std::equal(left.assignments.begin(), left.assignments.end(), right.assignments.begin(),
                    right.assignments.end(), same_value) &&
         std::equal(left.redirections.begin(), left.redirections.end(), right.redirections.begin(),
                    right.redirections.end(), same_target);
}

}  // namespace

namespace shell {

Outcome walk(std::string_view script, const Options& options,
             FunctionRef<void(const Visit&)> visit) {
  return ShellWalker(options, visit).walk(script);
}

Script parse(std::string_view script, const Options& options) {
  Script result;
  // Commands of loops and functions are come to more than once.
  std::map<std::size_t, std::vector<std::size_t>> seen;
  static_cast<Outcome&>(result) = walk(script, options, [&](const Visit& visit) {
    std::vector<std::size_t>& same_place = seen[visit.command.begin];
    for (const std::size_t index : same_place)
      if (same_command(result.commands[index], visit.command)) return;
    same_place.push_back(result.commands.size());
    result.commands.push_back(visit.command);
  });
  return result;
}

}  // namespace shell

// =================================================================================================
// >>policy (definitions)
// =================================================================================================
//
// Everything is compiled when the policy is created, so that a bad pattern is found at start-up and
// not by the first command.
//
// Strict mode walks over the simple commands of a script. Each is judged in all its forms: as it
// stands, and peeled of the programs that only start another one (env, timeout, xargs, find -exec
// ...). What a program would hand to a shell goes back to the walk as a payload. All hits are
// collected, and the one whose rule comes first is the verdict: a syntax error at the end of a
// script makes what stands before it irrelevant, so nothing can be decided on the way.
// What the policy knows about programs stands in the tables; the functions know no names.
//
// The compat rules are the patterns of MassGen's command line server, kept to the letter, false
// alarms ("grep sudo README.md") and gaps ("rm -fr /") included: whoever asks for them depends on
// exactly these verdicts.

namespace {

// policy: tables ----------------------------------------------------------------------------------

// The rules in the order of judgement in strict mode.
enum class Rule : unsigned char {
  sudo,
  su,
  chmod,
  chown,
  dd,
  mkfs,
  device_write,
  rm_protected,
  mv_dev_null,
  fork_bomb,
  opaque_shell_input,
  unknown_command,
};

struct SanitizerRule {
  Rule rule = Rule::sudo;
  RuleInfo info = {};
  bool lifted_by_sudo = false;  // does not apply where PolicyOptions::enable_sudo is set
};

constexpr SanitizerRule sanitizer_rules[] = {
    {Rule::sudo,
     {"sudo", "Use of 'sudo' is not allowed",
      "refuses sudo, sudoedit, doas and pkexec as commands, not as words: `which sudo` passes",
      true},
     true},
    {Rule::su,
     {"su", "Use of 'su' is not allowed",
      "refuses su and runuser as commands; `python su.py` passes", true},
     true},
    {Rule::chmod,
     {"chmod", "Use of 'chmod' is not allowed",
      "refuses any chmod command; `git update-index --chmod=+x f` passes", true},
     true},
    {Rule::chown,
     {"chown", "Use of 'chown' is not allowed", "refuses any chown command; chgrp passes", true},
     true},
    {Rule::dd,
     {"dd", "Use of 'dd' command is not allowed", "refuses any dd command; `git add dd.txt` passes",
      true},
     false},
    {Rule::mkfs,
     {"mkfs", "Formatting or wiping disks is not allowed",
      "refuses mkfs, mkfs.*, mke2fs, wipefs, and shred of a device; shred of a file passes", false},
     false},
    {Rule::device_write,
     {"device-write", "Overwriting disk blocks directly is not allowed",
      "refuses redirections, tee, cp, mv and the like to a path under /dev; null, zero, full, "
      "random, urandom, stdin, stdout, stderr, tty, ptmx, fd/*, pts/* and shm/* pass",
      true},
     false},
    {Rule::rm_protected,
     {"rm-protected", "Use of 'rm -rf /' is not allowed",
      "refuses to remove, with what is below, /, anything directly in it, system directories and "
      "what they hold, and home directories; `rm -rf /tmp/x` and `rm -rf ~/project/build` pass",
      true},
     false},
    {Rule::mv_dev_null,
     {"mv-dev-null", "Moving files to /dev/null is not allowed",
      "refuses mv with the destination /dev/null; `mv a b 2> /dev/null` passes", true},
     false},
    {Rule::fork_bomb,
     {"fork-bomb", "Fork bombs are not allowed",
      "refuses the call of a function that starts itself in a pipeline or in the background", true},
     false},
    {Rule::opaque_shell_input,
     {"opaque-shell-input", "Shell input that is not known before it runs is not allowed",
      "refuses a shell, eval or source that reads what the script does not tell: `curl x | sh`, "
      "`bash -c \"$(cat x)\"`; `bash build.sh` and `source .venv/bin/activate` pass",
      false},
     false},
    {Rule::unknown_command,
     {"unknown-command", "A command whose name is not known before it runs is not allowed",
      "refuses `$TOOL x` and `$(cat x)`, unless the script sets the variable; "
      "`\"$VENV/bin/python\" x` passes",
      false},
     false},
};
constexpr std::size_t rule_count = std::size(sanitizer_rules);

struct CompatRule {
  Rule rule = Rule::sudo;
  const char* pattern = "";
};

// In MassGen's order.
constexpr CompatRule compat_rules[] = {
    {Rule::rm_protected, R"(\brm\s+-rf\s+/)"},
    {Rule::mv_dev_null, R"(\bmv\b.*?\s+/dev/null)"},
    {Rule::dd, R"(\bdd\b)"},
    {Rule::device_write, R"(>\s*/dev/sd[a-z][1-9]?)"},
    {Rule::fork_bomb, R"(:\(\)\{\s*:\|\:&\s*\};:)"},
    {Rule::sudo, R"(\bsudo\b)"},
    {Rule::su, R"(\bsu\b)"},
    {Rule::chown, R"(\bchown\b)"},
    {Rule::chmod, R"(\bchmod\b)"},
};

// Tables with a `name` are sorted by it, and searched by halves.
template <class Row, std::size_t size>
constexpr bool sorted_by_name(const Row (&table)[size]) {
  for (std::size_t i = 1; i < size; ++i)
    if (!(table[i - 1].name < table[i].name)) return false;
  return true;
}

template <class Row, std::size_t size>
const Row* find_row(const Row (&table)[size], std::string_view name) {
  const Row* row =
      std::lower_bound(table, table + size, name,
                       [](const Row& entry, std::string_view key) { return entry.name < key; });
  return row != table + size && row->name == name ? row : nullptr;
}

struct Named {
  std::string_view name = {};
};

// Programs that are refused for their name alone.
struct RefusedProgram {
  std::string_view name = {};
  Rule rule = Rule::sudo;
};
constexpr RefusedProgram refused_programs[] = {
    {"chmod", Rule::chmod}, {"chown", Rule::chown},   {"dd", Rule::dd},
    {"doas", Rule::sudo},   {"mke2fs", Rule::mkfs},   {"mkfs", Rule::mkfs},
    {"pkexec", Rule::sudo}, {"runuser", Rule::su},    {"su", Rule::su},
    {"sudo", Rule::sudo},   {"sudoedit", Rule::sudo}, {"wipefs", Rule::mkfs},
};
static_assert(sorted_by_name(refused_programs));

// Directories that hold the homes of users.
constexpr Named home_parents[] = {{"Users"}, {"home"}};
static_assert(sorted_by_name(home_parents));

// Directories of / with all that is below; lib* stands for lib32, lib64, libx32 and their like.
constexpr std::string_view protected_trees[] = {"bin",   "boot",  "dev",    "etc",  "lib",
                                                "lib32", "lib64", "libx32", "proc", "root",
                                                "sbin",  "sys",   "usr"};

// Directories of / that may lose single entries, but not all at once (rm -rf /var/*).
constexpr Named protected_contents[] = {{"Users"}, {"home"}, {"media"}, {"mnt"},
                                        {"opt"},   {"run"},  {"srv"},   {"var"}};
static_assert(sorted_by_name(protected_contents));

// Entries of /dev that anyone may write to, and directories whose entries are such.
constexpr Named harmless_devices[] = {{"full"},  {"null"},   {"ptmx"}, {"random"},  {"stderr"},
                                      {"stdin"}, {"stdout"}, {"tty"},  {"urandom"}, {"zero"}};
static_assert(sorted_by_name(harmless_devices));
constexpr Named harmless_device_directories[] = {{"fd"}, {"pts"}, {"shm"}};
static_assert(sorted_by_name(harmless_device_directories));

// The options of a program that take an argument, as getopt_long has them: letters, and long names
// with blanks between them.
struct Syntax {
  std::string_view letters = {};
  std::string_view longs = {};
  std::string_view twice = {};  // long names that take two
};

// Programs that start another one.
struct Wrapper {
  enum class Kind : unsigned char {
    plain,        // options, `operands` words, and then the command
    assignments,  // NAME=value words stand before the command
    lookup,       // plain, but -v and -V only tell what a name means
    env,          // assignments, and -S STRING
    flock,        // plain, and -c STRING
    gdb,          // the command follows --args
    capsh,        // what follows -- or == are the arguments of a shell
    find,
    parallel,
    script,  // -c STRING, or a command after --
    sg,      // GROUP [-c] STRING
    su,      // -c STRING, or a script on standard input
    runuser,
    watch,  // the words are joined to a script, unless there is -x
    xargs,
    entr,  // plain, and with -s a script
    at,    // a script on standard input, for later
  };
  std::string_view name = {};
  Kind kind = Kind::plain;
  Syntax syntax = {};
  std::size_t operands = 0;
};
constexpr Wrapper wrappers[] = {
    {"aarch64"},
    {"at", Wrapper::Kind::at},
    {"batch", Wrapper::Kind::at},
    {"builtin"},
    {"busybox"},
    {"bwrap",
     Wrapper::Kind::plain,
     {"",
      "args chdir cap-add cap-drop dev proc tmpfs mqueue dir uid gid hostname unsetenv seccomp "
      "add-seccomp-fd exec-label file-label sync-fd info-fd json-status-fd block-fd perms size "
      "lock-file remount-ro overlay-src tmp-overlay ro-overlay userns userns2 pidns argv0",
      "bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try setenv symlink file bind-data "
      "ro-bind-data chmod"}},
    {"caffeinate", Wrapper::Kind::plain, {"tw"}},
    {"capsh", Wrapper::Kind::capsh},
    {"catchsegv"},
    {"choom", Wrapper::Kind::plain, {"np", "adjust pid"}},
    {"chroot", Wrapper::Kind::plain, {"", "groups userspec"}, 1},
    {"chrt", Wrapper::Kind::plain, {"TPD", "sched-runtime sched-period sched-deadline"}, 1},
    {"command", Wrapper::Kind::lookup},
    {"cpulimit", Wrapper::Kind::plain, {"lpec", "limit pid exe cpu"}},
    {"dbus-run-session", Wrapper::Kind::plain, {"", "config-file dbus-daemon"}},
    {"doas", Wrapper::Kind::assignments, {"aCu"}},
    {"eatmydata"},
    {"entr", Wrapper::Kind::entr},
    {"env", Wrapper::Kind::env, {"uCS", "unset chdir split-string"}},
    {"exec", Wrapper::Kind::plain, {"a"}},
    {"fakeroot", Wrapper::Kind::plain, {"lsib", "lib faked"}},
    {"find", Wrapper::Kind::find},
    {"firejail"},
    {"flock", Wrapper::Kind::flock, {"wE", "timeout wait conflict-exit-code"}, 1},
    {"gdb", Wrapper::Kind::gdb},
    {"gosu", Wrapper::Kind::plain, {}, 1},
    {"i386"},
    {"i686"},
    {"ionice", Wrapper::Kind::plain, {"cnpPu", "class classdata pid pgid uid"}},
    {"linux32"},
    {"linux64"},
    {"ltrace", Wrapper::Kind::plain, {"aADeFlnopsuwxX", "output library indent"}},
    {"nice", Wrapper::Kind::plain, {"n", "adjustment"}},
    {"nocache", Wrapper::Kind::plain, {"n"}},
    {"nohup"},
    {"nsenter", Wrapper::Kind::plain, {"tSGW", "target setuid setgid wdns"}},
    {"numactl", Wrapper::Kind::plain, {"imNCpPw", "interleave membind cpunodebind physcpubind"}},
    {"parallel",
     Wrapper::Kind::parallel,
     {"jINLndaSEPs",
      "jobs max-procs max-args max-lines max-replace-args delimiter arg-file sshlogin colsep "
      "joblog "
      "timeout delay halt results retries tmpdir workdir wd load memfree nice seqreplace "
      "recstart recend block"}},
    {"pkexec", Wrapper::Kind::plain, {"", "user"}},
    {"prlimit", Wrapper::Kind::plain, {"po", "pid output"}},
    {"proot",
     Wrapper::Kind::plain,
     {"rbqwvkmRS", "rootfs bind qemu cwd verbose kernel-release mount pwd"}},
    {"proxychains", Wrapper::Kind::plain, {"f"}},
    {"proxychains4", Wrapper::Kind::plain, {"f"}},
    {"rlwrap", Wrapper::Kind::plain, {"bCDfgHlMOPqsStwz"}},
    {"runuser",
     Wrapper::Kind::runuser,
     {"csgGwu", "command session-command shell group supp-group whitelist-environment user"}},
    {"script",
     Wrapper::Kind::script,
     {"cEIOBTmo", "command echo log-in log-out log-io log-timing logging-format output-limit"}},
    {"setarch"},  // the name of the architecture is a wrapper itself
    {"setpriv",
     Wrapper::Kind::plain,
     {"",
      "ruid euid reuid rgid egid regid groups inh-caps ambient-caps bounding-set securebits "
      "pdeathsig "
      "selinux-label apparmor-profile landlock-access landlock-rule"}},
    {"setsid"},
    {"sg", Wrapper::Kind::sg},
    {"ssh-agent", Wrapper::Kind::plain, {"aEtPO"}},
    {"sshpass", Wrapper::Kind::plain, {"pfdP"}},
    {"stdbuf", Wrapper::Kind::plain, {"ioe", "input output error"}},
    {"strace",
     Wrapper::Kind::plain,
     {"abeEIoOpPsSuUX", "attach output expr env string-limit user summary-sort-by trace-path"}},
    {"su",
     Wrapper::Kind::su,
     {"csgGw", "command session-command shell group supp-group whitelist-environment"}},
    {"su-exec", Wrapper::Kind::plain, {}, 1},
    {"sudo",
     Wrapper::Kind::assignments,
     {"aCcDgphRrTtUu",
      "close-from chdir group host prompt chroot role command-timeout type other-user user"}},
    {"systemd-run",
     Wrapper::Kind::plain,
     {"puEHM",
      "unit property description slice uid gid nice working-directory setenv service-type host "
      "machine on-active on-boot on-startup on-unit-active on-calendar timer-property"}},
    {"taskset", Wrapper::Kind::plain, {}, 1},
    {"time", Wrapper::Kind::plain, {"fo", "format output"}},
    {"timeout", Wrapper::Kind::plain, {"ks", "kill-after signal"}, 1},
    {"torify"},
    {"torsocks", Wrapper::Kind::plain, {"uPap", "user pass address port"}},
    {"toybox"},
    {"uname26"},
    {"unbuffer"},
    {"unshare",
     Wrapper::Kind::plain,
     {"RwSGl", "root wd setuid setgid map-users map-groups propagation setgroups load-interp"}},
    {"watch", Wrapper::Kind::watch, {"nq", "interval equexit"}},
    {"x86_64"},
    {"xargs",
     Wrapper::Kind::xargs,
     {"aEIdLnPs", "arg-file delimiter max-args max-procs max-chars process-slot-var"}},
    {"xvfb-run",
     Wrapper::Kind::plain,
     {"efnpsw", "error-file auth-file server-num xauth-protocol server-args wait"}},
};
static_assert(sorted_by_name(wrappers));

// Programs that read shell scripts.
constexpr Named shells[] = {{"ash"},  {"bash"}, {"dash"},  {"ksh"}, {"ksh93"}, {"mksh"},
                            {"oksh"}, {"posh"}, {"rbash"}, {"sh"},  {"yash"},  {"zsh"}};
static_assert(sorted_by_name(shells));
constexpr Syntax shell_syntax = {"oO", "rcfile init-file"};

// Programs whose code can start others. Names are without a version: python3.11 is python.
enum class Language : unsigned char { awk, lua, node, perl, php, python, ruby };
struct Interpreter {
  std::string_view name = {};
  Language language = Language::awk;
  Syntax syntax = {};
  std::string_view code = {};  // the options that are followed by code
  bool first_operand = false;  // the code is the first operand where no option gives it
};
constexpr Syntax awk_syntax = {"FvfieE", "field-separator assign file include source exec"};
constexpr Interpreter interpreters[] = {
    {"awk", Language::awk, awk_syntax, "e source", true},
    {"bun", Language::node, {"er", "eval require"}, "e eval", false},
    {"gawk", Language::awk, awk_syntax, "e source", true},
    {"lua", Language::lua, {"el"}, "e", false},
    {"mawk", Language::awk, awk_syntax, "e source", true},
    {"nawk", Language::awk, awk_syntax, "e source", true},
    {"node", Language::node, {"erC", "eval require import loader conditions"}, "e eval", false},
    {"nodejs", Language::node, {"erC", "eval require import loader conditions"}, "e eval", false},
    {"perl", Language::perl, {"eEMmIxF"}, "e E", false},
    {"php", Language::php, {"rfdBREFcTz", "run define"}, "r run B E R", false},
    {"pypy", Language::python, {"cmWXQ"}, "c", false},
    {"python", Language::python, {"cmWXQ"}, "c", false},
    {"ruby", Language::ruby, {"eIrCEF"}, "e", false},
};
static_assert(sorted_by_name(interpreters));

// Functions of these languages that start a program or a shell, and such that remove a directory
// with all it holds. The last part of a name counts: os.system is system.
constexpr Named starting_functions[] = {{"Popen"},
                                        {"call"},
                                        {"check_call"},
                                        {"check_output"},
                                        {"create_subprocess_exec"},
                                        {"create_subprocess_shell"},
                                        {"exec"},
                                        {"execFile"},
                                        {"execFileSync"},
                                        {"execSync"},
                                        {"execl"},
                                        {"execle"},
                                        {"execlp"},
                                        {"execlpe"},
                                        {"execute"},
                                        {"execv"},
                                        {"execve"},
                                        {"execvp"},
                                        {"execvpe"},
                                        {"getoutput"},
                                        {"getstatusoutput"},
                                        {"passthru"},
                                        {"popen"},
                                        {"proc_open"},
                                        {"run"},
                                        {"shell_exec"},
                                        {"spawn"},
                                        {"spawnSync"},
                                        {"spawnl"},
                                        {"spawnlp"},
                                        {"spawnv"},
                                        {"spawnvp"},
                                        {"system"}};
static_assert(sorted_by_name(starting_functions));
constexpr Named removing_functions[] = {
    {"removeSync"}, {"remove_dir_all"}, {"remove_tree"}, {"rimraf"},    {"rm"},
    {"rmSync"},     {"rm_r"},           {"rm_rf"},       {"rmdirSync"}, {"rmtree"}};
static_assert(sorted_by_name(removing_functions));

// What programs do with the files that are named to them.
struct FileProgram {
  enum class Operands : unsigned char {
    none,
    read,
    write,
    change,     // the mode or owner of all but the first
    copy,       // the last is written, the others are read
    move,       // the last is written, the others are removed
    link,       // the last is written
    remove,     // a single file
    rm,         // and with -r all that is below
    pattern,    // the first is a pattern, unless an option gives one; the others are read
    sed,        // as pattern; written with -i
    shred,      // written, and removed with -u
    filter,     // the first is read, the second written
    key_value,  // if=FILE of=FILE
  };
  std::string_view name = {};
  Operands operands = Operands::none;
  Syntax syntax = {};
  std::string_view reads = {};   // options whose argument is a file that is read
  std::string_view writes = {};  // options whose argument is a file that is written
};
constexpr FileProgram file_programs[] = {
    {"cat", FileProgram::Operands::read},
    {"chgrp", FileProgram::Operands::change, {"", "from reference"}},
    {"chmod", FileProgram::Operands::change, {"", "reference"}},
    {"chown", FileProgram::Operands::change, {"", "from reference"}},
    {"cmp", FileProgram::Operands::read, {"in", "ignore-initial bytes"}},
    {"comm", FileProgram::Operands::read},
    {"cp", FileProgram::Operands::copy, {"St", "suffix target-directory"}},
    {"curl",
     FileProgram::Operands::none,
     {"AbcCdDeEFHKmoPQrtTuUwxXyYz",
      "output data header request user user-agent max-time url form cookie cookie-jar config "
      "upload-file dump-header"},
     "T upload-file",
     "o output c cookie-jar D dump-header"},
    {"cut", FileProgram::Operands::read, {"bcdf", "bytes characters delimiter fields"}},
    {"dd", FileProgram::Operands::key_value},
    {"diff", FileProgram::Operands::read, {"ILUxXSW", "exclude label unified context width"}},
    {"du", FileProgram::Operands::read, {"dBtX", "max-depth block-size threshold exclude"}},
    {"egrep",
     FileProgram::Operands::pattern,
     {"ABCDdefm", "regexp file max-count context include exclude"},
     "f file",
     ""},
    {"fgrep",
     FileProgram::Operands::pattern,
     {"ABCDdefm", "regexp file max-count context include exclude"},
     "f file",
     ""},
    {"file", FileProgram::Operands::read, {"eFfmP"}, "f m", ""},
    {"grep",
     FileProgram::Operands::pattern,
     {"ABCDdefm",
      "regexp file max-count context include exclude exclude-dir after-context "
      "before-context"},
     "f file",
     ""},
    {"head", FileProgram::Operands::read, {"cn", "bytes lines"}},
    {"install", FileProgram::Operands::copy, {"gmoSt", "group mode owner suffix target-directory"}},
    {"less", FileProgram::Operands::read, {"bDhjkoOpPtTxyz"}},
    {"link", FileProgram::Operands::link},
    {"ln", FileProgram::Operands::link, {"St", "suffix target-directory"}},
    {"ls", FileProgram::Operands::read, {"ITw", "ignore hide width tabsize"}},
    {"md5sum", FileProgram::Operands::read},
    {"mkdir", FileProgram::Operands::write, {"m", "mode"}},
    {"mkfifo", FileProgram::Operands::write, {"m", "mode"}},
    {"more", FileProgram::Operands::read, {"n"}},
    {"mv", FileProgram::Operands::move, {"St", "suffix target-directory"}},
    {"nl", FileProgram::Operands::read, {"bdfhilnsvw"}},
    {"od", FileProgram::Operands::read, {"AjNStw"}},
    {"readlink", FileProgram::Operands::read},
    {"rg",
     FileProgram::Operands::pattern,
     {"ABCdefgEjMmrtT", "regexp file glob type type-not max-count max-depth replace context"},
     "f file",
     ""},
    {"rm", FileProgram::Operands::rm},
    {"rmdir", FileProgram::Operands::remove},
    {"sed", FileProgram::Operands::sed, {"efl", "expression file line-length"}, "f file", ""},
    {"sha1sum", FileProgram::Operands::read},
    {"sha256sum", FileProgram::Operands::read},
    {"shred", FileProgram::Operands::shred, {"ns", "iterations size random-source"}},
    {"sort",
     FileProgram::Operands::read,
     {"koStT", "key output buffer-size field-separator temporary-directory"},
     "",
     "o output"},
    {"stat", FileProgram::Operands::read, {"ct", "format printf"}},
    {"strings", FileProgram::Operands::read, {"ntTe"}},
    {"tac", FileProgram::Operands::read, {"s", "separator"}},
    {"tail", FileProgram::Operands::read, {"cns", "bytes lines sleep-interval pid"}},
    {"tee", FileProgram::Operands::write},
    {"touch", FileProgram::Operands::write, {"drt", "date reference time"}},
    {"tree", FileProgram::Operands::read, {"LPIoHT"}, "", "o"},
    {"truncate", FileProgram::Operands::write, {"rs", "reference size"}},
    {"uniq", FileProgram::Operands::filter, {"fsw", "skip-fields skip-chars check-chars"}},
    {"unlink", FileProgram::Operands::remove},
    {"unzip", FileProgram::Operands::none, {"dPx"}, "", "d"},
    {"wc", FileProgram::Operands::read, {"", "files0-from"}},
    {"wget",
     FileProgram::Operands::none,
     {"aeioOPQtTUwABDIlRX",
      "output-document output-file directory-prefix input-file header user-agent timeout tries"},
     "i input-file",
     "O output-document o output-file a P directory-prefix"},
    {"xxd", FileProgram::Operands::filter, {"cglosR"}},
    {"zcat", FileProgram::Operands::read},
};
static_assert(sorted_by_name(file_programs));

// Options that stand between a program's name and that of its command.
struct GlobalOptions {
  std::string_view name = {};
  Syntax syntax = {};
};
constexpr GlobalOptions global_options[] = {
    {"docker", {"cHl", "config context host log-level tlscacert tlscert tlskey"}},
    {"git", {"Cc", "git-dir work-tree namespace exec-path super-prefix config-env"}},
    {"podman", {"c", "connection identity log-level root runroot storage-driver url"}},
};
static_assert(sorted_by_name(global_options));

// The words that a shell takes for its own grammar where a command may begin.
constexpr Named reserved_words[] = {
    {"case"},     {"coproc"}, {"do"}, {"done"},   {"elif"}, {"else"}, {"esac"},  {"fi"},   {"for"},
    {"function"}, {"if"},     {"in"}, {"select"}, {"then"}, {"time"}, {"until"}, {"while"}};
static_assert(sorted_by_name(reserved_words));

// Bounds of one judgement, besides those of the walk. Wrappers around wrappers, globs that stand
// for many programs, and xargs multiply what there is to look at; a script that needs more is
// refused as too complex.
constexpr unsigned max_peeled_levels = 32;
constexpr std::size_t max_judged_words = std::size_t{1} << 20;
constexpr std::size_t max_generated_bytes = std::size_t{4} << 20;

// policy: text ------------------------------------------------------------------------------------

bool is_unknown(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool is_pattern(std::string_view text) {
  if (text.find_first_of("*?") != std::string_view::npos) return true;
  const std::size_t open = text.find('[');
  return open != std::string_view::npos && text.find(']', open + 2) != std::string_view::npos;
}

// The end of the bracket expression at `at`, or npos when it is an ordinary bracket.
std::size_t bracket_end(std::string_view pattern, std::size_t at) {
  std::size_t i = at + 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  const std::size_t close = pattern.find(']', i + 1);
  return close == std::string_view::npos ? close : close + 1;
}

bool bracket_has(std::string_view set, char c) {
  const bool negated = set[0] == '!' || set[0] == '^';
  if (negated) set.remove_prefix(1);
  if (set.find("[:") != std::string_view::npos) return true;  // a class: whatever it has
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      if (set[i] <= c && c <= set[i + 2]) return !negated;
      i += 2;
    } else if (set[i] == c) {
      return !negated;
    }
  }
  return negated;
}

// Whether a shell pattern stands for a name. Takes time proportional to the product of the two, and
// the names are those of the tables.
bool glob_matches(std::string_view pattern, std::string_view name) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t p = 0, n = 0, star = none, star_n = 0;
  while (n < name.size()) {
    std::size_t next = none;  // where the pattern goes on after it has taken a character
    if (p < pattern.size()) {
      if (pattern[p] == '*') {
        star = p++;
        star_n = n;
        continue;
      }
      const std::size_t end = pattern[p] == '[' ? bracket_end(pattern, p) : none;
      if (end != none) {
        if (bracket_has(pattern.substr(p + 1, end - p - 2), name[n])) next = end;
      } else if (pattern[p] == '?' || pattern[p] == name[n]) {
        next = p + 1;
      }
    }
    if (next != none) {
      p = next;
      ++n;
    } else if (star != none) {
      p = star + 1;
      n = ++star_n;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Whether a name of a path is a pattern for everything: *, .*, .[!.]*
bool sweeps(std::string_view name) {
  if (name.find('*') == std::string_view::npos) return false;
  for (std::size_t i = 0; i < name.size();) {
    if (name[i] == '[') {
      const std::size_t end = bracket_end(name, i);
      if (end == std::string_view::npos) return false;
      i = end;
    } else if (name[i] == '*' || name[i] == '?' || name[i] == '.') {
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// Whether a list of names with blanks between them has `name`, or one that it abbreviates.
bool lists_option(std::string_view list, std::string_view name) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    const std::string_view entry = list.substr(at, end - at);
    if (entry == name || (name.size() > 1 && entry.size() > 1 && starts_with(entry, name)))
      return true;
    at = end + 1;
  }
  return false;
}

// NAME=value, as a word of env or sudo.
bool is_assignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  return equals != std::string_view::npos && is_name(text.substr(0, equals));
}

// A word as a POSIX shell reads it back. Unknown parts stay unknown.
void append_quoted(std::string& script, std::string_view word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
    script += word;
    return;
  }
  const bool unknown = is_unknown(word);
  const char quote = unknown ? '"' : '\'';
  script += quote;
  for (const char c : word) {
    if (unknown ? c == '"' || c == '\\' || c == '$' || c == '`' : false) script += '\\';
    if (!unknown && c == '\'')
      script += "'\\''";
    else
      script += c;
  }
  script += quote;
}

// The script that starts a program with these words: bare where they are plain, else quoted.
std::string script_of_argv(const std::vector<std::string>& argv) {
  std::string script;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (i) script += ' ';
    // The name of a program is neither an assignment nor a word of the shell's grammar.
    if (i == 0 && (find_row(reserved_words, argv[i]) || is_assignment(argv[i])))
      script += concat({"'", argv[i], "'"});
    else
      append_quoted(script, argv[i]);
  }
  return script;
}

// policy: paths -----------------------------------------------------------------------------------

// A path as text: what `.`, `..` and doubled slashes come to, without a look at the file system.
struct PathText {
  enum class Root : unsigned char { relative, slash, home };
  Root root = Root::relative;
  std::string_view user = {};                // of home: ~ or ~name
  std::vector<std::string_view> names = {};  // of relative, these may begin with `..`
};

void descend(PathText& path, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::string_view name = text.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    const bool up = name == "..";
    if (!up || (path.root == PathText::Root::relative &&
                (path.names.empty() || path.names.back() == ".."))) {
      path.names.push_back(name);
    } else if (!path.names.empty()) {
      path.names.pop_back();
    } else if (path.root == PathText::Root::home) {
      path.root = PathText::Root::slash;  // above a home is most often /home
      path.names.push_back("home");
    }
  }
}

// `home`: a leading ~ stands for a home directory.
void enter(PathText& path, std::string_view text, bool home) {
  if (text.empty()) return;
  const bool at_home = home && text[0] == '~';
  if (at_home || text[0] == '/') {
    path.names.clear();
    path.root = at_home ? PathText::Root::home : PathText::Root::slash;
    if (at_home) {
      path.user = text.substr(0, text.find('/'));
      text.remove_prefix(path.user.size());
    }
  } else if (text[0] == '\0') {
    path = {};  // it may begin anywhere
  }
  descend(path, text);
}

std::string text_of(const PathText& path) {
  std::string text;
  if (path.root == PathText::Root::home) text = path.user;
  for (std::size_t i = 0; i < path.names.size(); ++i) {
    if (i || path.root != PathText::Root::relative) text += '/';
    text += path.names[i];
  }
  if (text.empty()) text = path.root == PathText::Root::slash ? "/" : ".";
  return text;
}

bool in_protected_tree(std::string_view name, bool glob) {
  if (starts_with(name, "lib")) return true;
  const auto is_it = [name, glob](std::string_view tree) {
    return name == tree || (glob && glob_matches(name, tree));
  };
  return std::any_of(std::begin(protected_trees), std::end(protected_trees), is_it);
}

// Whether a table has a name, or one that the name is a pattern for.
template <class Row, std::size_t size>
bool has_row(const Row (&table)[size], std::string_view name, bool glob) {
  if (!glob || !is_pattern(name)) return find_row(table, name) != nullptr;
  return std::any_of(table, table + size,
                     [name](const Row& row) { return glob_matches(name, row.name); });
}

// Whether nobody removes this with all that is below it. `contents`: what is in it, not the
// directory itself, as `/*` has it. `glob`: * ? and [ stand for other names.
bool is_protected(const PathText& path, bool contents, bool glob) {
  std::size_t count = path.names.size();
  if (glob && count && sweeps(path.names[count - 1])) {
    contents = true;
    --count;
  }
  if (path.root == PathText::Root::relative) return false;
  if (path.root == PathText::Root::home || count == 0) return count == 0;
  const std::string_view top = path.names[0];
  if (is_unknown(top) || in_protected_tree(top, glob && is_pattern(top))) return true;
  if (count == 1) return !contents || has_row(protected_contents, top, glob);
  return count == 2 && has_row(home_parents, top, glob);
}

// Whether `path` is `above`, or is below it.
bool is_within(const PathText& path, const PathText& above) {
  return path.root == above.root && path.user == above.user &&
         path.names.size() >= above.names.size() &&
         std::equal(above.names.begin(), above.names.end(), path.names.begin());
}

// Whether somebody may keep a project here and remove what is in it, although the directory may lie
// in a protected tree: containers work in /root/x, /usr/src/x and the like.
bool is_workspace(const PathText& path) {
  if (path.root != PathText::Root::slash || path.names.empty()) return false;
  if (!is_protected(path, true, false)) return true;
  const std::size_t count = path.names.size();
  const std::string_view top = path.names[0];
  if (top == "root") return count >= 2;
  return top == "usr" && count >= 3 && (path.names[1] == "src" || path.names[1] == "local");
}

bool is_device(const PathText& path, bool glob) {
  if (path.root != PathText::Root::slash || path.names.empty()) return false;
  const std::string_view top = path.names[0];
  if (top != "dev" && !(glob && is_pattern(top) && glob_matches(top, "dev"))) return false;
  const std::size_t count = path.names.size();
  if (count >= 2 && find_row(harmless_device_directories, path.names[1])) return false;
  return count != 2 || !find_row(harmless_devices, path.names[1]);
}

bool is_dev_null(const PathText& path) {
  return path.root == PathText::Root::slash && path.names.size() == 2 && path.names[0] == "dev" &&
         path.names[1] == "null";
}

// policy: words -----------------------------------------------------------------------------------

// One of the forms of a command: the words of a program and its arguments.
struct Form {
  const shell::Word* words = nullptr;
  std::size_t size = 0;
  unsigned level = 0;    // how many programs were peeled off
  bool in_find = false;  // find runs it for all that is below its roots
  bool code = false;     // runs out of an interpreter's code
  const shell::Input* input = nullptr;

  Form from(std::size_t first) const {
    Form rest = *this;
    first = std::min(first, size);
    rest.words += first;
    rest.size -= first;
    ++rest.level;
    return rest;
  }
};

std::string join(const Form& form) {
  std::string text;
  for (std::size_t i = 0; i < form.size; ++i) {
    if (i) text += ' ';
    text += form.words[i].text;
  }
  return text;
}

// A word, or what follows the = or the letter of an option in it.
struct Part {
  std::string_view text = {};
  const shell::Word* word = nullptr;  // null: an option has no argument
  bool home() const { return word->home && text.data() == word->text.data(); }
  bool glob() const { return word->glob && is_pattern(text); }
};

Part part_of(const shell::Word& word) { return {word.text, &word}; }

enum class Order { stop_at_operand, options_anywhere };

// Reads arguments as getopt_long does. Calls on_option(name, argument) with a letter or a long name
// and on_operand(argument). Gives the index of the word at which it stopped.
template <class OnOption, class OnOperand>
std::size_t read_arguments(const Form& form, const Syntax& syntax, Order order,
                           OnOption&& on_option, OnOperand&& on_operand) {
  std::size_t i = 1;
  while (i < form.size) {
    const shell::Word& word = form.words[i];
    const std::string_view text = word.text;
    if (text.size() < 2 || text[0] != '-') {
      if (order == Order::stop_at_operand) return i;
      on_operand(part_of(word));
      ++i;
      continue;
    }
    ++i;
    if (text == "--") {
      if (order == Order::stop_at_operand) return i;
      for (; i < form.size; ++i) on_operand(part_of(form.words[i]));
      return i;
    }
    if (text[1] == '-') {
      const std::size_t equals = text.find('=');
      const std::string_view name = text.substr(2, equals - 2);
      Part argument = {{}, nullptr};
      if (equals != std::string_view::npos) {
        argument = {text.substr(equals + 1), &word};
      } else if (lists_option(syntax.longs, name) && i < form.size) {
        argument = part_of(form.words[i++]);
      } else if (lists_option(syntax.twice, name) && i + 1 < form.size) {
        argument = part_of(form.words[i]);
        i += 2;
      }
      on_option(name, argument);
      continue;
    }
    for (std::size_t at = 1; at < text.size(); ++at) {
      const std::string_view letter = text.substr(at, 1);
      if (syntax.letters.find(letter) == std::string_view::npos) {
        on_option(letter, Part{{}, nullptr});
        continue;
      }
      Part argument = {{}, nullptr};
      if (at + 1 < text.size())
        argument = {text.substr(at + 1), &word};
      else if (i < form.size)
        argument = part_of(form.words[i++]);
      on_option(letter, argument);
      break;
    }
  }
  return i;
}

constexpr auto ignore_part = [](const Part&) {};
constexpr auto ignore_option = [](std::string_view, const Part&) {};

// What a program does with a file.
enum class Use : unsigned char { read, write, change, mv_target, remove, remove_tree, move, wipe };

template <class OnUse>
void use_operands(const FileProgram& program, const Form& form, bool reading, OnUse&& on_use) {
  using Operands = FileProgram::Operands;
  if (program.operands == Operands::read && program.writes.empty() && !reading) return;
  std::vector<Part> operands;
  Part directory = {{}, nullptr};
  bool in_place = false, recursive = form.in_find, has_pattern = false, overwrite = false;
  read_arguments(
      form, program.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (argument.word && lists_option(program.writes, name))
          on_use(Use::write, argument, false);
        else if (argument.word && lists_option(program.reads, name))
          on_use(Use::read, argument, false);
        if (name == "t" || (name.size() > 3 && starts_with("target-directory", name)))
          directory = argument;
        if (name == "R" || name == "a" || (!name.empty() && starts_with("recursive", name)))
          recursive = true;
        if (name == "i" || (name.size() > 1 && starts_with("in-place", name))) in_place = true;
        if (name == "e" || name == "f" || name == "regexp" || name == "expression" ||
            name == "file" || name == "reference")
          has_pattern = true;
        if (name == "u") overwrite = true;
        // chmod -x: the mode looks like an option
        if (program.operands == Operands::change && name != "R" &&
            std::string_view("rwxXst").find(name) != std::string_view::npos)
          has_pattern = true;
      },
      [&](const Part& operand) {
        // An unquoted $OPTIONS may hold -r.
        if (operand.text == std::string_view("\0", 1) && operand.word->split) recursive = true;
        operands.push_back(operand);
      });

  const auto use_all = [&](Use use, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) on_use(use, operands[i], recursive);
  };
  const std::size_t count = operands.size();
  switch (program.operands) {
    case Operands::none:
      return;
    case Operands::read:
      return use_all(Use::read, 0, count);
    case Operands::write:
      return use_all(Use::write, 0, count);
    case Operands::change:
      return use_all(Use::change, has_pattern ? 0 : 1, count);
    case Operands::pattern:
      return use_all(Use::read, has_pattern ? 0 : 1, count);
    case Operands::sed:
      return use_all(in_place ? Use::write : Use::read, has_pattern ? 0 : 1, count);
    case Operands::remove:
      return use_all(Use::remove, 0, count);
    case Operands::rm:
      return use_all(recursive ? Use::remove_tree : Use::remove, 0, count);
    case Operands::shred:
      use_all(Use::wipe, 0, count);
      return overwrite ? use_all(Use::remove, 0, count) : void();
    case Operands::filter:
      use_all(Use::read, 0, std::min<std::size_t>(count, 1));
      return use_all(Use::write, 1, std::min<std::size_t>(count, 2));
    case Operands::key_value:
      for (const Part& operand : operands) {
        if (starts_with(operand.text, "of="))
          on_use(Use::write, Part{operand.text.substr(3), operand.word}, false);
        if (starts_with(operand.text, "if="))
          on_use(Use::read, Part{operand.text.substr(3), operand.word}, false);
      }
      return;
    case Operands::copy:
    case Operands::move:
    case Operands::link: {
      const bool moves = program.operands == Operands::move;
      const std::size_t sources = directory.word || count < 2 ? count : count - 1;
      if (program.operands != Operands::link) use_all(moves ? Use::move : Use::read, 0, sources);
      if (directory.word)
        on_use(moves ? Use::mv_target : Use::write, directory, false);
      else if (count > 1)
        on_use(moves ? Use::mv_target : Use::write, operands.back(), false);
      return;
    }
  }
}

// policy: code of interpreters --------------------------------------------------------------------

// What a piece of code would start or remove, as far as its string literals tell.
struct CodeFindings {
  std::vector<std::string> scripts = {};                // for a shell
  std::vector<std::vector<std::string>> commands = {};  // programs with their arguments
  std::vector<std::string> removed = {};                // directories, with all they hold
};

// Finds calls in code by their names, without parsing the language. Reads each byte once.
class CodeReader {
 public:
  CodeReader(Language language, std::string_view code) : language_(language), code_(code) {}

  CodeFindings read() {
    while (at_ < code_.size()) {
      const char c = code_[at_];
      if (is_comment())
        at_ = std::min(code_.find('\n', at_), code_.size());
      else if (is_quote(c))
        read_lone_string();
      else if (is_letter(c))
        read_identifier();
      else
        read_operator(c);
    }
    return std::move(findings_);
  }

 private:
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  bool is(Language a) const { return language_ == a; }
  bool is_quote(char c) const {
    if (c == '"') return true;
    if (c == '\'') return !is(Language::awk);
    return c == '`' && !is(Language::python) && !is(Language::awk) && !is(Language::lua);
  }
  bool is_comment() const {
    const std::string_view rest = code_.substr(at_);
    if (is(Language::node)) return starts_with(rest, "//");
    if (is(Language::lua)) return starts_with(rest, "--");
    if (is(Language::php) && starts_with(rest, "//")) return true;
    const bool after_sigil = at_ > 0 && (code_[at_ - 1] == '$' || code_[at_ - 1] == '@');
    return rest[0] == '#' && !after_sigil;
  }
  void skip_blanks() {
    while (at_ < code_.size() && std::string_view(" \t\r\n").find(code_[at_]) != npos) ++at_;
  }
  bool next_is(char c) const { return at_ < code_.size() && code_[at_] == c; }

  // Where a language puts values into a string: $x, ${x}, #{x}, {x}. Gives what it skips.
  std::size_t interpolation(char quote, bool formatted) const {
    const std::string_view rest = code_.substr(at_);
    const auto braced = [rest](std::size_t open) {
      const std::size_t close = rest.substr(0, 256).find('}', open);
      return close == npos ? open + 1 : close + 1;
    };
    if (is(Language::python)) {
      if (!formatted || rest[0] != '{') return 0;
      return rest.size() > 1 && rest[1] == '{' ? 0 : braced(0);
    }
    if (is(Language::node)) return quote == '`' && starts_with(rest, "${") ? braced(1) : 0;
    if (quote == '\'') return 0;
    if (is(Language::ruby)) return starts_with(rest, "#{") ? braced(1) : 0;
    if (!is(Language::perl) && !is(Language::php)) return 0;
    if ((rest[0] != '$' && rest[0] != '@') || rest.size() < 2) return 0;
    if (rest[1] == '{') return braced(1);
    std::size_t end = 1;
    while (end < rest.size() && is_letter(rest[end])) ++end;
    return end > 1 ? end : 0;
  }
  void append_escape(std::string& text) {
    const char c = code_[at_++];
    if (c == 'n') {
      text += '\n';
    } else if (c == 't') {
      text += '\t';
    } else if (c == 'x' && at_ + 1 < code_.size()) {
      const auto digit = [](char d) {
        if (d >= '0' && d <= '9') return d - '0';
        const char lower = static_cast<char>(d | 0x20);
        return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
      };
      const int high = digit(code_[at_]), low = digit(code_[at_ + 1]);
      if (high < 0 || low < 0) return;
      text += static_cast<char>(high * 16 + low);
      at_ += 2;
    } else if (c != '\n') {
      text += c;
    }
  }
  // From the opening quote to behind the closing one.
  std::string read_string(bool raw = false, bool formatted = false) {
    const char quote = code_[at_];
    const std::string_view triple = code_.substr(at_, 3);
    const bool is_triple =
        is(Language::python) && triple.size() == 3 && triple[1] == quote && triple[2] == quote;
    at_ += is_triple ? 3 : 1;
    std::string text;
    while (at_ < code_.size()) {
      const char c = code_[at_];
      if (c == quote && (!is_triple || code_.substr(at_, 3) == triple)) {
        at_ += is_triple ? 3 : 1;
        return text;
      }
      if (c == '\\' && !raw && at_ + 1 < code_.size()) {
        ++at_;
        append_escape(text);
      } else if (const std::size_t size = interpolation(quote, formatted)) {
        text += '\0';
        at_ += size;
      } else {
        text += c;
        ++at_;
      }
    }
    return text;
  }
  // qx{...}, %x(...)
  std::string read_delimited() {
    constexpr std::string_view opening = "([{<", closing = ")]}>";
    const std::size_t kind = opening.find(code_[at_]);
    const char end = kind == npos ? code_[at_] : closing[kind];
    ++at_;
    const std::size_t close = std::min(code_.find(end, at_), code_.size());
    std::string text(code_.substr(at_, close - at_));
    at_ = std::min(close + 1, code_.size());
    return text;
  }

  void read_lone_string() {
    const char quote = code_[at_];
    const bool piped = pipe_;
    pipe_ = false;
    std::string text = read_string();
    if (quote == '`') {
      if (!is(Language::node)) findings_.scripts.push_back(std::move(text));
      return;
    }
    if (!is(Language::awk)) return;
    // print | "command", and "command" | getline
    std::size_t i = code_.find_first_not_of(" \t", at_);
    if (!piped) {
      if (i == npos || code_[i] != '|') return;
      i = code_.find_first_not_of(" \t&", i + 1);
      if (i == npos || !starts_with(code_.substr(i), "getline")) return;
    }
    findings_.scripts.push_back(std::move(text));
  }

  void read_operator(char c) {
    ++at_;
    if (c == '|') {
      pipe_ = !next_is('|');
      if (!pipe_) ++at_;
    } else if (c == '%' && is(Language::ruby) && next_is('x') && at_ + 1 < code_.size() &&
               !is_letter(code_[at_ + 1])) {
      ++at_;
      findings_.scripts.push_back(read_delimited());
    } else if (c != ' ' && c != '\t' && c != '&') {
      pipe_ = false;
    }
  }

  void read_identifier() {
    pipe_ = false;
    const std::size_t begin = at_;
    while (at_ < code_.size() && is_letter(code_[at_])) ++at_;
    const std::string_view name = code_.substr(begin, at_ - begin);
    if (name == "qx" && is(Language::perl)) {
      skip_blanks();
      if (at_ < code_.size()) findings_.scripts.push_back(read_delimited());
      return;
    }
    const bool starts = find_row(starting_functions, name) != nullptr;
    if (!starts && !find_row(removing_functions, name)) return;
    const std::size_t after = at_;
    skip_blanks();
    const bool parenthesised = next_is('(');
    if (parenthesised) ++at_;
    const bool without = is(Language::perl) || is(Language::ruby) || is(Language::lua);
    if (!parenthesised && !(without && at_ < code_.size() && is_quote(code_[at_]))) {
      at_ = after;
      return;
    }
    read_call(starts, parenthesised);
  }

  // The strings of a call: those of its first list, or all up to its end.
  void read_call(bool starts, bool parenthesised) {
    std::vector<std::string> strings;
    std::size_t depth = 0, list_depth = 0;
    bool joined = false;  // the next string continues the one before
    bool first_is_list = false, simple = true;
    while (at_ < code_.size()) {
      const char c = code_[at_];
      if (is_quote(c)) {
        bool raw = false, formatted = false;
        for (std::size_t i = at_; i > 0 && is_letter(code_[i - 1]) && at_ - i < 2; --i) {
          raw = raw || (code_[i - 1] | 0x20) == 'r';
          formatted = formatted || (code_[i - 1] | 0x20) == 'f';
        }
        std::string text = read_string(raw, formatted);
        if (joined && !strings.empty())
          strings.back() += text;
        else
          strings.push_back(std::move(text));
        joined = true;
        continue;
      }
      ++at_;
      if (c == '(' || c == '[' || c == '{') {
        if (c == '[' && list_depth == 0 && strings.size() <= 1 && depth == 0) {
          list_depth = depth + 1;
          first_is_list = strings.empty();
        }
        ++depth;
        joined = false;
      } else if (c == ')' || c == ']' || c == '}') {
        if (depth == 0) break;
        if (list_depth != 0 && depth == list_depth) {
          list_depth = 0;
          if (simple) finish_list(starts, first_is_list, strings);
          simple = false;
        }
        --depth;
      } else if (c == ',') {
        joined = false;
      } else if ((c == ';' || c == '\n') && !parenthesised) {
        break;
      } else if (is_letter(c) || c == '+' || c == '.' || c == '%' || c == '$') {
        // "rm -rf " + path, "..." % x, "...".format(x)
        if (joined && !is_prefix(c) && (strings.back().empty() || strings.back().back() != '\0'))
          strings.back() += '\0';
      }
    }
    if (simple) finish_call(starts, std::move(strings));
  }
  // A letter in front of a quote: r"..", f'..'
  bool is_prefix(char c) const {
    return is_letter(c) && at_ < code_.size() && (is_quote(code_[at_]) || is_letter(code_[at_]));
  }

  void finish_list(bool starts, bool first_is_list, const std::vector<std::string>& strings) {
    if (strings.empty()) return;
    if (!starts) {
      findings_.removed.insert(findings_.removed.end(), strings.begin(), strings.end());
      return;
    }
    findings_.commands.push_back(strings);
    if (!first_is_list) findings_.scripts.push_back(strings.front());
  }
  void finish_call(bool starts, std::vector<std::string> strings) {
    if (strings.empty()) return;
    if (!starts) {
      for (std::string& text : strings) findings_.removed.push_back(std::move(text));
      return;
    }
    findings_.scripts.push_back(strings.front());
    if (strings.size() > 1) findings_.commands.push_back(std::move(strings));
  }

  static constexpr std::size_t npos = std::string_view::npos;
  Language language_;
  std::string_view code_;
  std::size_t at_ = 0;
  bool pipe_ = false;  // awk: a string here is a command
  CodeFindings findings_ = {};
};

// policy: judging a script ------------------------------------------------------------------------

Verdict refusal(std::string_view rule, std::string message, std::size_t begin, std::size_t end) {
  Verdict verdict;
  verdict.allowed = false;
  verdict.rule = std::string(rule);
  verdict.message = std::move(message);
  verdict.begin = begin;
  verdict.end = end;
  return verdict;
}

// For a message: what a command is, in one line and not too long.
std::string shown(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::string line(utf8_prefix(text, longest));
  std::replace(line.begin(), line.end(), '\0', '?');
  line = printable(line);
  if (text.size() > longest) line += "...";
  return line;
}

constexpr std::uint32_t bit(Rule rule) { return std::uint32_t{1} << static_cast<unsigned>(rule); }

// What a policy was compiled to, as far as judging a script needs it.
struct Terms {
  std::uint32_t rules = 0;  // the bits of those in force
  const std::vector<Regex>& allowed;
  const std::vector<Regex>& blocked;
  std::string_view allowed_message = {};
};

constexpr std::size_t blocked_rank = rule_count;
constexpr std::size_t allowed_rank = rule_count + 1;
constexpr std::size_t no_rank = rule_count + 2;

// What is known while one script is judged.
struct Case {
  const Terms& terms;
  std::string_view script = {};
  PathText start = {};  // where it will run; relative: not known
  bool workspace = false;
  Judgement* judgement = nullptr;  // to fill, if anybody asks
  bool collecting = false;
  std::size_t rank = no_rank;  // of the verdict: the number of its rule, or one of the above
  Verdict verdict = {};
  std::size_t judged_words = 0;
  std::size_t generated_bytes = 0;
  bool too_complex = false;
  // Where bash has [[ ]] and (( )). A POSIX shell takes parts of it for commands, as `$a == b` in
  // [[ -f x && $a == b ]]: one that is not known there is no reason to refuse an ordinary test.
  std::vector<std::pair<std::size_t, std::size_t>> tests = {};
  bool posix = false;

  bool in_test(std::size_t begin, std::size_t end) const {
    const auto after = std::upper_bound(tests.begin(), tests.end(),
                                        std::pair<std::size_t, std::size_t>(begin, npos));
    return after != tests.begin() && end <= std::prev(after)->second;
  }
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  bool charge_words(std::size_t count) {
    judged_words += count + 1;
    if (judged_words > max_judged_words) too_complex = true;
    return !too_complex;
  }
  bool charge_bytes(std::size_t count) {
    generated_bytes += count + 1;
    if (generated_bytes > max_generated_bytes) too_complex = true;
    return !too_complex;
  }
  void not_understood() {
    if (judgement) judgement->complete = false;
  }
};

// Judges the commands of one walk.
class Judge {
 public:
  explicit Judge(Case& judged) : case_(judged) {}
  void visit(const shell::Visit& visit) {
    if (case_.too_complex) return;
    command_ = &visit.command;
    producer_ = visit.producer;
    payloads_ = &visit.payloads;
    has_base_ = false;
    environment_.clear();
    if (!case_.posix && !command_->words.empty() &&
        (command_->words[0].text == "[[" || command_->words[0].text == "(("))
      case_.tests.emplace_back(command_->begin, command_->end);
    if (case_.collecting) case_.judgement->commands.push_back(visit.command);

    if (command_->fork_bomb && wants(Rule::fork_bomb))
      record(Rule::fork_bomb, command_->begin, command_->end, shown(join(whole())));
    for (const shell::Redirection& redirection : command_->redirections) redirect(redirection);
    forms_.clear();
    generated_.clear();
    for (const shell::Assignment& assignment : command_->assignments)
      judge_variable(whole(), assignment.value, assignment.name, assignment.value.text);
    if (!command_->words.empty()) forms_.push_back(whole());
    for (std::size_t i = 0; i < forms_.size() && !case_.too_complex; ++i) {
      const Form form = forms_[i];
      judge_form(form);
      if (!form.code && !case_.terms.blocked.empty()) check_blocked(form);
    }
    if (!command_->tolerant && !command_->compound && !case_.terms.allowed.empty()) check_allowed();
  }

 private:
  Form whole() const {
    Form form;
    form.words = command_->words.data();
    form.size = command_->words.size();
    form.code = command_->tolerant;
    form.input = &command_->input;
    return form;
  }

  // verdicts --------------------------------------------------------------------------------------

  std::size_t rank_of(Rule rule) const {
    if (case_.terms.rules & bit(rule)) return static_cast<std::size_t>(rule);
    // A list of what is blocked would mean nothing if its commands could hide.
    const bool hides = rule == Rule::opaque_shell_input || rule == Rule::unknown_command;
    return hides && !case_.terms.blocked.empty() ? blocked_rank : no_rank;
  }
  bool wants(Rule rule) const { return rank_of(rule) < case_.rank; }
  void record(Rule rule, std::size_t begin, std::size_t end, std::string_view detail) {
    const RuleInfo& info = sanitizer_rules[static_cast<std::size_t>(rule)].info;
    object(rank_of(rule), info.name,
           concat({"Potentially dangerous command detected: ", info.message, " (", detail, ")"}),
           begin, end);
  }
  void object(std::size_t rank, std::string_view rule, std::string message, std::size_t begin,
              std::size_t end) {
    case_.rank = rank;
    case_.verdict = refusal(rule, std::move(message), begin, end);
  }
  void refuse_opaque(const Form& form, const shell::Word& word, std::string_view why) {
    case_.not_understood();
    if (form.code || command_->defined || !wants(Rule::opaque_shell_input)) return;
    record(Rule::opaque_shell_input, word.begin, word.end,
           concat({shown(written(word)), ": ", why}));
  }
  void refuse_unknown(const Form& form) {
    case_.not_understood();
    const shell::Word& word = form.words[0];
    if (form.code || command_->defined || !wants(Rule::unknown_command)) return;
    if (case_.posix && (case_.in_test(word.begin, word.end) || is_element(written(word)))) return;
    record(Rule::unknown_command, word.begin, word.end, shown(written(word)));
  }
  // name[subscript]=value, which bash assigns and a POSIX shell would look for as a command.
  static bool is_element(std::string_view text) {
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos || !is_name(text.substr(0, open))) return false;
    const std::size_t equals = text.find('=', open);
    return equals != std::string_view::npos &&
           (text[equals - 1] == ']' || (text[equals - 1] == '+' && text[equals - 2] == ']'));
  }
  // A word as the script has it.
  std::string_view written(const shell::Word& word) const {
    const std::size_t begin = std::min(word.begin, case_.script.size());
    return case_.script.substr(begin, std::max(word.end, begin) - begin);
  }

  // paths -----------------------------------------------------------------------------------------

  static constexpr std::string_view unknown_name = {"\0", 1};

  // Where relative paths of the command begin.
  const PathText& base() {
    if (!has_base_) {
      base_ = {};
      enter(base_, command_->work_dir.text, command_->work_dir.home);
      has_base_ = true;
    }
    return base_;
  }
  PathText path_of(const Part& part) {
    PathText path = base();
    enter(path, part.text, part.home());
    return path;
  }
  bool is_relative(const Part& part) const {
    return !part.text.empty() && part.text[0] != '/' && !part.home();
  }
  bool removal_is_protected(const Part& part, const PathText& path) {
    // The directory one is in is removed by its contents: `find . -delete` is `rm -rf *`.
    const bool contents =
        is_relative(part) && path.names == base().names && path.root == base().root;
    if (case_.workspace && is_within(path, case_.start) &&
        (contents || path.names.size() > case_.start.names.size()))
      return false;
    return is_protected(path, contents, part.glob());
  }

  // files -----------------------------------------------------------------------------------------

  void collect_file(FileAccess::Kind kind, const Part& part, const PathText& path, bool recursive) {
    FileAccess file;
    file.kind = kind;
    file.path = text_of(path);
    file.recursive = recursive;
    file.glob = part.glob();
    file.begin = part.word->begin;
    file.end = part.word->end;
    if (is_unknown(file.path))
      case_.not_understood();
    else
      case_.judgement->files.push_back(std::move(file));
  }

  void redirect(const shell::Redirection& redirection) {
    const bool reads = redirection.kind == shell::Redirection::Kind::read;
    if (!redirection.writes() && !(reads && case_.collecting)) return;
    use_file(redirection.writes() ? Use::write : Use::read, part_of(redirection.target), false,
             Form());
  }

  void use_file(Use use, const Part& part, bool recursive, const Form& form) {
    if (part.text.empty() || part.word->process) return;
    if (use == Use::read && !case_.collecting) return;
    if (part.text == "-" && (use == Use::read || use == Use::write)) return;
    const PathText path = path_of(part);
    switch (use) {
      case Use::mv_target:
        if (is_dev_null(path)) {
          if (wants(Rule::mv_dev_null))
            record(Rule::mv_dev_null, part.word->begin, part.word->end, shown(join(form)));
          break;
        }
        [[fallthrough]];
      case Use::write:
        if (wants(Rule::device_write) && is_device(path, part.glob()))
          record(Rule::device_write, part.word->begin, part.word->end,
                 concat({"writes to ", shown(text_of(path))}));
        break;
      case Use::wipe:
        if (wants(Rule::mkfs) && is_device(path, part.glob()))
          record(Rule::mkfs, part.word->begin, part.word->end, shown(join(form)));
        break;
      case Use::remove:
      case Use::remove_tree:
        if (recursive || use == Use::remove_tree) check_removal(part, path, form);
        break;
      case Use::read:
      case Use::change:
      case Use::move:
        break;
    }
    if (case_.collecting) collect_file(kind_of(use), part, path, recursive);
  }
  static FileAccess::Kind kind_of(Use use) {
    switch (use) {
      case Use::read:
        return FileAccess::Kind::read;
      case Use::remove:
      case Use::remove_tree:
      case Use::move:
        return FileAccess::Kind::remove;
      case Use::write:
      case Use::change:
      case Use::mv_target:
      case Use::wipe:
        break;
    }
    return FileAccess::Kind::write;
  }
  void check_removal(const Part& part, const PathText& path, const Form& form) {
    if (wants(Rule::rm_protected) && removal_is_protected(part, path))
      record(Rule::rm_protected, part.word->begin, part.word->end,
             concat({shown(join(form)), " removes ", shown(text_of(path))}));
  }

  // forms -----------------------------------------------------------------------------------------

  void add_form(const Form& form) {
    if (form.size == 0) return;
    if (form.level > max_peeled_levels)
      case_.too_complex = true;
    else
      forms_.push_back(form);
  }
  // Words that are not in the script. They live as long as the command is judged.
  void add_form(Form form, std::vector<shell::Word> words) {
    std::size_t bytes = 0;
    for (const shell::Word& word : words) bytes += word.text.size() + sizeof word;
    if (!case_.charge_bytes(bytes)) return;
    generated_.push_back(std::move(words));
    form.words = generated_.back().data();
    form.size = generated_.back().size();
    add_form(form);
  }

  void add_payload(const Form& form, std::string text, bool same_shell,
                   std::size_t first_argument = static_cast<std::size_t>(-1)) {
    if (!case_.charge_bytes(text.size() + form.input->text.size())) return;
    shell::Payload payload;
    payload.text = same_shell ? std::move(text) : concat({environment_, text});
    payload.same_shell = same_shell;
    payload.tolerant = form.code;
    payload.input = *form.input;
    for (std::size_t i = first_argument; i < form.size; ++i)
      payload.arguments.push_back(form.words[i]);
    payloads_->push_back(std::move(payload));
  }

  void judge_form(const Form& form) {
    if (!case_.charge_words(form.size)) return;
    const shell::Word& word = form.words[0];
    const std::string_view name = base_name(word.text);
    if (!word.known() || word.process) {
      // "$VENV/bin/python" is some python, whatever the variable holds.
      const bool known_name = name.size() < word.text.size() && !name.empty() && !is_unknown(name);
      if (word.split || word.process || !known_name) return refuse_unknown(form);
    }
    if (word.glob && is_pattern(name)) return judge_pattern(form, name);
    if (!name.empty()) judge_program(form, name);
  }

  // A pattern may stand for any of the programs that the tables know.
  void judge_pattern(const Form& form, std::string_view pattern) {
    constexpr std::size_t longest = 256;
    constexpr std::size_t cost = 64;
    if (!case_.charge_words(cost)) return;
    bool matched = false;
    const auto try_all = [&](const auto& table) {
      for (const auto& row : table) {
        if (pattern.size() > longest || !glob_matches(pattern, row.name)) continue;
        matched = true;
        if (!case_.charge_words(form.size)) return;
        judge_program(form, row.name);
      }
    };
    try_all(refused_programs);
    try_all(file_programs);
    try_all(wrappers);
    try_all(shells);
    try_all(interpreters);
    const bool blocking = !case_.terms.blocked.empty();
    if (blocking || (!matched && form.words[0].text.find('/') == std::string::npos))
      refuse_unknown(form);
  }

  void judge_program(const Form& form, std::string_view name) {
    const shell::Word& word = form.words[0];
    const RefusedProgram* refused = find_row(refused_programs, name);
    if (refused || starts_with(name, "mkfs")) {
      const Rule rule = refused ? refused->rule : Rule::mkfs;
      if (wants(rule)) record(rule, word.begin, word.end, shown(join(form)));
    }
    if (const FileProgram* program = find_row(file_programs, name))
      use_operands(
          *program, form, case_.collecting,
          [&](Use use, const Part& part, bool recursive) { use_file(use, part, recursive, form); });
    if (const Wrapper* wrapper = find_row(wrappers, name)) return peel(*wrapper, form);
    if (find_row(shells, name)) return judge_shell(form);
    const std::size_t version = name.find_last_not_of("0123456789.");
    const std::string_view language = name.substr(0, version + 1);
    if (const Interpreter* interpreter = find_row(interpreters, language))
      return judge_interpreter(*interpreter, form);
    if (name == "eval") return judge_eval(form);
    if (name == "source" || name == ".") return judge_source(form);
    if (name == "trap") return judge_trap(form);
    if (name == "alias") return judge_alias(form);
  }

  // wrappers --------------------------------------------------------------------------------------

  void peel(const Wrapper& wrapper, const Form& form) {
    switch (wrapper.kind) {
      case Wrapper::Kind::plain:
      case Wrapper::Kind::assignments:
      case Wrapper::Kind::lookup:
        return peel_plain(wrapper, form);
      case Wrapper::Kind::env:
        return peel_env(wrapper, form);
      case Wrapper::Kind::flock:
        return peel_flock(wrapper, form);
      case Wrapper::Kind::gdb:
        return peel_gdb(form);
      case Wrapper::Kind::capsh:
        return peel_capsh(form);
      case Wrapper::Kind::find:
        return peel_find(form);
      case Wrapper::Kind::parallel:
        return peel_parallel(wrapper, form);
      case Wrapper::Kind::script:
        return peel_script(wrapper, form);
      case Wrapper::Kind::sg:
        return peel_sg(form);
      case Wrapper::Kind::runuser:
        return peel_runuser(wrapper, form);
      case Wrapper::Kind::su:
        return peel_su(wrapper, form);
      case Wrapper::Kind::at:
        // What it does with input that is not known is not the script's doing.
        if (form.input->kind == shell::Input::Kind::known) read_input(form, form.size, false);
        return;
      case Wrapper::Kind::watch:
      case Wrapper::Kind::entr:
        return peel_watch(wrapper, form);
      case Wrapper::Kind::xargs:
        return peel_xargs(wrapper, form);
    }
  }

  void peel_plain(const Wrapper& wrapper, const Form& form) {
    bool looks_up = false;
    std::size_t i = read_arguments(
        form, wrapper.syntax, Order::stop_at_operand,
        [&](std::string_view name, const Part&) { looks_up |= name == "v" || name == "V"; },
        ignore_part);
    if (looks_up && wrapper.kind == Wrapper::Kind::lookup) return;
    if (wrapper.kind == Wrapper::Kind::assignments)
      while (i < form.size && is_assignment(form.words[i].text)) ++i;
    add_form(form.from(i + wrapper.operands));
  }

  void peel_env(const Wrapper& wrapper, const Form& form) {
    Part script = {{}, nullptr};
    std::size_t i = read_arguments(
        form, wrapper.syntax, Order::stop_at_operand,
        [&](std::string_view name, const Part& argument) {
          if (name == "S" || (!name.empty() && name[0] == 's' && starts_with("split-string", name)))
            script = argument;
        },
        ignore_part);
    if (script.word) return run_words(form, std::string(script.text), i, *script.word);
    // For env, any word with = in it is an assignment.
    for (; i < form.size; ++i) {
      const shell::Word& word = form.words[i];
      const std::size_t equals = word.text.find('=');
      if (word.text != "-" && equals == std::string::npos) break;
      if (equals == std::string::npos) continue;
      const std::string name = word.text.substr(0, equals);
      const std::string value = word.text.substr(equals + 1);
      judge_variable(form, word, name, value);
      if (!is_name(name) || !case_.charge_bytes(word.text.size())) continue;
      environment_ += name + "=";
      append_quoted(environment_, value);
      environment_ += '\n';
    }
    add_form(form.from(i));
  }

  // Shells run the file that BASH_ENV or ENV names, and take functions from the environment.
  void judge_variable(const Form& form, const shell::Word& word, std::string_view name,
                      std::string_view value) {
    const std::string path = join_shell_path(command_->work_dir.text, value);
    const bool runs = name == "BASH_ENV" || name == "ENV";
    if (starts_with(name, "BASH_FUNC_") ||
        (runs && (word.process || is_unknown(value) || starts_with(path, "/dev/") ||
                  starts_with(path, "/proc/"))))
      refuse_opaque(form, word, "a shell would run what is not known before it runs");
  }

  // A script, and the words from `first` on as its arguments.
  void run_words(const Form& form, std::string script, std::size_t first, const shell::Word& word) {
    if (is_unknown(script)) refuse_opaque(form, word, "part of it is not known before it runs");
    for (std::size_t i = first; i < form.size; ++i) {
      script += ' ';
      append_quoted(script, form.words[i].text);
    }
    add_payload(form, std::move(script), false);
  }
  void run_string(const Form& form, const Part& part,
                  std::size_t first_argument = static_cast<std::size_t>(-1)) {
    if (is_unknown(part.text))
      refuse_opaque(form, *part.word, "the script is not known before it runs");
    add_payload(form, std::string(part.text), false, first_argument);
  }

  void peel_flock(const Wrapper& wrapper, const Form& form) {
    std::size_t i =
        read_arguments(form, wrapper.syntax, Order::stop_at_operand, ignore_option, ignore_part);
    i += wrapper.operands;
    if (i >= form.size) return;
    const std::string& text = form.words[i].text;
    if (text != "-c" && text != "--command") return add_form(form.from(i));
    if (i + 1 < form.size) run_string(form, part_of(form.words[i + 1]));
  }

  void peel_gdb(const Form& form) {
    for (std::size_t i = 1; i < form.size; ++i)
      if (form.words[i].text == "--args" || form.words[i].text == "-args")
        return add_form(form.from(i + 1));
  }
  void peel_capsh(const Form& form) {
    for (std::size_t i = 1; i < form.size; ++i)
      if (form.words[i].text == "--" || form.words[i].text == "==")
        return judge_shell(form.from(i));
  }

  void peel_script(const Wrapper& wrapper, const Form& form) {
    for (std::size_t i = 1; i < form.size; ++i)
      if (form.words[i].text == "--") return add_form(form.from(i + 1));
    Part script = {{}, nullptr};
    read_arguments(
        form, wrapper.syntax, Order::options_anywhere,
        [&](std::string_view name, const Part& argument) {
          if (name == "c" || (name.size() > 1 && starts_with("command", name))) script = argument;
        },
        [&](const Part& operand) { use_file(Use::write, operand, false, form); });
    if (script.word) run_string(form, script);
  }
  void peel_sg(const Form& form) {
    std::size_t i = form.size > 1 && form.words[1].text == "-" ? 3 : 2;
    if (i < form.size && form.words[i].text == "-c") ++i;
    if (i < form.size) run_string(form, part_of(form.words[i]));
  }
  void peel_runuser(const Wrapper& wrapper, const Form& form) {
    bool direct = false;
    const std::size_t i = read_arguments(
        form, wrapper.syntax, Order::stop_at_operand,
        [&](std::string_view name, const Part&) { direct |= name == "u" || name == "user"; },
        ignore_part);
    if (direct) return add_form(form.from(i));
    peel_su(wrapper, form);
  }
  void peel_su(const Wrapper& wrapper, const Form& form) {
    Part script = {{}, nullptr};
    std::size_t operands = 0;
    read_arguments(
        form, wrapper.syntax, Order::options_anywhere,
        [&](std::string_view name, const Part& argument) {
          const bool is_command = name == "c" ||
                                  (name.size() > 1 && starts_with("command", name)) ||
                                  (name.size() > 1 && starts_with("session-command", name));
          if (is_command) script = argument;
        },
        [&](const Part& operand) { operands += operand.text != "-"; });
    if (script.word) return run_string(form, script);
    if (operands <= 1) read_input(form, form.size, false);
  }
  // Joins the words to a script, unless (watch -x) or only if (entr -s) an option says so.
  void peel_watch(const Wrapper& wrapper, const Form& form) {
    bool joins = wrapper.kind == Wrapper::Kind::watch;
    const std::size_t i = read_arguments(
        form, wrapper.syntax, Order::stop_at_operand,
        [&](std::string_view name, const Part&) {
          if (wrapper.kind == Wrapper::Kind::entr && name == "s") joins = true;
          if (wrapper.kind == Wrapper::Kind::watch && (name == "x" || name == "exec"))
            joins = false;
        },
        ignore_part);
    if (i >= form.size) return;
    if (!joins) return add_form(form.from(i));
    std::string script = join(form.from(i));
    if (is_unknown(script))
      refuse_opaque(form, form.words[i], "the script is not known before it runs");
    add_payload(form, std::move(script), false);
  }

  // find ------------------------------------------------------------------------------------------

  // The words of find that name where it begins: [first, last).
  struct Roots {
    std::size_t first = 1;
    std::size_t last = 1;
  };
  static Roots roots_of(const Form& form) {
    Roots roots;
    while (roots.first < form.size) {
      const std::string& text = form.words[roots.first].text;
      if (text == "-D")
        ++roots.first;
      else if (text != "-H" && text != "-L" && text != "-P" && text != "--" &&
               !starts_with(text, "-O"))
        break;
      ++roots.first;
    }
    roots.first = std::min(roots.first, form.size);
    roots.last = roots.first;
    while (roots.last < form.size) {
      const std::string& text = form.words[roots.last].text;
      if (starts_with(text, "-") || text == "(" || text == "!" || text == ")" || text == ",") break;
      ++roots.last;
    }
    return roots;
  }

  void peel_find(const Form& form) {
    Roots roots = roots_of(form);
    Form start = form.from(roots.first);
    start.size = roots.last - roots.first;
    shell::Word here;
    here.text = ".";
    here.begin = form.words[0].begin;
    here.end = form.words[0].end;
    if (start.size == 0) {
      start.words = &here;
      start.size = 1;
    }
    const shell::Word* worst = &start.words[0];
    for (std::size_t i = 0; i < start.size; ++i) {
      const Part part = part_of(start.words[i]);
      if (part.text.empty() || !removal_is_protected(part, path_of(part))) continue;
      worst = part.word;
      break;
    }
    for (std::size_t i = roots.last; i < form.size; ++i) {
      const std::string_view text = form.words[i].text;
      if (text == "-delete") {
        for (std::size_t root = 0; root < start.size; ++root)
          use_file(Use::remove_tree, part_of(start.words[root]), true, form);
      } else if (text == "-exec" || text == "-execdir" || text == "-ok" || text == "-okdir") {
        const std::size_t end = end_of_exec(form, i + 1);
        add_exec(form, i + 1, end, start, *worst);
        i = end;
      } else if (starts_with(text, "-fprint") || text == "-fls") {
        if (i + 1 < form.size) use_file(Use::write, part_of(form.words[++i]), false, form);
      }
    }
  }
  static std::size_t end_of_exec(const Form& form, std::size_t i) {
    for (; i < form.size; ++i) {
      const std::string& text = form.words[i].text;
      if (text == ";" || (text == "+" && form.words[i - 1].text == "{}")) break;
    }
    return i;
  }
  // The command of -exec, with the roots for its first {}, and the worst of them for all others.
  void add_exec(const Form& form, std::size_t first, std::size_t last, const Form& roots,
                const shell::Word& worst) {
    std::vector<shell::Word> words;
    bool replaced = false;
    for (std::size_t i = first; i < last && i < form.size; ++i) {
      if (form.words[i].text == "{}" && !replaced) {
        words.insert(words.end(), roots.words, roots.words + roots.size);
        replaced = true;
      } else {
        words.push_back(replace_all(form.words[i], "{}", worst));
      }
    }
    if (words.empty()) return;
    Form command = form.from(first);
    command.in_find = true;
    add_form(command, std::move(words));
  }

  // A word in which `mark` is replaced by the text of another.
  shell::Word replace_all(const shell::Word& word, std::string_view mark, const shell::Word& by) {
    std::size_t at = mark.empty() ? std::string::npos : word.text.find(mark);
    if (at == std::string::npos) return word;
    shell::Word result = by;
    result.begin = word.begin;
    result.end = word.end;
    result.home = by.home && at == 0;
    if (word.text.size() == mark.size()) return result;
    result.text.clear();
    std::size_t from = 0;
    for (; at != std::string::npos; at = word.text.find(mark, from)) {
      if (!case_.charge_bytes(by.text.size())) return word;
      result.text.append(word.text, from, at - from).append(by.text);
      from = at + mark.size();
    }
    result.text.append(word.text, from, std::string::npos);
    return result;
  }

  // xargs and parallel ----------------------------------------------------------------------------

  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

  // The arguments that xargs reads: `lines`: each is one; else blanks, quotes and \ divide them.
  std::vector<std::string> split_input(std::string_view text, bool lines, char delimiter) {
    std::vector<std::string> items;
    std::string item;
    bool in_item = false;
    const auto finish = [&] {
      if (in_item && case_.charge_bytes(item.size() + sizeof item)) items.push_back(item);
      item.clear();
      in_item = false;
    };
    for (std::size_t i = 0; i < text.size() && !case_.too_complex; ++i) {
      const char c = text[i];
      const bool plain = delimiter != '\0';
      if (plain ? c == delimiter : lines ? c == '\n' : is_blank(c)) {
        finish();
        continue;
      }
      if (lines && !plain && !in_item && is_blank(c)) continue;
      in_item = true;
      const std::size_t close =
          !plain && (c == '"' || c == '\'') ? text.find(c, i + 1) : std::string_view::npos;
      if (close != std::string_view::npos) {
        item += text.substr(i + 1, close - i - 1);
        i = close;
      } else if (c == '\\' && !plain && i + 1 < text.size()) {
        item += text[++i];
      } else {
        item += c;
      }
    }
    finish();
    return items;
  }

  static shell::Word word_like(const shell::Word& place, std::string text) {
    shell::Word word;
    word.text = std::move(text);
    word.begin = place.begin;
    word.end = place.end;
    return word;
  }
  static shell::Word unknown_word(const shell::Word& place) {
    shell::Word word = word_like(place, std::string(1, '\0'));
    word.split = true;
    return word;
  }

  // What find or ls -d, which write the arguments, would name of what must stay.
  std::vector<shell::Word> protected_producers() {
    std::vector<shell::Word> words;
    if (!producer_ || producer_->words.empty()) return words;
    Form form;
    form.words = producer_->words.data();
    form.size = producer_->words.size();
    const std::string_view name = base_name(form.words[0].text);
    const auto add = [&](const Part& part) {
      if (!part.text.empty() && removal_is_protected(part, path_of(part)))
        words.push_back(*part.word);
    };
    if (name == "find") {
      const Roots roots = roots_of(form);
      for (std::size_t i = roots.first; i < roots.last; ++i) add(part_of(form.words[i]));
      if (roots.first == roots.last) {
        const shell::Word here = word_like(form.words[0], ".");
        add(part_of(here));
      }
    } else if (name == "ls") {
      bool directories = false;
      const auto on_option = [&](std::string_view option, const Part&) {
        directories |= option == "d" || option == "directory";
      };
      read_arguments(form, {}, Order::options_anywhere, on_option, ignore_part);
      if (directories) {
        read_arguments(form, {}, Order::options_anywhere, ignore_option, add);
      } else {
        // names of what is in the directory
        shell::Word all = word_like(form.words[0], "*");
        all.glob = true;
        add(part_of(all));
      }
    }
    return words;
  }

  void peel_xargs(const Wrapper& wrapper, const Form& form) {
    std::string_view mark;
    char delimiter = '\0';
    bool from_file = false;
    const std::size_t i = read_arguments(
        form, wrapper.syntax, Order::stop_at_operand,
        [&](std::string_view name, const Part& argument) {
          if (name == "I") mark = argument.text;
          if (name == "i" || name == "replace") mark = argument.word ? argument.text : "{}";
          if (name == "a" || name == "arg-file") from_file = true;
          if (name == "0" || name == "null") delimiter = '\n';
          if (name == "d" || name == "delimiter") delimiter = delimiter_of(argument.text);
        },
        ignore_part);
    if (i >= form.size) return;
    static const shell::Input nothing = {shell::Input::Kind::known, ""};
    Form command = form.from(i);
    const shell::Input& input = *form.input;
    command.input = &nothing;
    if (from_file || input.kind == shell::Input::Kind::unknown || is_unknown(input.text))
      return run_with_unknown(command, mark);
    const std::vector<std::string> items = split_input(input.text, !mark.empty(), delimiter);
    if (mark.empty()) {
      std::vector<shell::Word> words(command.words, command.words + command.size);
      for (const std::string& item : items) words.push_back(word_like(form.words[0], item));
      return add_form(command, std::move(words));
    }
    for (const std::string& item : items) {
      if (!case_.charge_words(command.size)) return;
      run_replaced(command, mark, word_like(form.words[0], item));
    }
  }
  static char delimiter_of(std::string_view text) {
    if (text.size() == 2 && text[0] == '\\') return text[1] == 't' ? '\t' : '\n';
    return text.size() == 1 ? text[0] : '\n';
  }
  void run_replaced(const Form& command, std::string_view mark, const shell::Word& by) {
    std::vector<shell::Word> words;
    for (std::size_t i = 0; i < command.size; ++i)
      words.push_back(replace_all(command.words[i], mark, by));
    add_form(command, std::move(words));
  }
  void run_with_unknown(const Form& command, std::string_view mark) {
    const std::vector<shell::Word> roots = protected_producers();
    if (!mark.empty()) {
      run_replaced(command, mark, unknown_word(command.words[0]));
      if (!roots.empty()) run_replaced(command, mark, roots[0]);
      return;
    }
    std::vector<shell::Word> words(command.words, command.words + command.size);
    words.push_back(unknown_word(command.words[0]));
    words.insert(words.end(), roots.begin(), roots.end());
    add_form(command, std::move(words));
  }

  // parallel gives its words, joined, to a shell: once for each argument, which it quotes.
  void peel_parallel(const Wrapper& wrapper, const Form& form) {
    std::string_view mark = "{}";
    bool from_file = false;
    const std::size_t first = read_arguments(
        form, wrapper.syntax, Order::stop_at_operand,
        [&](std::string_view name, const Part& argument) {
          if (name == "I") mark = argument.text;
          if (name == "a" || name == "arg-file") from_file = true;
        },
        ignore_part);
    std::size_t last = first;
    while (last < form.size && !starts_with(form.words[last].text, ":::")) ++last;
    Form command = form.from(first);
    command.size = last - std::min(first, last);
    std::vector<shell::Word> arguments;
    bool unknown = from_file;
    if (last < form.size) {
      bool files = false;
      for (std::size_t i = last; i < form.size; ++i) {
        if (starts_with(form.words[i].text, ":::")) {
          files = starts_with(form.words[i].text, "::::");
          unknown |= files;
        } else if (!files) {
          arguments.push_back(form.words[i]);
        }
      }
    } else if (form.input->kind == shell::Input::Kind::unknown || is_unknown(form.input->text)) {
      unknown = true;
    } else {
      for (std::string& line : split_input(form.input->text, true, '\n'))
        arguments.push_back(word_like(form.words[0], std::move(line)));
    }
    if (unknown) {
      const std::vector<shell::Word> roots = protected_producers();
      arguments.insert(arguments.end(), roots.begin(), roots.end());
      arguments.push_back(unknown_word(form.words[0]));
    }
    for (const shell::Word& argument : arguments) {
      if (!case_.charge_words(command.size)) return;
      run_parallel(form, command, mark, argument);
    }
  }
  void run_parallel(const Form& form, const Form& command, std::string_view mark,
                    const shell::Word& argument) {
    if (command.size == 0) {
      if (!argument.known())
        refuse_opaque(form, argument, "its commands are not known before it runs");
      return add_payload(form, argument.text, false);
    }
    shell::Word quoted_argument = argument;
    quoted_argument.text.clear();
    if (argument.home)
      quoted_argument.text = argument.text;  // a quoted ~ would be none
    else
      append_quoted(quoted_argument.text, argument.text);
    shell::Word script = word_like(command.words[0], join(command));
    if (!case_.charge_bytes(script.text.size())) return;
    if (!mark.empty() && script.text.find(mark) != std::string::npos)
      script = replace_all(script, mark, quoted_argument);
    else
      script.text += concat({" ", quoted_argument.text});
    add_payload(form, std::move(script.text), false);
  }

  // shells ----------------------------------------------------------------------------------------

  void judge_shell(const Form& form) {
    bool has_command = false, from_input = false, reads_only = false;
    std::size_t i = 1;
    for (; i < form.size; ++i) {
      const std::string_view text = form.words[i].text;
      if (text.empty() || (text[0] != '-' && text[0] != '+') || text == "+") break;
      if (text == "-" || text == "--") {
        ++i;
        break;
      }
      if (starts_with(text, "--")) {
        if (text == "--version" || text == "--help") return;
        if (lists_option(shell_syntax.longs, text.substr(2)) && ++i < form.size &&
            check_script_file(form, form.words[i]))
          read_input(form, i, false);
        continue;
      }
      if (is_unknown(text))
        refuse_opaque(form, form.words[i], "its options are not known before it runs");
      for (const char letter : text.substr(1)) {
        const bool on = text[0] == '-';

        if (letter == 'n') reads_only = on;
        has_command |= letter == 'c' && on;
        from_input |= letter == 's' && on;
        i += shell_syntax.letters.find(letter) != std::string_view::npos;
      }
    }
    if (reads_only) return;
    if (has_command) {
      if (i < form.size) run_string(form, part_of(form.words[i]), i + 1);
    } else if (i < form.size && !from_input) {
      if (check_script_file(form, form.words[i])) read_input(form, i, false);
    } else {
      read_input(form, i, false);
    }
  }

  // Whether the script is what comes in on standard input.
  bool check_script_file(const Form& form, const shell::Word& word) {
    const std::string text = join_shell_path(command_->work_dir.text, word.text);
    if (text == "/dev/stdin" || text == "/dev/fd/0" || text == "/proc/self/fd/0") return true;
    const std::string_view name = base_name(text);
    const bool known_name = name.size() < text.size() && !name.empty() && !is_unknown(name);
    const bool descriptor = starts_with(text, "/dev/fd/") ||
                            (starts_with(text, "/proc/") && text.find("/fd/") != std::string::npos);
    if (word.process || (!word.known() && (word.split || !known_name)) || descriptor)
      refuse_opaque(form, word, "the script is not known before it runs");
    else
      use_file(Use::read, part_of(word), false, form);
    return false;
  }

  // `first`: the index of $1, which stands behind the name of the shell.
  void read_input(const Form& form, std::size_t first, bool same_shell) {
    const shell::Input& input = *form.input;
    if (input.kind == shell::Input::Kind::inherited) return;
    if (input.kind == shell::Input::Kind::unknown || is_unknown(input.text))
      refuse_opaque(form, form.words[0], "what it reads is not known before it runs");
    if (input.kind == shell::Input::Kind::unknown || !case_.charge_bytes(input.text.size())) return;
    shell::Payload payload;
    payload.text = input.text;
    payload.same_shell = same_shell;
    payload.tolerant = form.code;
    if (first < form.size && !same_shell) payload.arguments.push_back(form.words[0]);
    for (std::size_t i = first; i < form.size && !same_shell; ++i)
      payload.arguments.push_back(form.words[i]);
    payloads_->push_back(std::move(payload));
  }

  // The walk follows eval, trap and alias itself, behind `command` and `builtin` as well.
  bool is_followed(const Form& form) const {
    const std::vector<shell::Word>& words = command_->words;
    std::size_t i = 0;
    while (i < words.size() && (words[i].text == "command" || words[i].text == "builtin")) ++i;
    return i == form.level && i < words.size() && form.words == &words[i];
  }
  void judge_eval(const Form& form) {
    for (std::size_t i = 1; i < form.size; ++i) {
      if (form.words[i].known()) continue;
      refuse_opaque(form, form.words[i], "part of it is not known before it runs");
      break;
    }
    if (!is_followed(form) && form.size > 1) add_payload(form, join(form.from(1)), true);
  }
  void judge_source(const Form& form) {
    const std::size_t i = form.size > 1 && form.words[1].text == "--" ? 2 : 1;
    if (i < form.size && check_script_file(form, form.words[i])) read_input(form, i, true);
  }
  void judge_trap(const Form& form) {
    std::size_t i = 1;
    const bool operands = i < form.size && form.words[i].text == "--";
    if (operands) ++i;
    if (i + 1 >= form.size || (!operands && starts_with(form.words[i].text, "-"))) return;
    // Unknown parts are expansions to the walk, as `trap "rm -rf $tmp" EXIT` means them.
    if (!is_followed(form)) add_payload(form, form.words[i].text, true);
  }
  void judge_alias(const Form& form) {
    for (std::size_t i = 1; i < form.size; ++i) {
      const shell::Word& word = form.words[i];
      if (word.known() || word.text.find('=') == std::string::npos) continue;
      refuse_opaque(form, word, "part of it is not known before it runs");
      return;
    }
  }

  // interpreters ----------------------------------------------------------------------------------

  void judge_interpreter(const Interpreter& interpreter, const Form& form) {
    bool has_code = false, from_file = false, prints = false, in_place = false;
    std::size_t i = read_arguments(
        form, interpreter.syntax, Order::stop_at_operand,
        [&](std::string_view name, const Part& argument) {
          if (argument.word && lists_option(interpreter.code, name)) {
            has_code = true;
            read_code(interpreter.language, argument.text, form, *argument.word);
          }
          if (name == "m" || name == "f" || name == "file") from_file = true;
          if (name == "p" || name == "print") prints = true;
          if (name == "i") in_place = true;
        },
        ignore_part);
    const bool node_prints = prints && interpreter.language == Language::node;
    if (!has_code && !from_file && (interpreter.first_operand || node_prints)) {
      if (i < form.size) read_code(interpreter.language, form.words[i].text, form, form.words[i]);
      return;
    }
    if (has_code || from_file) {
      // perl -i and ruby -i change the files they are given
      for (; in_place && i < form.size; ++i)
        use_file(Use::write, part_of(form.words[i]), false, form);
      return;
    }
    if (i < form.size && form.words[i].text != "-") {
      use_file(Use::read, part_of(form.words[i]), false, form);
    } else if (form.input->kind == shell::Input::Kind::known) {
      read_code(interpreter.language, form.input->text, form, form.words[0]);
    }
  }

  // What code runs is judged by the rules for what is dangerous, not by the lists: a best effort.
  void read_code(Language language, std::string_view code, const Form& form,
                 const shell::Word& word) {
    CodeFindings findings = CodeReader(language, code).read();
    Form started = form.from(0);
    started.code = true;
    for (std::string& script : findings.scripts) add_payload(started, std::move(script), false);
    for (std::vector<std::string>& command : findings.commands) {
      std::vector<shell::Word> words;
      for (std::string& text : command) words.push_back(word_like(word, std::move(text)));
      add_form(started, std::move(words));
    }
    for (std::string& path : findings.removed) {
      shell::Word removed = word_like(word, std::move(path));
      removed.home = starts_with(removed.text, "~");
      use_file(Use::remove_tree, part_of(removed), true, form);
    }
  }

  // lists -----------------------------------------------------------------------------------------

  void check_blocked(const Form& form) {
    if (blocked_rank >= case_.rank) return;
    const std::string text = join(form);
    if (refuse_blocked(text, form)) return;
    if (form.level == 0 && !command_->assignments.empty() &&
        refuse_blocked(with_assignments(text), form))
      return;
    const std::string_view name = base_name(form.words[0].text);
    const std::string_view rest = std::string_view(text).substr(form.words[0].text.size());
    if (name.size() < form.words[0].text.size() && refuse_blocked(concat({name, rest}), form))
      return;
    const GlobalOptions* options = find_row(global_options, name);
    if (!options) return;
    const std::size_t i =
        read_arguments(form, options->syntax, Order::stop_at_operand, ignore_option, ignore_part);
    if (i == 1 || i >= form.size) return;
    refuse_blocked(concat({name, " ", join(form.from(i))}), form);
  }
  bool refuse_blocked(const std::string& text, const Form& form) {
    for (const Regex& regex : case_.terms.blocked) {
      if (!regex.full_match(text)) continue;
      std::string message = concat({"Command matches blocked pattern: '", regex.pattern(), "'"});
      if (text != case_.script) message += concat({" (", shown(text), ")"});
      const bool own = form.level == 0;
      const std::size_t begin = own ? command_->begin : form.words[0].begin;
      std::size_t end = own ? command_->end : begin;
      for (std::size_t i = 0; i < form.size && !own; ++i) end = std::max(end, form.words[i].end);
      object(blocked_rank, "blocked-commands", std::move(message), begin, end);
      return true;
    }
    return false;
  }
  std::string with_assignments(std::string_view words) const {
    std::string text;
    for (const shell::Assignment& assignment : command_->assignments)
      text += concat({assignment.name, "=", assignment.value.text, " "});
    text += words;
    return text;
  }

  void check_allowed() {
    if (allowed_rank >= case_.rank) return;
    std::vector<std::string> texts;
    if (texts_to_allow(texts)) {
      for (const Regex& regex : case_.terms.allowed) {
        const auto matches = [&regex](const std::string& text) { return regex.full_match(text); };
        if (std::all_of(texts.begin(), texts.end(), matches)) return;
      }
    }
    std::string text = with_assignments(join(whole()));
    if (command_->words.empty() && !text.empty()) text.pop_back();
    object(allowed_rank, "allowed-commands",
           concat({case_.terms.allowed_message, " (not allowed: ", shown(text), ")"}),
           command_->begin, command_->end);
  }

  // What the command may come to; one pattern must match all of it. False: that cannot be told.
  bool texts_to_allow(std::vector<std::string>& texts) const {
    static constexpr std::string_view guesses[] = {
        "", "a", "-x", "/", "..", " ; ", "\n", "'", "$", "\xc3\xa9", "a b/-c=\"d\n"};
    bool known = true, may_vanish = false;
    for (const shell::Assignment& assignment : command_->assignments)
      if (!assignment.value.known() || assignment.value.assumed) return false;
    for (std::size_t i = 0; i < command_->words.size(); ++i) {
      const shell::Word& word = command_->words[i];
      const bool certain = word.known() && !word.assumed;
      if (i == 0 && (!certain || (word.glob && is_pattern(word.text)))) return false;
      // 'w a/../b' is not the program w: the text would not show where the name ends.
      if (i == 0 && word.text.find_first_of(" \t\n") != std::string::npos) return false;
      known = known && certain;
      may_vanish = may_vanish || (word.split && word.text.size() == 1);
    }
    if (known) {
      texts.push_back(text_with(""));
      return true;
    }
    for (const std::string_view guess : guesses) texts.push_back(text_with(guess));
    if (may_vanish) texts.push_back(text_with("", true));
    return true;
  }
  // The command with `guess` for what is not known.
  std::string text_with(std::string_view guess, bool vanish = false) const {
    std::string text;
    for (const shell::Assignment& assignment : command_->assignments)
      text += concat({assignment.name, "=", assignment.value.text, " "});
    for (const shell::Word& word : command_->words) {
      if (vanish && word.split && word.text.size() == 1) continue;
      if (word.assumed) {
        text += guess;
      } else {
        for (const char c : word.text) {
          if (c == '\0')
            text += guess;
          else
            text += c;
        }
      }
      text += ' ';
    }
    if (!text.empty()) text.pop_back();
    return text;
  }

  Case& case_;
  const shell::Command* command_ = nullptr;
  const shell::Command* producer_ = nullptr;
  std::vector<shell::Payload>* payloads_ = nullptr;
  std::string environment_ = {};  // assignments that env makes, for the shells it starts
  bool has_base_ = false;
  PathText base_ = {};
  std::vector<Form> forms_ = {};
  std::deque<std::vector<shell::Word>> generated_ = {};
};

// policy: options ---------------------------------------------------------------------------------

// The patterns of one option. `key` is what the operator calls it.
Expected<std::vector<Regex>> compile_patterns(std::string_view key,
                                              const std::vector<std::string>& patterns,
                                              const Regex::Options& options) {
  std::vector<Regex> compiled;
  for (const std::string& pattern : patterns) {
    Expected<Regex> regex = Regex::compile(pattern, options);
    if (!regex) {
      Error error = regex.error();
      error.message = concat({key, ": invalid pattern ", quoted(pattern), ": ", error.message});
      return error;
    }
    compiled.push_back(*std::move(regex));
  }
  return compiled;
}

Expected<void> check_rule_names(const std::vector<std::string>& names) {
  std::string known;
  for (const SanitizerRule& rule : sanitizer_rules)
    known += concat({known.empty() ? "" : ", ", rule.info.name});
  for (const std::string& wanted : names) {
    const auto has_name = [&wanted](const SanitizerRule& rule) { return wanted == rule.info.name; };
    if (std::none_of(std::begin(sanitizer_rules), std::end(sanitizer_rules), has_name))
      return make_error(
          ErrorCode::invalid_argument,
          concat({"disabled_rules: no rule is called ", quoted(wanted), "; there are ", known}));
  }
  return {};
}

std::uint32_t rules_in_force(const PolicyOptions& options) {
  std::uint32_t rules = 0;
  const auto& disabled = options.disabled_rules;
  for (const SanitizerRule& rule : sanitizer_rules) {
    if (rule.lifted_by_sudo && options.enable_sudo) continue;
    if (std::find(disabled.begin(), disabled.end(), rule.info.name) != disabled.end()) continue;
    rules |= bit(rule.rule);
  }
  return rules;
}

}  // namespace

struct Policy::Compiled {
  struct Pattern {
    RuleInfo info;
    Regex regex;
  };
  PolicyOptions::Mode mode = PolicyOptions::Mode::strict;
  std::uint32_t rules = 0;              // strict: the bits of those in force
  std::vector<Pattern> sanitizer = {};  // compat
  std::vector<Regex> allowed = {};
  std::vector<Regex> blocked = {};
  std::string allowed_message = {};
  std::size_t max_command_bytes = 0;

  // Each of these gives a refusal, or an allowing verdict when it has no objection.
  Verdict check_form(std::string_view script) const {
    if (script.size() > max_command_bytes)
      return refusal("command-too-long",
                     concat({"Command is longer than ", std::to_string(max_command_bytes),
                             " bytes (max_command_bytes)"}),
                     max_command_bytes, script.size());
    const std::size_t nul = script.find('\0');
    if (nul != std::string_view::npos)
      return refusal("nul-byte",
                     concat({"Command contains a NUL byte (at byte ", std::to_string(nul),
                             "), which no command can contain"}),
                     nul, nul + 1);
    return {};
  }

  Verdict check_compat(std::string_view script) const {
    if (Verdict verdict = check_sanitizer(script); !verdict) return verdict;
    if (Verdict verdict = check_allowed(script); !verdict) return verdict;
    return check_blocked(script);
  }
  Verdict check_sanitizer(std::string_view script) const {
    for (const Pattern& pattern : sanitizer) {
      if (const auto span = pattern.regex.find(script))
        return refusal(pattern.info.name,
                       concat({"Potentially dangerous command detected: ", pattern.info.message}),
                       span->begin, span->end);
    }
    return {};
  }
  Verdict check_allowed(std::string_view script) const {
    if (allowed.empty()) return {};
    for (const Regex& regex : allowed)
      if (regex.match(script)) return {};
    return refusal("allowed-commands", allowed_message, 0, script.size());
  }
  Verdict check_blocked(std::string_view script) const {
    for (const Regex& regex : blocked) {
      if (!regex.match(script)) continue;
      // A match at the start is the leftmost one.
      const auto span = regex.find(script);
      return refusal("blocked-commands",
                     concat({"Command matches blocked pattern: '", regex.pattern(), "'"}), 0,
                     span ? span->end : script.size());
    }
    return {};
  }

  // `judgement`, when given, gets all but the verdict.
  Verdict check_strict(std::string_view script, std::string_view work_dir,
                       Judgement* judgement) const {
    const Terms terms = {rules, allowed, blocked, allowed_message};
    Case judged = {terms, script};
    judged.judgement = judgement;
    if (starts_with(work_dir, "/") && !is_unknown(work_dir)) {
      enter(judged.start, work_dir, false);
      judged.workspace = is_workspace(judged.start);
    }
    shell::Options options;
    if (starts_with(work_dir, "/")) options.work_dir = std::string(work_dir);
    const shell::Outcome outcome = walk_once(judged, options, judgement != nullptr);
    if (judged.too_complex || !outcome.complete) judged.not_understood();
    if (!outcome.complete) return not_read(outcome.error, script);
    if (outcome.dialect_dependent && !judged.too_complex) {
      options.dialect = shell::Dialect::posix;
      judged.posix = true;
      std::sort(judged.tests.begin(), judged.tests.end());
      const shell::Outcome other = walk_once(judged, options, false);
      // What a POSIX shell cannot read it does not run; what it runs before has been judged.
      if (!other.complete && other.error.code == ErrorCode::limit)
        return not_read(other.error, script);
    }
    if (judged.too_complex)
      return refusal("command-too-complex",
                     "Command is too complex to be judged: simplify it or split it into several", 0,
                     script.size());
    return std::move(judged.verdict);
  }

 private:
  shell::Outcome walk_once(Case& judged, const shell::Options& options, bool collecting) const {
    judged.collecting = collecting;
    Judge judge(judged);
    shell::Outcome outcome = shell::walk(
        judged.script, options, [&judge](const shell::Visit& visit) { judge.visit(visit); });
    // A name that the script defines may mean anything from then on.
    if (!allowed.empty() && !outcome.definitions.empty() && allowed_rank < judged.rank) {
      const shell::Definition& definition = outcome.definitions.front();
      judged.rank = allowed_rank;
      judged.verdict =
          refusal("allowed-commands",
                  concat({allowed_message, " (not allowed: it defines the ",
                          definition.alias ? "alias " : "function ", shown(definition.name), ")"}),
                  definition.begin, definition.end);
    }
    return outcome;
  }
  static Verdict not_read(const Error& error, std::string_view script) {
    const bool limit = error.code == ErrorCode::limit;
    const std::size_t at = std::min(error.offset, script.size());
    return refusal(
        limit ? "command-too-complex" : "syntax",
        concat({limit ? "Command is too complex to be judged: " : "Command cannot be understood: ",
                printable(error.message), " (at byte ", std::to_string(at), ")"}),
        at, std::min(at + 1, script.size()));
  }
};

Expected<Policy> Policy::create(const PolicyOptions& options) {
  if (const auto names = check_rule_names(options.disabled_rules); !names) return names.error();
  const bool compat = options.mode == PolicyOptions::Mode::compat;
  auto compiled = std::make_shared<Compiled>();
  compiled->mode = options.mode;
  compiled->rules = rules_in_force(options);
  for (const CompatRule& rule : compat_rules) {
    if (!compat || !(compiled->rules & bit(rule.rule))) continue;
    Expected<Regex> regex = Regex::compile(rule.pattern);
    if (!regex) return regex.error();
    compiled->sanitizer.push_back(
        {sanitizer_rules[static_cast<std::size_t>(rule.rule)].info, *std::move(regex)});
  }

  Regex::Options how;
  how.dot_matches_newline = !compat;
  auto allowed = compile_patterns("allowed_commands", options.allowed, how);
  if (!allowed) return allowed.error();
  compiled->allowed = *std::move(allowed);
  auto blocked = compile_patterns("blocked_commands", options.blocked, how);
  if (!blocked) return blocked.error();
  compiled->blocked = *std::move(blocked);

  std::string& message = compiled->allowed_message;
  message = "Command not in allowed list. Allowed patterns: ";
  for (std::size_t i = 0; i < options.allowed.size(); ++i)
    message += concat({i ? ", " : "", options.allowed[i]});
  compiled->max_command_bytes = options.max_command_bytes;
  return Policy(std::move(compiled));
}

Verdict Policy::check(std::string_view script, std::string_view work_dir) const {
  if (Verdict verdict = compiled_->check_form(script); !verdict) return verdict;
  if (compiled_->mode == PolicyOptions::Mode::compat) return compiled_->check_compat(script);
  return compiled_->check_strict(script, work_dir, nullptr);
}

Verdict Policy::check(const std::vector<std::string>& argv, std::string_view work_dir) const {
  return check(script_of_argv(argv), work_dir);
}

Judgement Policy::judge(std::string_view script, std::string_view work_dir) const {
  Judgement judgement;
  judgement.verdict = compiled_->check_form(script);
  if (!judgement.verdict) {
    judgement.complete = false;
    return judgement;
  }
  judgement.verdict = compiled_->check_strict(script, work_dir, &judgement);
  if (compiled_->mode == PolicyOptions::Mode::compat)
    judgement.verdict = compiled_->check_compat(script);
  return judgement;
}

Judgement Policy::judge(const std::vector<std::string>& argv, std::string_view work_dir) const {
  return judge(script_of_argv(argv), work_dir);
}

std::vector<RuleInfo> Policy::rules() {
  std::vector<RuleInfo> infos;
  for (const SanitizerRule& rule : sanitizer_rules) infos.push_back(rule.info);
  return infos;
}

// =================================================================================================
// >>paths (definitions)
// =================================================================================================
//
// A work_dir is judged in two steps. First its path is made canonical, as text: symbolic links are
// followed by reading them, and the result is compared with the roots. Then that text is opened
// one name at a time, never through a link. Between the two steps anybody may swap a directory for
// a link; the second step then meets the link and fails, so a directory that was opened is always
// one whose path was judged. The child enters the descriptor, not the path.
//
// Linux does the second step in one call, openat2(RESOLVE_NO_SYMLINKS), a sixth of the time. The
// walk does the same on every system, where a seccomp filter forbids that call, and whenever it
// fails: the walk knows which name was at fault.

#if !defined(CODEEXEC_HAVE_OPENAT2)
#if defined(__linux__) && defined(SYS_openat2)  // Linux 5.6
#define CODEEXEC_HAVE_OPENAT2 1
#else
#define CODEEXEC_HAVE_OPENAT2 0
#endif
#endif

namespace {

constexpr std::size_t longest_path = 4095;  // PATH_MAX of Linux, which counts the NUL
constexpr int most_links = 40;              // MAXSYMLINKS of Linux

// A descriptor that is good for entering and for opening what lies below. Where the system can, it
// needs search permission only, as `cd` does.
#if defined(O_PATH)
constexpr int open_directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
#elif defined(O_SEARCH)
constexpr int open_directory_flags = O_SEARCH | O_DIRECTORY | O_CLOEXEC;
#else
constexpr int open_directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

// One system call for the whole walk below. -1 whenever it did not succeed, for any reason.
#if CODEEXEC_HAVE_OPENAT2
int open_without_links(const std::string& path) {
  struct {
    std::uint64_t flags;
    std::uint64_t mode;
    std::uint64_t resolve;
  } how = {static_cast<std::uint64_t>(open_directory_flags), 0, 0x04};  // RESOLVE_NO_SYMLINKS
  // The dot asks for search permission: without, the child could not enter.
  const std::string itself = path + "/.";
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, itself.c_str(), &how, sizeof how));
}
#else
int open_without_links(const std::string&) { return -1; }
#endif

// Opens the directory that has exactly this canonical path. The errno in the error is ENOTDIR when
// the last name is something else, a link included, and ENOENT when there is no such name.
Expected<UniqueFd> open_canonical_directory(const std::string& path) {
  UniqueFd at_once(above_standard_streams(open_without_links(path)));
  if (at_once) return at_once;
  UniqueFd here(::open("/", open_directory_flags));
  if (!here) return system_error(errno, quoted(path));
  std::size_t at = 1;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    UniqueFd next(::openat(here.get(), part.c_str(), open_directory_flags | O_NOFOLLOW));
    if (!next) {
      int error = errno;
      const bool is_something_else = error == ENOTDIR || error == ELOOP || error == EMLINK;
      if (is_something_else) error = end == path.size() ? ENOTDIR : ENOENT;
      return system_error(error, quoted(path));
    }
    here = std::move(next);
    at = end + 1;
  }
  UniqueFd result(above_standard_streams(::openat(here.get(), ".", open_directory_flags)));
  if (!result) return system_error(errno, quoted(path));
  return result;
}

// The path, absolute but otherwise as written. `base` as in canonical_path().
Expected<std::string> absolute_path(std::string_view path, std::string_view base) {
  std::string result(path);
  if (!starts_with(result, "/") && !base.empty()) result = concat({base, "/", path});
  if (starts_with(result, "/")) return result;
  char current[longest_path + 1];
  if (!::getcwd(current, sizeof current)) return system_error(errno, "current directory");
  return concat({current, "/", result});
}

// Absolute, with no empty name, `.`, `..` or NUL in it.
bool is_canonical_form(std::string_view path) {
  if (path == "/") return true;
  if (!starts_with(path, "/") || path.find('\0') != std::string_view::npos) return false;
  std::size_t at = 1;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

// The error with a text of ours in front of its own, or instead of it.
Error with_prefix(std::string_view prefix, Error error) {
  error.message.insert(0, prefix);
  return error;
}

Error with_message(Error error, std::string message) {
  error.message = std::move(message);
  return error;
}

const char* option_of(const Root& root) {
  return root.permission == Permission::read ? "read_only: " : "allowed_paths: ";
}

Expected<Root> open_root(const Root& root) {
  const std::string_view option = option_of(root);
  auto path = canonical_path(root.path);
  if (!path) return with_prefix(option, path.error());
  auto directory = open_canonical_directory(*path);
  if (!directory) return with_prefix(option, directory.error());
  const UniqueFd listed(::openat(directory->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listed) return with_prefix(option, system_error(errno, quoted(*path)));
  return Root{std::move(*path), root.permission};
}

}  // namespace

const char* name(Permission permission) noexcept {
  switch (permission) {
    case Permission::none:
      return "none";
    case Permission::read:
      return "read";
    case Permission::write:
      break;
  }
  return "write";
}

Expected<std::string> canonical_path(std::string_view path, std::string_view base) {
  if (path.empty()) return make_error(ErrorCode::invalid_argument, "the path is empty");
  for (const std::string_view text : {path, base}) {
    if (text.find('\0') != std::string_view::npos)
      return make_error(ErrorCode::invalid_argument, concat({quoted(text), ": has a NUL byte"}));
  }
  auto absolute = absolute_path(path, base);
  if (!absolute) return absolute.error();
  if (absolute->size() > longest_path) return system_error(ENAMETOOLONG, quoted(path));

  std::string todo = std::move(*absolute);
  std::string done;  // canonical so far; empty is the root directory
  std::size_t at = 0;
  int links = 0;
  // Each readlink() walks all of `done` again, so the text of links must be bounded, not only their
  // number: 40 links of 4 KB each, laid out by somebody patient, took 4.6 seconds.
  std::size_t walked = todo.size();
  while (at < todo.size()) {
    const std::size_t end = std::min(todo.find('/', at), todo.size());
    const std::string part = todo.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!done.empty()) done.resize(done.rfind('/'));
      continue;
    }
    const std::size_t parent_size = done.size();
    done += '/';
    done += part;
    char target[longest_path + 1];
    const ssize_t size = ::readlink(done.c_str(), target, sizeof target);
    if (size <= 0) continue;  // not a link, or missing, or out of sight
    walked += static_cast<std::size_t>(size);
    if (++links > most_links) return system_error(ELOOP, quoted(path));
    if (walked > longest_path) return system_error(ENAMETOOLONG, quoted(path));
    if (at < todo.size())
      todo = concat({{target, static_cast<std::size_t>(size)}, "/", todo.substr(at)});
    else
      todo.assign(target, static_cast<std::size_t>(size));
    at = 0;
    done.resize(target[0] == '/' ? 0 : parent_size);
  }
  return done.empty() ? std::string("/") : done;
}

bool is_within(std::string_view path, std::string_view root) noexcept {
  if (root == "/") return starts_with(path, "/");
  return !root.empty() && starts_with(path, root) &&
         (path.size() == root.size() || path[root.size()] == '/');
}

Expected<PathRules> PathRules::create(const PathOptions& options) {
  PathRules rules;
  for (const Root& given : options.roots) {
    auto root = open_root(given);
    if (!root) return root.error();
    const auto same = std::find_if(rules.roots_.begin(), rules.roots_.end(),
                                   [&](const Root& known) { return known.path == root->path; });
    if (same == rules.roots_.end())
      rules.roots_.push_back(std::move(*root));
    else if (same->permission != root->permission)
      return make_error(
          ErrorCode::invalid_argument,
          concat({"allowed_paths: ", quoted(root->path), ": listed with different permissions"}));
  }
  return rules;
}

const Root* PathRules::deepest_root(std::string_view canonical_path) const noexcept {
  if (!is_canonical_form(canonical_path)) return nullptr;
  const Root* deepest = nullptr;
  for (const Root& root : roots_) {
    if (!is_within(canonical_path, root.path)) continue;
    if (!deepest || root.path.size() > deepest->path.size()) deepest = &root;
  }
  return deepest;
}

Permission PathRules::permission(std::string_view canonical_path) const noexcept {
  if (!restricted()) return Permission::write;
  const Root* root = deepest_root(canonical_path);
  return root ? root->permission : Permission::none;
}

Expected<OpenDirectory> PathRules::open_work_dir(std::string_view work_dir,
                                                 std::string_view base) const {
  constexpr std::string_view invalid = "Path validation error: ";
  if (work_dir.empty()) work_dir = ".";
  auto path = canonical_path(work_dir, base);
  if (!path) return with_prefix(invalid, path.error());
  const std::string shown = printable(*path);
  if (permission(*path) == Permission::none)
    return make_error(ErrorCode::permission_denied,
                      concat({invalid, "Path not in allowed directories: ", shown}));
  auto directory = open_canonical_directory(*path);
  if (directory) return OpenDirectory{std::move(*path), std::move(*directory)};
  const Error& error = directory.error();
  if (error.system_error == ENOENT)
    return with_message(error, concat({"Working directory does not exist: ", shown}));
  if (error.system_error == ENOTDIR)
    return with_message(error, concat({"Working directory is not a directory: ", shown}));
  return with_prefix("Working directory cannot be entered: ", error);
}

// which files may be deleted ----------------------------------------------------------------------

namespace {

// Where a name of the table below must stand for a path to be auto-generated.
enum class GeneratedScope {
  tree,       // anywhere in it: the thing itself, or a directory around it
  directory,  // at its end, and it is a directory
  file,       // at its end, and it is none
};

struct GeneratedName {
  std::string_view name;  // with a `*` in front: any name that ends so
  GeneratedScope scope;
};

constexpr GeneratedName generated_names[] = {
    {"__pycache__", GeneratedScope::tree},  {".pytest_cache", GeneratedScope::tree},
    {".mypy_cache", GeneratedScope::tree},  {".ruff_cache", GeneratedScope::tree},
    {".tox", GeneratedScope::tree},         {".nox", GeneratedScope::tree},
    {".next", GeneratedScope::tree},        {".nuxt", GeneratedScope::tree},
    {"node_modules", GeneratedScope::tree}, {"build", GeneratedScope::directory},
    {"dist", GeneratedScope::directory},    {"*.egg-info", GeneratedScope::directory},
    {".coverage", GeneratedScope::file},    {".DS_Store", GeneratedScope::file},
    {"Thumbs.db", GeneratedScope::file},    {"*.pyc", GeneratedScope::file},
    {"*.pyo", GeneratedScope::file},        {"*.log", GeneratedScope::file},
    {"*.swp", GeneratedScope::file},        {"*.swo", GeneratedScope::file},
    {"*~", GeneratedScope::file},
};

bool is_generated_name(std::string_view name, GeneratedScope scope) {
  for (const GeneratedName& row : generated_names) {
    if (row.scope != scope) continue;
    const bool any_start = row.name[0] == '*';
    if (any_start ? ends_with(name, row.name.substr(1)) : name == row.name) return true;
  }
  return false;
}

// `ending` tells what the thing itself is: GeneratedScope::directory or file.
bool is_generated(std::string_view path, std::string_view root, GeneratedScope ending) {
  if (!root.empty() && codeexec::is_within(path, root)) path.remove_prefix(root.size());
  std::size_t at = 0;
  std::string_view part;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    part = path.substr(at, end - at);
    if (is_generated_name(part, GeneratedScope::tree)) return true;
    at = end + 1;
  }
  return is_generated_name(part, ending);
}

// The canonical path of a directory entry itself: links on the way to it are followed, and not the
// one that it may be.
Expected<std::string> canonical_entry(std::string_view path, std::string_view base = {}) {
  const std::size_t slash = path.rfind('/');
  const std::string_view last = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  const bool is_entry = !last.empty() && last != "." && last != "..";
  if (!is_entry || last.find('\0') != std::string_view::npos) return canonical_path(path, base);
  const std::string_view parent = path.substr(0, path.size() - last.size());
  auto result = canonical_path(parent.empty() ? "." : parent, base);
  if (result) *result = concat({*result, *result == "/" ? "" : "/", last});
  return result;
}

// Up to three names, the first in order of the alphabet, and how many there are in all.
class Examples {
 public:
  void add(std::string name) {
    ++count_;
    first_.push_back(std::move(name));
    std::sort(first_.begin(), first_.end());
    if (first_.size() > most) first_.pop_back();
  }
  std::size_t count() const { return count_; }
  // "a, b, c (and 4 more)"
  std::string text() const {
    std::string result;
    for (const std::string& name : first_)
      result += concat({result.empty() ? "" : ", ", printable(name)});
    if (count_ > most) result += concat({" (and ", std::to_string(count_ - most), " more)"});
    return result;
  }

 private:
  static constexpr std::size_t most = 3;
  std::vector<std::string> first_ = {};
  std::size_t count_ = 0;
};

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// What may still be looked at of a directory tree, for whoever lists it.
struct WalkBudget {
  std::size_t entries = DeleteGuard::max_entries;
  std::size_t bytes = DeleteGuard::max_entry_bytes;
  bool take(std::size_t path_size) {
    if (entries == 0 || bytes < path_size) return false;
    --entries;
    bytes -= path_size;
    return true;
  }
};

// Calls `visit` with the name of each entry of a directory and what it is. A link in place of the
// directory is not followed.
Expected<void> list_directory(const std::string& path, WalkBudget& budget,
                              FunctionRef<void(const char*, const struct stat&)> visit) {
  UniqueFd fd(above_standard_streams(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  if (!fd) return system_error(errno, quoted(path));
  const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(fd.get()));
  if (!directory) return system_error(errno, quoted(path));
  const int descriptor = fd.release();  // closed by closedir() from here on
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (!entry && errno != 0) return system_error(errno, quoted(path));
    if (!entry) return {};
    const char* child = entry->d_name;
    if (std::strcmp(child, ".") == 0 || std::strcmp(child, "..") == 0) continue;
    if (!budget.take(path.size() + std::strlen(child) + 1))
      return make_error(ErrorCode::limit,
                        concat({"there are more than ", std::to_string(DeleteGuard::max_entries),
                                " entries, too many to be checked"}));
    struct stat status {};
    if (::fstatat(descriptor, child, &status, AT_SYMLINK_NOFOLLOW) == 0) visit(child, status);
  }
}

// Whether a name has the form of a pattern of the shell: `*`, `?` and [a-z], [!a-z]. Of the stars
// only the last one is ever tried again, so it takes no more than size times size steps.
bool name_has_form(std::string_view pattern, std::string_view text) {
  // Length of the pattern's element for one character, and whether `c` is such a character.
  const auto element = [&](std::size_t at, char c) -> std::pair<std::size_t, bool> {
    if (pattern[at] == '?') return {1, true};
    if (pattern[at] != '[') return {1, pattern[at] == c};
    std::size_t i = at + 1;
    const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
    if (negated) ++i;
    bool found = false;
    for (const std::size_t first = i; i < pattern.size(); ++i) {
      if (pattern[i] == ']' && i > first) return {i + 1 - at, found != negated};
      if (pattern[i] == '[' && i + 1 < pattern.size() && pattern[i + 1] == ':') {
        // A class such as [:alpha:] may hold any character; which ones, the locale decides.
        const std::size_t end = pattern.find(":]", i + 2);
        if (end != std::string_view::npos) {
          found = !negated;
          i = end + 1;
          continue;
        }
      }
      if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
        const auto byte = [](char x) { return static_cast<unsigned char>(x); };
        found = found || (byte(pattern[i]) <= byte(c) && byte(c) <= byte(pattern[i + 2]));
        i += 2;
        continue;
      }
      found = found || pattern[i] == c;
    }
    return {1, c == '['};  // no end: a bracket and nothing more
  };
  std::size_t in_pattern = 0;
  std::size_t in_text = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (in_text < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      star_text = in_text;
      continue;
    }
    if (in_pattern < pattern.size()) {
      const auto [size, matches] = element(in_pattern, text[in_text]);
      if (matches) {
        in_pattern += size;
        ++in_text;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    in_pattern = star + 1;
    in_text = ++star_text;
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

bool is_file_pattern(std::string_view text) {
  return text.find_first_of("*?[") != std::string::npos;
}

// The existing paths that an absolute pattern stands for now, as a shell would find them: `*` does
// not mean hidden files. Fails when the budget does not reach.
Expected<std::vector<std::string>> expand_glob(std::string_view pattern, WalkBudget& budget) {
  std::vector<std::string> found = {""};
  std::size_t at = 1;
  while (at <= pattern.size() && !found.empty()) {
    const std::size_t end = std::min(pattern.find('/', at), pattern.size());
    const std::string_view part = pattern.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    std::vector<std::string> next;
    for (std::string& path : found) {
      if (!is_file_pattern(part)) {
        next.push_back(concat({path, "/", part}));
        continue;
      }
      const auto resolved = canonical_path(path.empty() ? "/" : path);
      if (!resolved) continue;
      const auto listed =
          list_directory(*resolved, budget, [&](const char* child, const struct stat&) {
            if (child[0] == '.' && part[0] != '.') return;
            if (name_has_form(part, child)) next.push_back(concat({path, "/", child}));
          });
      // What cannot be read cannot be expanded by the shell, either.
      if (!listed && listed.error().code == ErrorCode::limit) return listed.error();
    }
    found = std::move(next);
  }
  const auto is_missing = [](const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) != 0;
  };
  found.erase(std::remove_if(found.begin(), found.end(), is_missing), found.end());
  return found;
}

}  // namespace

bool is_auto_generated(std::string_view path, std::string_view root) {
  return is_generated(path, root, GeneratedScope::directory) ||
         is_generated(path, root, GeneratedScope::file);
}

// Which files are known, the oldest first in `order`.
struct DeleteGuard::State {
  using Files = std::map<std::string, bool, std::less<>>;  // canonical path; true: created
  std::vector<std::string> roots = {};
  std::mutex mutex = {};
  Files files = {};
  std::deque<Files::iterator> order = {};
  std::size_t path_bytes = 0;
  std::size_t created = 0;

  void mark(std::string_view path, bool is_created) {
    auto resolved = canonical_path(path);
    if (!resolved) return;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto [entry, is_new] = files.try_emplace(std::move(*resolved), false);
    if (is_created && !entry->second) {
      entry->second = true;
      ++created;
    }
    if (!is_new) return;
    order.push_back(entry);
    path_bytes += entry->first.size();
    while (files.size() > max_files || path_bytes > max_path_bytes) forget_oldest();
  }
  bool knows(std::string_view path) {
    const std::lock_guard<std::mutex> lock(mutex);
    return files.find(path) != files.end();
  }
  // The deepest root around a canonical path, or nothing.
  std::string_view root_around(std::string_view path) const {
    std::string_view deepest;
    for (const std::string& root : roots)
      if (is_within(path, root) && root.size() > deepest.size()) deepest = root;
    return deepest;
  }
  // Of a regular file.
  bool may_go(std::string_view path, std::string_view root) {
    return is_generated(path, root, GeneratedScope::file) || knows(path);
  }

 private:
  void forget_oldest() {
    const Files::iterator oldest = order.front();
    order.pop_front();
    path_bytes -= oldest->first.size();
    if (oldest->second) --created;
    files.erase(oldest);
  }
};

DeleteGuard::DeleteGuard(std::vector<std::string> roots) : state_(std::make_shared<State>()) {
  state_->roots = std::move(roots);
}

void DeleteGuard::mark_read(std::string_view path) const { state_->mark(path, false); }
void DeleteGuard::mark_created(std::string_view path) const { state_->mark(path, true); }

Expected<void> DeleteGuard::can_delete(std::string_view path) const {
  return can_delete_files({std::string(path)});
}

Expected<void> DeleteGuard::can_delete_files(const std::vector<std::string>& paths) const {
  Examples unread;
  for (const std::string& path : paths) {
    auto entry = canonical_entry(path);
    if (!entry) return with_prefix("Cannot delete: ", entry.error());
    struct stat status {};
    if (::lstat(entry->c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (!state_->may_go(*entry, state_->root_around(*entry))) unread.add(std::move(*entry));
  }
  if (unread.count() == 0) return {};
  if (unread.count() == 1)
    return make_error(ErrorCode::permission_denied,
                      concat({"Cannot delete '", unread.text(),
                              "': File must be read before deletion. Use read (including "
                              "read_multimodal_files) or diff tools to view the file first."}));
  return make_error(ErrorCode::permission_denied,
                    concat({"Cannot delete ", std::to_string(unread.count()),
                            " unread file(s). Examples: ", unread.text(),
                            ". Please read files before deletion using Read or "
                            "read_multimodal_files."}));
}

Expected<void> DeleteGuard::can_delete_directory(std::string_view path) const {
  auto top = canonical_entry(path);
  if (!top) return with_prefix("Cannot delete: ", top.error());
  struct stat top_status {};
  if (::lstat(top->c_str(), &top_status) != 0 || !S_ISDIR(top_status.st_mode)) return {};
  const std::string_view root = state_->root_around(*top);
  if (is_generated(*top, root, GeneratedScope::directory)) return {};

  const std::string start = concat({"Cannot delete directory '", printable(*top), "': "});
  Examples unread;
  WalkBudget budget;
  std::vector<std::string> waiting = {""};  // below `top`, each with a slash in front
  while (!waiting.empty()) {
    const std::string here = std::move(waiting.back());
    waiting.pop_back();
    const auto visit = [&](const char* child, const struct stat& status) {
      std::string below = concat({here, "/", child});
      if (S_ISDIR(status.st_mode)) {
        if (!is_generated_name(child, GeneratedScope::tree)) waiting.push_back(std::move(below));
      } else if (S_ISREG(status.st_mode) && !state_->may_go(concat({*top, below}), root)) {
        unread.add(below.substr(1));
      }
    };
    const auto listed = list_directory(concat({*top, here}), budget, visit);
    // One that is gone by now needs no check.
    if (!listed && listed.error().system_error != ENOENT) return with_prefix(start, listed.error());
  }
  if (unread.count() == 0) return {};
  return make_error(ErrorCode::permission_denied,
                    concat({start, "Contains ", std::to_string(unread.count()),
                            " unread file(s). Examples: ", unread.text(),
                            ". Please read files before deletion."}));
}

void DeleteGuard::clear() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->files.clear();
  state_->order.clear();
  state_->path_bytes = 0;
  state_->created = 0;
}

DeleteGuard::Stats DeleteGuard::stats() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  Stats stats;
  stats.created_files = state_->created;
  stats.total_tracked = state_->files.size();
  stats.read_files = stats.total_tracked - stats.created_files;
  return stats;
}

// =================================================================================================
// >>files (definitions)
//
// A path is made canonical, judged by the rules and then opened name by name; see the declarations.
// =================================================================================================

const char* name(FileEntry::Type type) noexcept {
  switch (type) {
    case FileEntry::Type::file:
      return "file";
    case FileEntry::Type::directory:
      return "directory";
    case FileEntry::Type::link:
      return "link";
    case FileEntry::Type::other:
      break;
  }
  return "other";
}

Files::Files(PathRules rules, std::string base)
    : rules_(std::move(rules)), base_(std::move(base)) {}

Expected<FileContent> Files::read(std::string_view, const FileRange&) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}

Expected<std::string> Files::write(std::string_view, std::string_view, const FileWrite&) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}

Expected<FileList> Files::list(std::string_view, std::size_t) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}

Expected<std::string> python_docstring(std::string_view, std::string_view) {
  return make_error(ErrorCode::unsupported, "not built yet");
}

// =================================================================================================
// >>environment (definitions)
// =================================================================================================
//
// create() does once what does not depend on the command: it filters the host's variables, checks
// the operator's and fills in PATH and LANG. resolve() copies that and looks for the venv. Nothing
// is cached between commands, because creating a venv is itself a command.
//
// MCP clients start a server with six variables and no locale, and Python, git and others then
// fall back to ASCII: hence LANG. A missing PATH is not passed on, because each program has its own
// idea of what that means, and "<venv>/bin:" with nothing behind it would mean the work_dir.

namespace {

using VariableMap = std::map<std::string, std::string>;

constexpr std::string_view default_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool is_variable_name(std::string_view text) {
  return !text.empty() && text.find('=') == std::string_view::npos && !has_nul(text);
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Python's venv module refuses the colon, too: PATH has no way to quote it.
bool is_venv(const std::string& path) {
  return path.find(':') == std::string::npos && is_directory(path + "/bin");
}

Error environment_error(std::string_view option, std::string_view subject, std::string_view what) {
  return make_error(ErrorCode::invalid_argument,
                    concat({option, ": ", quoted(subject), " ", what}));
}

// Puts checked variables into the map, later ones over earlier ones. `option` names their origin.
Expected<void> assign_variables(VariableMap& map, std::string_view option,
                                const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [variable, value] : variables) {
    if (!is_variable_name(variable))
      return environment_error(option, variable, "is no variable name: empty, or has '=' or NUL");
    if (has_nul(value))
      return environment_error(option, variable, "has a value with a NUL byte in it");
    map[variable] = value;
  }
  return {};
}

Expected<void> check_keep(const std::vector<std::string>& keep) {
  for (const std::string& pattern : keep) {
    if (!is_variable_name(pattern))
      return environment_error("keep", pattern, "is no variable name: empty, or has '=' or NUL");
    const std::size_t star = pattern.find('*');
    if (star != std::string::npos && star + 1 != pattern.size())
      return environment_error("keep", pattern, "has a '*' that is not its last character");
  }
  return {};
}

bool is_kept(std::string_view variable, const EnvironmentOptions& options) {
  if (options.keep_all) return true;
  for (const std::string& pattern : options.keep) {
    if (variable == pattern) return true;
    if (ends_with(pattern, "*") &&
        starts_with(variable, std::string_view(pattern).substr(0, pattern.size() - 1)))
      return true;
  }
  return false;
}

bool is_secret(std::string_view variable, const EnvironmentOptions& options) {
  return std::find(options.secret.begin(), options.secret.end(), variable) != options.secret.end();
}

// The host's variables that commands may see. Of two with one name the first counts, as for
// getenv().
VariableMap kept_variables(const EnvironmentOptions& options) {
  VariableMap map;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view variable = text.substr(0, equals);
    if (is_kept(variable, options) || is_secret(variable, options))
      map.emplace(variable, text.substr(equals + 1));
  }
  return map;
}

// The values of the secret variables among those of commands.
Expected<std::vector<std::string>> secret_values(const VariableMap& map,
                                                 const std::vector<std::string>& variables) {
  std::vector<std::string> values;
  for (const std::string& variable : variables) {
    if (!is_variable_name(variable))
      return environment_error("secret", variable, "is no variable name: empty, or has '=' or NUL");
    if (variable.find('*') != std::string::npos)
      return environment_error("secret", variable, "has a '*': each secret is named by itself");
    const auto found = map.find(variable);
    if (found == map.end())
      return make_error(ErrorCode::not_found,
                        concat({"secret: ", quoted(variable),
                                " is neither a variable of this process nor one of 'set'"}));
    if (without_line_ends(found->second).size() < shortest_secret)
      return environment_error(
          "secret", variable,
          concat({"has a value of fewer than ", std::to_string(shortest_secret),
                  " bytes, which cannot be masked"}));
    values.push_back(found->second);
  }
  if (total_size(values) > longest_secrets)
    return make_error(ErrorCode::limit, concat({"secret: the values have more than ",
                                                std::to_string(longest_secrets), " bytes"}));
  return values;
}

bool is_missing(const VariableMap& map, const char* variable) {
  const auto found = map.find(variable);
  return found == map.end() || found->second.empty();
}

Expected<void> check_prefix(const std::string& prefix) {
  if (prefix.empty()) return {};
  if (prefix.find_first_of(std::string_view("\0\n", 2)) != std::string::npos)
    return environment_error("command_prefix", prefix, "has a newline or a NUL byte");
  if (prefix.find_first_not_of(" \t") == std::string::npos)
    return environment_error("command_prefix", prefix, "is blank");
  return {};
}

// The canonical path of the operator's venv.
Expected<std::string> check_venv_path(const std::string& given) {
  auto path = canonical_path(given);
  if (!path) return with_prefix("venv_path: ", path.error());
  if (path->find(':') != std::string::npos)
    return environment_error("venv_path", *path, "has a ':', which PATH cannot hold");
  if (!is_venv(*path))
    return make_error(ErrorCode::not_found,
                      concat({"venv_path: ", quoted(*path), " has no 'bin' directory"}));
  return path;
}

}  // namespace

Expected<Environment> Environment::create(const EnvironmentOptions& options) {
  Environment result;
  if (auto checked = check_keep(options.keep); !checked) return checked.error();
  if (auto checked = check_prefix(options.command_prefix); !checked) return checked.error();
  result.prefix_ = options.command_prefix;
  result.auto_venv_ = options.auto_venv;
  if (!options.venv_path.empty()) {
    auto path = check_venv_path(options.venv_path);
    if (!path) return path.error();
    result.venv_path_ = std::move(*path);
  }
  if (!options.workspace.empty()) {
    auto path = canonical_path(options.workspace);
    if (!path) return with_prefix("workspace: ", path.error());
    result.workspace_ = std::move(*path);
  }

  VariableMap map = kept_variables(options);
  if (auto assigned = assign_variables(map, "set", options.set); !assigned) return assigned.error();
  auto secrets = secret_values(map, options.secret);
  if (!secrets) return secrets.error();
  result.secrets_ = std::move(*secrets);
  if (is_missing(map, "PATH")) map["PATH"] = default_path;
  if (is_missing(map, "LANG") && is_missing(map, "LC_ALL")) map["LANG"] = "C.UTF-8";
  result.variables_.assign(map.begin(), map.end());
  return result;
}

Expected<std::string> Environment::find_venv(std::string_view work_dir) const {
  if (!prefix_.empty()) return std::string();
  if (!venv_path_.empty()) {
    if (is_venv(venv_path_)) return venv_path_;
    return make_error(ErrorCode::not_found,
                      concat({"venv_path: ", quoted(venv_path_), " is gone since the start"}));
  }
  if (!auto_venv_) return std::string();
  for (const std::string_view place : {work_dir, std::string_view(workspace_)}) {
    if (place.empty()) continue;
    std::string venv = concat({place, "/.venv"});
    if (is_venv(venv)) return venv;
  }
  return std::string();
}

Expected<CommandEnvironment> Environment::resolve(
    std::string_view work_dir,
    const std::vector<std::pair<std::string, std::string>>& extra) const {
  if (!work_dir.empty() && (work_dir[0] != '/' || has_nul(work_dir)))
    return environment_error("work_dir", work_dir, "is not an absolute path");
  auto venv = find_venv(work_dir);
  if (!venv) return venv.error();

  VariableMap map(variables_.begin(), variables_.end());
  if (!work_dir.empty()) map["PWD"] = work_dir;
  if (!venv->empty()) {
    map["VIRTUAL_ENV"] = *venv;
    std::string& path = map["PATH"];
    path = concat({*venv, "/bin:", path});
    map.erase("PYTHONHOME");
  }
  if (auto assigned = assign_variables(map, "environment", extra); !assigned)
    return assigned.error();

  CommandEnvironment result;
  result.variables.reserve(map.size());
  for (const auto& [variable, value] : map)
    result.variables.push_back(concat({variable, "=", value}));
  result.prefix = prefix_;
  result.venv = std::move(*venv);
  return result;
}

// =================================================================================================
// >>sandbox (definitions)
//
// Building. create() does all that needs memory, names or time, once: a Landlock ruleset whose
// rules hold on to the granted files, the filter's program, the limits. What it leaves behind is a
// SandboxPlan, plain data that any number of children apply with raw system calls between clone and
// exec, on memory that they borrow from this program: no allocation, no lock, no errno.
//
// Trying. Whether a kernel, a container's filter or an emulator really does what its answers claim
// is learned by doing: a child applies the plan and attempts what is forbidden. A feature whose
// step fails is taken out of the plan, and the rest is tried again.
//
// Rules of Landlock are a union: what one grants no other can take back. So nothing is granted
// that has a secret in it; /etc and the prefixes of tools are granted entry by entry around theirs.
// =================================================================================================

// 1: children are made by clone with shared memory and watched through a pidfd. 0: by fork, watched
// by a thread each; for systems without clone, and to test that path on Linux.
#ifndef CODEEXEC_HAS_CLONE
#if defined(__linux__)
#define CODEEXEC_HAS_CLONE 1
#else
#define CODEEXEC_HAS_CLONE 0
#endif
#endif

// 1: commands can be held by the kernel. It takes Linux, a clone that shares memory, and a
// processor whose system calls the filter knows by number. 0: strict is refused, best_effort
// enforces nothing.
#ifndef CODEEXEC_HAS_SANDBOX
#if CODEEXEC_HAS_CLONE && ((defined(__x86_64__) && !defined(__ILP32__)) || defined(__aarch64__))
#define CODEEXEC_HAS_SANDBOX 1
#else
#define CODEEXEC_HAS_SANDBOX 0
#endif
#elif CODEEXEC_HAS_SANDBOX && !CODEEXEC_HAS_CLONE
#undef CODEEXEC_HAS_SANDBOX
#define CODEEXEC_HAS_SANDBOX 0
#endif

// For code that runs in a child on borrowed memory: instrumentation would write to the shadow state
// of the thread that waits in the parent.
#if defined(__clang__) || defined(__GNUC__)
#define CODEEXEC_IN_CHILD __attribute__((noinline, no_sanitize("address", "thread", "undefined")))
#else
#define CODEEXEC_IN_CHILD
#endif

const char* name(SandboxMode mode) noexcept {
  switch (mode) {
    case SandboxMode::off:
      return "off";
    case SandboxMode::best_effort:
      return "best_effort";
    case SandboxMode::strict:
      break;
  }
  return "strict";
}

const char* name(Network network) noexcept {
  switch (network) {
    case Network::host:
      return "host";
    case Network::none:
      return "none";
    case Network::loopback:
      break;
  }
  return "loopback";
}

namespace {

struct NamedLimit {
  const char* name;
  std::uint64_t Limits::*value;
};

constexpr NamedLimit limit_names[] = {
    {"cpu_time", &Limits::cpu_time},
    {"memory", &Limits::memory},
    {"address_space", &Limits::address_space},
    {"processes", &Limits::processes},
    {"open_files", &Limits::open_files},
    {"file_size", &Limits::file_size},
    {"disk", &Limits::disk},
};

// The errors of create() that are the same in every mode and on every system.
Expected<void> check_sandbox_options(const SandboxOptions& options) {
  for (const auto* list : {&options.writable, &options.readable}) {
    if (options.mode == SandboxMode::off) break;  // nothing is granted
    for (const std::string& path : *list) {
      if (!starts_with(path, "/"))
        return make_error(ErrorCode::invalid_argument,
                          concat({"grants: ", quoted(path), " is not an absolute path"}));
      if (path.find('\0') != std::string::npos)
        return make_error(ErrorCode::invalid_argument,
                          concat({"grants: ", quoted(path), " has a NUL byte"}));
    }
  }
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  for (const NamedLimit& limit : limit_names) {
    if (options.limits.*limit.value > most)
      return make_error(ErrorCode::invalid_argument,
                        concat({"limits: ", limit.name, " is larger than 2^62"}));
  }
  // The loader of a program needs a descriptor beside the three standard ones.
  constexpr std::uint64_t fewest_files = 4;
  if (options.limits.open_files != 0 && options.limits.open_files < fewest_files)
    return make_error(ErrorCode::invalid_argument,
                      "limits: open_files below 4 lets no program start");
  return {};
}

}  // namespace

namespace {

#if CODEEXEC_HAS_CLONE

CODEEXEC_IN_CHILD long as_word(int value) { return value; }
CODEEXEC_IN_CHILD long as_word(unsigned value) { return static_cast<long>(value); }
CODEEXEC_IN_CHILD long as_word(long value) { return value; }
CODEEXEC_IN_CHILD long as_word(unsigned long value) { return static_cast<long>(value); }
CODEEXEC_IN_CHILD long as_word(const volatile void* value) { return reinterpret_cast<long>(value); }

// A system call: its result, or an errno made negative. It does without libc, whose function would
// write to the errno of a thread of the parent that goes on running.
CODEEXEC_IN_CHILD long raw_call(long number, const long (&words)[6]) {
#if defined(__x86_64__) && !defined(__ILP32__)
  register long fourth asm("r10") = words[3];
  register long fifth asm("r8") = words[4];
  register long sixth asm("r9") = words[5];
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long call asm("x8") = number;
  register long result asm("x0") = words[0];
  register long second asm("x1") = words[1];
  register long third asm("x2") = words[2];
  register long fourth asm("x3") = words[3];
  register long fifth asm("x4") = words[4];
  register long sixth asm("x5") = words[5];
  asm volatile("svc #0"
               : "+r"(result)
               : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "memory", "cc");
  return result;
#else
  const long result = ::syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  return result < 0 ? -errno : result;
#endif
}

template <class... Words>
CODEEXEC_IN_CHILD long raw(long number, Words... words) {
  const long list[6] = {as_word(words)...};
  return raw_call(number, list);
}

constexpr long kernel_signals = _NSIG - 1;
constexpr long kernel_sigset_size = kernel_signals / 8;

// libc's own functions leave out the two signals it uses itself (32 and 33).
struct KernelSigset {
  unsigned char bits[kernel_sigset_size];
};

CODEEXEC_IN_CHILD void set_signal_mask(const KernelSigset* mask, KernelSigset* before) {
  raw(SYS_rt_sigprocmask, SIG_SETMASK, mask, before, kernel_sigset_size);
}

// Blocks all signals, so that no handler of the host runs in a child on its memory.
class SignalPause {
 public:
  SignalPause() {
    KernelSigset all;
    std::memset(&all, 0xff, sizeof all);
    set_signal_mask(&all, &before_);
  }
  SignalPause(const SignalPause&) = delete;
  SignalPause& operator=(const SignalPause&) = delete;
  ~SignalPause() { set_signal_mask(&before_, nullptr); }

 private:
  KernelSigset before_ = {};
};

// The kernel's struct clone_args, first version.
struct CloneArguments {
  std::uint64_t flags = 0;
  std::uint64_t pidfd = 0;
  std::uint64_t child_tid = 0;
  std::uint64_t parent_tid = 0;
  std::uint64_t exit_signal = 0;
  std::uint64_t stack = 0;
  std::uint64_t stack_size = 0;
  std::uint64_t tls = 0;
};

// clone3 with a function for the child, which libc does not offer: the child returns from the
// system call on an empty stack. A pid or a negative errno; -ENOSYS for other processors.
CODEEXEC_IN_CHILD long clone3_call(CloneArguments* arguments, int (*function)(void*),
                                   void* argument) {
#if defined(__x86_64__) && !defined(__ILP32__)
  long result = 435;
  register int (*child_function)(void*) asm("r8") = function;
  register void* child_argument asm("r9") = argument;
  asm volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %%r9, %%rdi\n\t"
      "call *%%r8\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(arguments), "S"(sizeof *arguments), "r"(child_function), "r"(child_argument)
      : "rcx", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long result asm("x0") = reinterpret_cast<long>(arguments);
  register long size asm("x1") = sizeof *arguments;
  register int (*child_function)(void*) asm("x2") = function;
  register void* child_argument asm("x3") = argument;
  register long number asm("x8") = 435;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, #0\n\t"
      "mov x30, #0\n\t"
      "mov x0, x3\n\t"
      "blr x2\n\t"
      "brk #0\n"
      "1:"
      : "+r"(result)
      : "r"(size), "r"(child_function), "r"(child_argument), "r"(number)
      : "memory", "cc");
  return result;
#else
  (void)arguments;
  (void)function;
  (void)argument;
  return -ENOSYS;
#endif
}

// A process on borrowed memory that runs `function` on `stack`. A pid or a negative errno.
struct CloneRequest {
  std::uint64_t flags;
  int (*function)(void*);
  void* argument;
  char* stack;
  std::size_t stack_size;
  int* pidfd;       // or null
  int exit_signal;  // to this program, when it ends; or 0
};

// `cleared` is told, before the process begins, whether it has no handlers of the host's.
CODEEXEC_IN_CHILD long clone_process(const CloneRequest& request, bool& cleared) {
  constexpr std::uint64_t clear_sighand = 0x100000000u;  // Linux 5.5
  const std::uint64_t flags =
      request.flags | CLONE_VM | (request.pidfd ? std::uint64_t{CLONE_PIDFD} : 0);
  CloneArguments arguments = {};
  arguments.flags = flags | clear_sighand;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(request.pidfd);
  arguments.exit_signal = static_cast<std::uint64_t>(request.exit_signal);
  arguments.stack = reinterpret_cast<std::uintptr_t>(request.stack);
  arguments.stack_size = request.stack_size;
  cleared = true;
  long pid = clone3_call(&arguments, request.function, request.argument);
  // An old kernel, or a container's filter, which cannot look into clone3's arguments.
  if (pid == -ENOSYS || pid == -EPERM || pid == -EINVAL) {
    cleared = false;
    pid = ::clone(request.function, request.stack + request.stack_size,
                  static_cast<int>(flags) | request.exit_signal, request.argument, request.pidfd);
    if (pid < 0) pid = -errno;
  }
  return pid;
}

#endif

}  // namespace

#if CODEEXEC_HAS_SANDBOX

// These are not in the unnamed namespace because they are fields of classes that the declarations
// name.

// A limit as the kernel takes it.
struct SandboxRlimit {
  int resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

// The kernel's landlock_ruleset_attr and landlock_path_beneath_attr, of which headers of older
// systems lack parts.
struct LandlockAttributes {
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;
};
struct LandlockRule {
  std::uint64_t rights = 0;
  std::int32_t fd = -1;
};

// Everything that the processes of a run need of a sandbox, as plain data that outlives them.
struct SandboxPlan {
  bool supervised = true;         // a supervisor stands between this program and the command
  unsigned long clone_flags = 0;  // CLONE_NEW... of the supervisor
  // What set_up_namespaces() writes when CLONE_NEWUSER is among the flags, else null.
  const char* uid_map = nullptr;
  const char* gid_map = nullptr;
  bool loopback = false;    // bring `lo` up
  bool mount_proc = false;  // a /proc of the new process table

  int ruleset = -1;  // Landlock's, or -1
  // With mount_proc: what the ruleset is made of, because a /proc that is mounted only then needs
  // a rule of its own. The descriptors must still be open in set_up_namespaces().
  const LandlockRule* rules = nullptr;
  std::size_t rule_count = 0;
  LandlockAttributes attributes = {};
  std::size_t attributes_size = 0;

  const sock_filter* filter = nullptr;  // or null
  unsigned short filter_size = 0;
  const SandboxRlimit* rlimits = nullptr;
  std::size_t rlimit_count = 0;
  bool drop_capabilities = false;
  bool no_new_privs = false;
};

// Where the cgroups of runs are made: a directory that leaves can be added to.
struct CgroupBase {
  std::string directory = {};  // empty: there is none
  bool unified = false;        // cgroup v2
};

#endif

// A granted path, and the file that it was at create().
struct SandboxGrant {
  std::string path = {};
  dev_t device = 0;
  ino_t inode = 0;
};

// One policy; the plan points into it.
struct SandboxState {
  SandboxOptions options = {};
  SandboxReport report = {};
  std::vector<SandboxGrant> grants = {};
  UniqueFd disk_root = UniqueFd();  // where Limits::disk counts; none without that limit
#if CODEEXEC_HAS_SANDBOX
  SandboxPlan plan = {};
  // Where the cgroups of runs are made, when one is needed and can be made. With cgroup v2 it is
  // the same directory.
  CgroupBase memory_base = {};
  CgroupBase process_base = {};

  UniqueFd ruleset = UniqueFd();
  std::vector<UniqueFd> rule_files = {};
  std::vector<LandlockRule> rules = {};
  std::vector<sock_filter> filter = {};
  std::vector<SandboxRlimit> rlimits = {};
  std::string uid_map = {};
  std::string gid_map = {};
#endif

  SandboxState() = default;
  SandboxState(const SandboxState&) = delete;
  SandboxState& operator=(const SandboxState&) = delete;
  ~SandboxState() = default;
};

#if CODEEXEC_HAS_SANDBOX

// The cgroup of one run, or two of them with cgroup v1, made by the parent before the start. Empty
// when no limit needs one. Removed by finish(), or by the destructor.
class RunCgroup {
 public:
  RunCgroup() = default;
  RunCgroup(RunCgroup&& other) noexcept;
  RunCgroup& operator=(RunCgroup&& other) noexcept;
  ~RunCgroup();
  static Expected<RunCgroup> make(const SandboxState& state);

  // Open for writing: a process joins by writing "0" to each. They are closed on exec.
  const int* descriptors() const noexcept { return descriptors_.data(); }
  std::size_t count() const noexcept { return descriptors_.size(); }

  // Kills what is left in it, removes it, and gives the names of the limits that were reached.
  std::vector<std::string> finish();

 private:
  struct Leaf {
    std::string directory = {};
    UniqueFd processes = UniqueFd();
    bool unified = false;
    bool memory = false;
    bool tasks = false;
  };
  Expected<void> add(const CgroupBase& base, std::uint64_t memory, std::uint64_t processes);

  std::vector<Leaf> leaves_ = {};
  std::vector<int> descriptors_ = {};
};

namespace {

// In the child ------------------------------------------------------------------------------------

// The same on every architecture; headers of older systems lack some.
constexpr long number_of_clone3 = 435;
constexpr long number_of_landlock_create_ruleset = 444;
constexpr long number_of_landlock_add_rule = 445;
constexpr long number_of_landlock_restrict_self = 446;

constexpr int rule_path_beneath = 1;  // LANDLOCK_RULE_PATH_BENEATH

// Landlock's rights, with the ABI that brought them when it was not the first.
constexpr std::uint64_t right_execute = 1u << 0;
constexpr std::uint64_t right_write_file = 1u << 1;
constexpr std::uint64_t right_read_file = 1u << 2;
constexpr std::uint64_t right_read_dir = 1u << 3;
constexpr std::uint64_t right_remove_dir = 1u << 4;
constexpr std::uint64_t right_remove_file = 1u << 5;
constexpr std::uint64_t right_make_dir = 1u << 7;
constexpr std::uint64_t right_make_reg = 1u << 8;
constexpr std::uint64_t right_make_sock = 1u << 9;
constexpr std::uint64_t right_make_fifo = 1u << 10;
constexpr std::uint64_t right_make_sym = 1u << 12;
constexpr std::uint64_t right_refer = 1u << 13;         // ABI 2, Linux 5.19
constexpr std::uint64_t right_truncate = 1u << 14;      // ABI 3, Linux 6.2
constexpr std::uint64_t right_ioctl_dev = 1u << 15;     // ABI 5, Linux 6.10
constexpr std::uint64_t right_resolve_unix = 1u << 16;  // ABI 9, Linux 7.1

constexpr std::uint64_t readable_rights = right_execute | right_read_file | right_read_dir;
// No devices: with one of its own making a command of root's would read the disk itself.
constexpr std::uint64_t writable_rights = readable_rights | right_write_file | right_remove_dir |
                                          right_remove_file | right_make_dir | right_make_reg |
                                          right_make_sock | right_make_fifo | right_make_sym |
                                          right_refer | right_truncate | right_resolve_unix;
// Without ioctl, isatty() on /dev/null would say EACCES, which some programs do not take for a no.
constexpr std::uint64_t device_rights =
    right_read_file | right_write_file | right_truncate | right_ioctl_dev;
// What a rule for a file, and not a directory, may have.
constexpr std::uint64_t file_rights = right_execute | right_write_file | right_read_file |
                                      right_truncate | right_ioctl_dev | right_resolve_unix;

CODEEXEC_IN_CHILD long write_text(const char* path, const char* text) {
  const long fd = raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  unsigned long size = 0;
  while (text[size] != '\0') ++size;
  const long written = raw(SYS_write, fd, text, size);
  raw(SYS_close, fd);
  return written < 0 ? written : 0;
}

CODEEXEC_IN_CHILD long bring_loopback_up() {
  const long fd = raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  ifreq request;
  auto* bytes = reinterpret_cast<volatile unsigned char*>(&request);
  for (std::size_t i = 0; i < sizeof request; ++i) bytes[i] = 0;
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const long result = raw(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
  raw(SYS_close, fd);
  return result;
}

// Puts a ruleset with a rule for the new /proc in the place of the plan's. The table of descriptors
// is this process's own, so the number means the other ruleset elsewhere.
CODEEXEC_IN_CHILD long replace_ruleset(const SandboxPlan& plan) {
  const long ruleset =
      raw(number_of_landlock_create_ruleset, &plan.attributes, plan.attributes_size, 0);
  if (ruleset < 0) return ruleset;
  for (std::size_t i = 0; i < plan.rule_count; ++i) {
    const long added =
        raw(number_of_landlock_add_rule, ruleset, rule_path_beneath, &plan.rules[i], 0);
    if (added < 0) return added;
  }
  LandlockRule rule = {};
  rule.rights = readable_rights & plan.attributes.handled_fs;
  rule.fd = static_cast<std::int32_t>(
      raw(SYS_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (rule.fd < 0) return rule.fd;
  const long added = raw(number_of_landlock_add_rule, ruleset, rule_path_beneath, &rule, 0);
  raw(SYS_close, rule.fd);
  if (added < 0) return added;
  const long moved = raw(SYS_dup3, ruleset, plan.ruleset, O_CLOEXEC);
  raw(SYS_close, ruleset);
  return moved < 0 ? moved : 0;
}

CODEEXEC_IN_CHILD long write_maps(const SandboxPlan& plan) {
  // An ordinary user may map a group only when setgroups() is given up.
  const long denied = write_text("/proc/self/setgroups", "deny");
  if (denied < 0 && denied != -ENOENT) return denied;
  const long users = write_text("/proc/self/uid_map", plan.uid_map);
  if (users < 0) return users;
  return write_text("/proc/self/gid_map", plan.gid_map);
}

// The files of a process that cannot be dumped belong to root, its maps among them. Whether it can
// be is a property of the memory, which is the host's: for these three writes other processes of
// the user can look into the host, if they could not before. Only one child at a time does this,
// see NamespaceTurn.
CODEEXEC_IN_CHILD long map_user(const SandboxPlan& plan) {
  const bool hidden = raw(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  if (hidden) raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  const long result = write_maps(plan);
  if (hidden) raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  return result;
}

// Keeps other threads of this program from starting a child that maps its user, until this one has.
class NamespaceTurn {
 public:
  explicit NamespaceTurn(const SandboxPlan& plan) {
    // Never destroyed: threads may start programs until the very end.
    static std::mutex& mutex = *new std::mutex;
    if (plan.uid_map) lock_ = std::unique_lock<std::mutex>(mutex);
  }

 private:
  std::unique_lock<std::mutex> lock_ = {};
};

// In the first process of the new namespaces, before it starts the command and while the plan's
// descriptors are open. 0 or a negative errno.
CODEEXEC_IN_CHILD long set_up_namespaces(const SandboxPlan& plan) {
  if (plan.uid_map) {
    const long mapped = map_user(plan);
    if (mapped < 0) return mapped;
  }
  if (plan.loopback) {
    const long up = bring_loopback_up();
    if (up < 0) return up;
  }
  if (plan.mount_proc) {
    // Mounts of the host still come in; none of ours goes out.
    const long apart = raw(SYS_mount, "none", "/", as_word(0), MS_REC | MS_SLAVE, 0);
    if (apart < 0) return apart;
    const long mounted =
        raw(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0);
    if (mounted < 0) return mounted;
    if (plan.ruleset >= 0) return replace_ruleset(plan);
  }
  return 0;
}

CODEEXEC_IN_CHILD long lower_limit(const SandboxRlimit& limit) {
  std::uint64_t now[2] = {0, 0};
  const long known = raw(SYS_prlimit64, 0, limit.resource, 0, &now[0]);
  if (known < 0) return known;
  // Never more than there is, which only root could ask for.
  if (limit.hard < now[1]) now[1] = limit.hard;
  if (limit.soft < now[0]) now[0] = limit.soft;
  if (now[0] > now[1]) now[0] = now[1];
  return raw(SYS_prlimit64, 0, limit.resource, &now[0], 0);
}

// The kernel's arguments of capget() and capset(), third version.
struct CapabilityHeader {
  std::uint32_t version = 0x20080522;
  int pid = 0;
};
struct CapabilityData {
  std::uint32_t effective = 0;
  std::uint32_t permitted = 0;
  std::uint32_t inheritable = 0;
};

CODEEXEC_IN_CHILD long drop_capabilities() {
  // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE and their locks, and the lock of KEEP_CAPS.
  constexpr int secure_bits = 0xef;
  // These need CAP_SETPCAP. Who lacks it is held by no_new_privs alone: an exec then gains nothing.
  // The bounding set says what an exec may gain as well, and clearing it costs 50 us.
  raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  raw(SYS_prctl, PR_SET_SECUREBITS, secure_bits, 0, 0, 0);
  const CapabilityHeader header = {};
  const CapabilityData none[2] = {};
  return raw(SYS_capset, &header, &none[0]);
}

// The parts of a start that the plan can fail in.
enum class ConfineStep : int {
  namespaces,
  limits,
  capabilities,
  privileges,
  landlock,
  filter,
  end
};

// In the command's process, after it has entered its directory and before its descriptors are
// closed. 0 or a negative errno; `step`, when given, then tells what failed.
CODEEXEC_IN_CHILD long confine(const SandboxPlan& plan, volatile ConfineStep* step = nullptr) {
  ConfineStep ignored = ConfineStep::limits;
  if (!step) step = &ignored;
  *step = ConfineStep::limits;
  for (std::size_t i = 0; i < plan.rlimit_count; ++i) {
    const long result = lower_limit(plan.rlimits[i]);
    if (result < 0) return result;
  }
  *step = ConfineStep::capabilities;
  if (plan.drop_capabilities) {
    const long result = drop_capabilities();
    if (result < 0) return result;
  }
  *step = ConfineStep::privileges;
  if (plan.no_new_privs) {
    const long result = raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result < 0) return result;
  }
  *step = ConfineStep::landlock;
  if (plan.ruleset >= 0) {
    const long result = raw(number_of_landlock_restrict_self, plan.ruleset, 0);
    if (result < 0) return result;
  }
  return 0;
}

// The very last step before execve: from here on the filter holds the setting up, too.
CODEEXEC_IN_CHILD long install_filter(const SandboxPlan& plan) {
  constexpr int set_mode_filter = 1;  // SECCOMP_SET_MODE_FILTER
  if (!plan.filter) return 0;
  sock_fprog program;
  program.len = plan.filter_size;
  program.filter = const_cast<sock_filter*>(plan.filter);
  return raw(SYS_seccomp, set_mode_filter, 0, &program);
}

// Trying it ---------------------------------------------------------------------------------------

// What the child of a trial could do although the plan forbids it, and one thing that it could not
// although the plan promises it.
enum Breach : unsigned {
  breach_read = 1u << 0,        // listed a directory that is not granted
  breach_write = 1u << 1,       // opened a file for writing that is not granted
  breach_create = 1u << 2,      // made a directory outside
  breach_truncate = 1u << 3,    // emptied a file outside
  breach_signal = 1u << 4,      // could have sent a signal to this program
  breach_abstract = 1u << 5,    // reached an abstract socket of this program
  breach_filter = 1u << 6,      // a system call that the filter refuses went through
  breach_capability = 1u << 7,  // has capabilities left
  breach_privilege = 1u << 8,   // could gain privileges by executing a program
  breach_internet = 1u << 9,    // has sockets that it must not have
  breach_unix = 1u << 10,       // has a socket with a path
  breach_outside = 1u << 11,    // has a route that leads out of its own network
  breach_loopback = 1u << 12,   // has no working network of its own
};

// What one trial does and finds. The child writes it through the memory it shares; what only looks
// like shared memory (an emulator's fork) leaves `finished` false, and nothing is believed.
struct Trial {
  const SandboxPlan* plan = nullptr;
  Network network = Network::host;
  bool unix_sockets = false;
  int host = 0;                    // this program's process id
  const void* abstract = nullptr;  // the address of an abstract socket that listens here, or null
  unsigned abstract_size = 0;
  volatile ConfineStep step = ConfineStep::namespaces;
  volatile long error = 0;  // of that step: 0 or a negative errno
  volatile unsigned breaches = 0;
  volatile bool finished = false;
};

CODEEXEC_IN_CHILD bool refused(long result) {
  return result == -EACCES || result == -EPERM || result == -EROFS;
}

CODEEXEC_IN_CHILD unsigned try_files() {
  // Everybody may list it, and write to the name of the own process.
  constexpr const char* directory = "/";
  constexpr const char* file = "/proc/self/comm";
  constexpr const char* made = "/.codeexec-trial";
  unsigned breaches = 0;
  const long listed = raw(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (!refused(listed)) breaches |= breach_read;
  if (listed >= 0) raw(SYS_close, listed);
  const long written = raw(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CLOEXEC, 0);
  if (!refused(written)) breaches |= breach_write;
  if (written >= 0) raw(SYS_close, written);
  const long directory_made = raw(SYS_mkdirat, AT_FDCWD, made, 0700);
  if (directory_made >= 0) raw(SYS_unlinkat, AT_FDCWD, made, AT_REMOVEDIR);
  if (!refused(directory_made)) breaches |= breach_create;
  const long emptied = raw(SYS_openat, AT_FDCWD, file, O_RDONLY | O_TRUNC | O_CLOEXEC, 0);
  if (emptied >= 0) raw(SYS_close, emptied);
  if (!refused(emptied) || !refused(raw(SYS_truncate, file, 0))) breaches |= breach_truncate;
  return breaches;
}

CODEEXEC_IN_CHILD bool can_make_socket(int family, int type) {
  const long fd = raw(SYS_socket, family, type | SOCK_CLOEXEC, 0);
  if (fd >= 0) raw(SYS_close, fd);
  return fd >= 0;
}

CODEEXEC_IN_CHILD bool can_connect_to_abstract(const Trial& trial) {
  const long fd = raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const long connected = raw(SYS_connect, fd, trial.abstract, trial.abstract_size);
  raw(SYS_close, fd);
  return connected >= 0 || connected == -EAGAIN;
}

CODEEXEC_IN_CHILD void set_address(sockaddr_in& address, std::uint32_t host, unsigned port) {
  auto* bytes = reinterpret_cast<volatile unsigned char*>(&address);
  for (std::size_t i = 0; i < sizeof address; ++i) bytes[i] = 0;
  address.sin_family = AF_INET;
  for (int i = 0; i < 4; ++i)
    bytes[offsetof(sockaddr_in, sin_addr) + static_cast<unsigned>(i)] =
        static_cast<unsigned char>(host >> (24 - 8 * i));
  bytes[offsetof(sockaddr_in, sin_port)] = static_cast<unsigned char>(port >> 8);
  bytes[offsetof(sockaddr_in, sin_port) + 1] = static_cast<unsigned char>(port);
}

// A connection from the own network to itself.
CODEEXEC_IN_CHILD bool loopback_works() {
  constexpr std::uint32_t own = 0x7f000001;
  const long server = raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const long client = raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address;
  set_address(address, own, 0);
  socklen_t size = sizeof address;
  const bool works =
      server >= 0 && client >= 0 && raw(SYS_bind, server, &address, sizeof address) == 0 &&
      raw(SYS_listen, server, 1) == 0 && raw(SYS_getsockname, server, &address, &size) == 0 &&
      raw(SYS_connect, client, &address, sizeof address) == 0;
  if (client >= 0) raw(SYS_close, client);
  if (server >= 0) raw(SYS_close, server);
  return works;
}

// Whether there is a route to the world. Connecting a datagram socket sends nothing.
CODEEXEC_IN_CHILD bool has_way_out() {
  constexpr std::uint32_t documentation = 0xc0000201;  // 192.0.2.1, which nobody has
  const long fd = raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address;
  set_address(address, documentation, 9);
  const long connected = raw(SYS_connect, fd, &address, sizeof address);
  raw(SYS_close, fd);
  return connected >= 0;
}

CODEEXEC_IN_CHILD unsigned try_network(const Trial& trial) {
  unsigned breaches = 0;
  if (trial.abstract && can_connect_to_abstract(trial)) breaches |= breach_abstract;
  if (trial.network == Network::host) return breaches;
  if (!trial.unix_sockets &&
      (can_make_socket(AF_UNIX, SOCK_STREAM) || can_make_socket(AF_UNIX, SOCK_DGRAM)))
    breaches |= breach_unix;
  if (trial.network == Network::loopback) {
    if (!loopback_works()) breaches |= breach_loopback;
    if (has_way_out()) breaches |= breach_outside;
    return breaches;
  }
  for (const int family : {AF_INET, AF_INET6})
    for (const int type : {SOCK_STREAM, SOCK_DGRAM})
      if (can_make_socket(family, type)) breaches |= breach_internet;
  if (can_make_socket(AF_NETLINK, SOCK_RAW) || can_make_socket(AF_PACKET, SOCK_RAW))
    breaches |= breach_internet;
  return breaches;
}

CODEEXEC_IN_CHILD unsigned try_privileges(const SandboxPlan& plan) {
  unsigned breaches = 0;
  if (plan.drop_capabilities) {
    const CapabilityHeader header;
    CapabilityData left[2];
    const long known = raw(SYS_capget, &header, &left[0]);
    if (known < 0) breaches |= breach_capability;
    for (const CapabilityData& word : left)
      if ((word.effective | word.permitted | word.inheritable) != 0) breaches |= breach_capability;
  }
  if (plan.no_new_privs && raw(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
    breaches |= breach_privilege;
  return breaches;
}

// Without a filter the first would say that it does not know such an operation, and the second that
// it has no arguments.
CODEEXEC_IN_CHILD bool filter_refuses() {
  return raw(SYS_keyctl, -1, 0, 0, 0, 0) == -EPERM && raw(number_of_clone3, 0, 0) == -ENOSYS;
}

CODEEXEC_IN_CHILD long apply_in_trial(Trial& trial) {
  const SandboxPlan& plan = *trial.plan;
  trial.step = ConfineStep::namespaces;
  long result = set_up_namespaces(plan);
  if (result < 0) return result;
  result = confine(plan, &trial.step);
  if (result < 0) return result;
  trial.step = ConfineStep::filter;
  return install_filter(plan);
}

CODEEXEC_IN_CHILD int trial_main(void* argument) {
  Trial& trial = *static_cast<Trial*>(argument);
  trial.error = apply_in_trial(trial);
  if (trial.error == 0) {
    const SandboxPlan& plan = *trial.plan;
    trial.step = ConfineStep::end;
    unsigned breaches = try_privileges(plan) | try_network(trial);
    if (plan.ruleset >= 0) breaches |= try_files();
    const long reached = raw(SYS_kill, trial.host, 0);
    // In a process table of its own this program does not exist.
    if (!refused(reached) && reached != -ESRCH) breaches |= breach_signal;
    if (plan.filter && !filter_refuses()) breaches |= breach_filter;
    trial.breaches = breaches;
  }
  trial.finished = true;
  for (;;) raw(SYS_exit_group, 0);
}

// Runs the trial in a child that borrows this program's memory and is waited for here. 0, or the
// negative errno with which no child could be made. Neither this program's signal handlers nor its
// other children have a part in it: the child sends no signal at its end.
long run_trial(Trial& trial) {
  alignas(16) char stack[32768];
  const SignalPause pause;
  bool cleared = false;
  const int saved = errno;
  const CloneRequest request = {
      CLONE_VFORK | trial.plan->clone_flags, trial_main, &trial, stack, sizeof stack, nullptr, 0};
  const long child = clone_process(request, cleared);
  errno = saved;
  if (child < 0) return child;
  while (raw(SYS_wait4, child, 0, __WALL, 0) == -EINTR) {
  }
  return 0;
}

// An abstract socket of this program that a trial tries to reach, with a name that the kernel
// chooses. Its size is 0 when there can be none.
struct AbstractListener {
  UniqueFd fd = UniqueFd();
  sockaddr_un address = {};
  socklen_t size = 0;

  AbstractListener() {
    fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return;
    address.sun_family = AF_UNIX;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    if (::bind(fd.get(), generic, sizeof address.sun_family) == 0 && ::listen(fd.get(), 8) == 0 &&
        ::getsockname(fd.get(), generic, &length) == 0)
      size = length;
  }
};

}  // namespace

// 1: there is a system call filter for this machine. The numbers of the calls are the machine's
// own; x32 and big-endian ARM have others.
#ifndef CODEEXEC_HAS_FILTER
#if defined(__linux__) && defined(__LP64__) && \
    (defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__)))
#define CODEEXEC_HAS_FILTER 1
#else
#define CODEEXEC_HAS_FILTER 0
#endif
#endif

#if CODEEXEC_HAS_FILTER

namespace {

// system call filter ------------------------------------------------------------------------------
//
// A program for the kernel's packet filter, which looks at each system call before it is made: its
// number and arguments, but not what an argument points to. It starts like this:
//
//   another architecture than ours    kill: i386 calls (int 0x80) have other numbers
//   a number newer than our audit     ENOSYS, as on an older kernel; so have all x32 numbers
//   all others                        a search tree over the numbers leads to the answer
//
// The kernel runs a filter for each number at the time of installing it, to remember which calls
// need no look at all. What installing costs is therefore the length of the way to each answer: the
// tree halves the numbers, not the rules.
//
// Numbers are compared as 32 bits without a sign, and so are the arguments that the kernel takes as
// an int: it ignores the upper half, and a filter that does not can be fooled with it.

// The program is built from its end, so that the targets of all jumps, which only lead forward, are
// known when a jump is added.
class FilterProgram {
 public:
  // A place in the program: how many instructions there are from it to the end.
  using Label = std::size_t;

  Label answer(std::uint32_t action) { return add(BPF_RET | BPF_K, action, 0, 0); }

  // Loads 32 bits of the seccomp_data at `offset`, then goes on at what was added last.
  Label load(std::size_t offset) {
    return add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0);
  }

  // Clears the bits that are not in `mask` in what was loaded, then goes on in the same way.
  Label mask(std::uint32_t mask) { return add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0); }

  // Compares what was loaded with `operand`. `test`: BPF_JEQ equal, BPF_JGE not less, BPF_JSET has
  // one of its bits.
  Label branch(std::uint16_t test, std::uint32_t operand, Label yes, Label no) {
    yes = within_reach(yes);
    no = within_reach(no);
    return add(static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), operand, skipping_to(yes),
               skipping_to(no));
  }

  std::vector<sock_filter> finish() const { return {reversed_.rbegin(), reversed_.rend()}; }

 private:
  // A branch skips 255 instructions at most. One less, as bringing one of its targets near moves
  // the other one away.
  Label within_reach(Label target) {
    const std::size_t skipped = reversed_.size() - target;
    if (skipped < 255) return target;
    return add(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(skipped), 0, 0);
  }

  std::uint8_t skipping_to(Label target) const {
    return static_cast<std::uint8_t>(reversed_.size() - target);
  }

  Label add(std::uint16_t code, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
    reversed_.push_back(sock_filter{code, yes, no, k});
    return reversed_.size();
  }

  std::vector<sock_filter> reversed_ = {};
};

using FilterLabel = FilterProgram::Label;

#if defined(__x86_64__)
constexpr std::uint32_t filter_architecture = AUDIT_ARCH_X86_64;
// The table of x86_64 ends with uprobe. 337 to 423 are free.
constexpr unsigned first_free_call = 337;
#else
constexpr std::uint32_t filter_architecture = AUDIT_ARCH_AARCH64;
constexpr unsigned first_free_call = 295;
#endif

// From here on the numbers are the same on all architectures. Headers as old as Linux 4.18, which
// is enough to build this, do not have them.
constexpr unsigned first_common_call = 424;
constexpr unsigned call_io_uring_setup = 425;
constexpr unsigned call_io_uring_enter = 426;
constexpr unsigned call_io_uring_register = 427;
constexpr unsigned call_open_tree = 428;
constexpr unsigned call_move_mount = 429;
constexpr unsigned call_fsopen = 430;
constexpr unsigned call_fsconfig = 431;
constexpr unsigned call_fsmount = 432;
constexpr unsigned call_fspick = 433;
constexpr unsigned call_clone3 = 435;
constexpr unsigned call_openat2 = 437;
constexpr unsigned call_pidfd_getfd = 438;
constexpr unsigned call_process_madvise = 440;
constexpr unsigned call_mount_setattr = 442;
constexpr unsigned call_quotactl_fd = 443;
constexpr unsigned call_process_mrelease = 448;
constexpr unsigned call_open_tree_attr = 467;
constexpr unsigned call_file_setattr = 469;
constexpr unsigned first_unknown_call = 470;  // Linux 6.18 has none from here on

#if defined(__x86_64__)
constexpr unsigned call_kexec_file_load = SYS_kexec_file_load;
#else
constexpr unsigned call_kexec_file_load = 294;  // Linux 5.0
#endif

// Refused with EPERM, as to a user without the right.
// The memory, descriptors and system calls of other processes.
constexpr unsigned process_calls[] = {
    SYS_ptrace,       SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
    call_pidfd_getfd, call_process_madvise, call_process_mrelease};
// These make system calls, sockets among them, that no filter sees.
constexpr unsigned ring_calls[] = {call_io_uring_setup, call_io_uring_enter,
                                   call_io_uring_register};
// Large parts of the kernel that a command does not need.
constexpr unsigned kernel_calls[] = {SYS_bpf,           SYS_perf_event_open, SYS_userfaultfd,
                                     SYS_fanotify_init, SYS_keyctl,          SYS_add_key,
                                     SYS_request_key};
// Mounts and namespaces, and files by a handle that passes by all directories.
constexpr unsigned mount_calls[] = {SYS_mount,          SYS_umount2,        SYS_pivot_root,
                                    SYS_chroot,         SYS_setns,          SYS_open_by_handle_at,
                                    call_open_tree,     call_move_mount,    call_fsopen,
                                    call_fsconfig,      call_fsmount,       call_fspick,
                                    call_mount_setattr, call_open_tree_attr};
// The machine. The kernel asks for capabilities as well, which a command does not have.
constexpr unsigned machine_calls[] = {
    SYS_init_module,  SYS_finit_module,  SYS_delete_module, SYS_kexec_load,    call_kexec_file_load,
    SYS_reboot,       SYS_swapon,        SYS_swapoff,       SYS_acct,          SYS_quotactl,
    call_quotactl_fd, SYS_settimeofday,  SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
    SYS_sethostname,  SYS_setdomainname, SYS_syslog,        SYS_vhangup,       SYS_lookup_dcookie};
#if defined(__x86_64__)
constexpr unsigned x86_calls[] = {SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS__sysctl};
#endif

// ENOSYS: programs then take an older way, which can be looked at.
// The flags of clone3 are in memory; C libraries go on with clone. file_setattr changes a file
// anywhere by its path; the ioctl that does the same needs the file opened.
constexpr unsigned absent_calls[] = {call_clone3, call_file_setattr};

// ENOSYS, as of a kernel built without them: memory, semaphores and messages that are shared with
// all of the IPC namespace. They go by numbers, or by names that are no paths: Landlock holds back
// neither shared memory nor the removal of a queue.
constexpr unsigned ipc_calls[] = {
    SYS_shmget, SYS_shmat,  SYS_shmctl, SYS_shmdt,  SYS_semget, SYS_semop,   SYS_semtimedop,
    SYS_semctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink,
};

// For clone, whose lowest byte is a signal. CLONE_NEWTIME is in that byte and cannot be asked for.
// CLONE_PARENT would make a child of the process that watches over the command.
constexpr std::uint32_t refused_clone_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                              CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                              CLONE_NEWNET | CLONE_PARENT;
// For unshare; all others make namespaces, or are not known yet.
constexpr std::uint32_t harmless_unshare_flags =
    CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;

// Families of sockets by number: old headers lack some, and only four are ever let through.
constexpr std::uint32_t family_unix = 1;
constexpr std::uint32_t family_inet = 2;
constexpr std::uint32_t family_inet6 = 10;
constexpr std::uint32_t family_netlink = 16;
constexpr std::uint32_t netlink_route = 0;
constexpr std::uint32_t socket_type_bits = 15;      // the others are SOCK_CLOEXEC and the like
constexpr std::uint32_t type_obsolete_packet = 10;  // turns AF_INET into AF_PACKET

struct FilterOptions {
  Network network = Network::host;
  // With Network::none and loopback: AF_UNIX sockets of all kinds.
  bool unix_sockets = false;
  // What there is of Landlock: 0 nothing. At 1 and 2 the filter keeps files from being truncated,
  // below 6 from the one signal that goes to everybody.
  int landlock_abi = 0;
  // The command has a namespace of its own for System V IPC and POSIX message queues.
  bool own_ipc = false;
  // The command has a process table of its own.
  bool own_processes = false;
};

// Builds one filter: the answers, the looks at arguments, and the tree that leads to them.
class FilterBuilder {
 public:
  explicit FilterBuilder(const FilterOptions& options) : options_(options) {}

  std::vector<sock_filter> build() {
    answers_.fill(allow_);
    answer_all(process_calls, not_permitted_);
    answer_all(ring_calls, not_permitted_);
    answer_all(kernel_calls, not_permitted_);
    answer_all(mount_calls, not_permitted_);
    answer_all(machine_calls, not_permitted_);
#if defined(__x86_64__)
    answer_all(x86_calls, not_permitted_);
#endif
    answer_all(absent_calls, absent_);
    if (!options_.own_ipc) answer_all(ipc_calls, absent_);
    const auto first = answers_.begin();
    std::fill(first + first_free_call, first + first_common_call, absent_);
    answers_[first_unknown_call] = absent_;
    // For debuggers, strace and the leak check of the sanitizers, where something else keeps them
    // to the command's own processes.
    if (options_.landlock_abi > 0 || options_.own_processes) answers_[SYS_ptrace] = allow_;
    answers_[SYS_unshare] = look_at_unshare();
    answers_[SYS_clone] = look_at_clone();
    answers_[SYS_ioctl] = look_at_ioctl();
    answers_[SYS_socket] = look_at_socket();
    answers_[SYS_socketpair] = look_at_socketpair();
    if (!options_.own_processes) answers_[SYS_prlimit64] = look_at_prlimit();
    if (!options_.own_processes && options_.landlock_abi < 6) answers_[SYS_kill] = look_at_kill();
    if (options_.landlock_abi == 1 || options_.landlock_abi == 2) keep_files_from_truncation();

    tree(0, answers_.size());
    const FilterLabel native = program_.load(offsetof(seccomp_data, nr));
    program_.branch(BPF_JEQ, filter_architecture, native, killed_);
    program_.load(offsetof(seccomp_data, arch));
    return program_.finish();
  }

 private:
  template <std::size_t N>
  void answer_all(const unsigned (&calls)[N], FilterLabel answer) {
    for (const unsigned call : calls) answers_[call] = answer;
  }

  // The lower half of an argument, which is all of it where the kernel takes an int.
  FilterLabel load_argument(std::size_t index) {
    return program_.load(offsetof(seccomp_data, args) + 8 * index);
  }
  FilterLabel load_upper_half(std::size_t index) {
    return program_.load(offsetof(seccomp_data, args) + 8 * index + 4);
  }

  FilterLabel look_at_unshare() {
    program_.branch(BPF_JSET, ~harmless_unshare_flags, not_permitted_, allow_);
    const FilterLabel lower = load_argument(0);
    program_.branch(BPF_JEQ, 0, lower, not_permitted_);
    return load_upper_half(0);
  }

  FilterLabel look_at_clone() {
    program_.branch(BPF_JSET, refused_clone_flags, not_permitted_, allow_);
    return load_argument(0);
  }

  // TIOCSTI and TIOCLINUX type into a terminal; TIOCSETD puts network drivers on it.
  FilterLabel look_at_ioctl() {
    FilterLabel next = program_.branch(BPF_JEQ, TIOCSETD, not_permitted_, allow_);
    next = program_.branch(BPF_JEQ, TIOCLINUX, not_permitted_, next);
    next = program_.branch(BPF_JEQ, TIOCSTI, not_permitted_, next);
    return load_argument(1);
  }

  // Nothing else needs a look: where no socket can be made there is none to connect, to bind or to
  // send with. Refusing those as well breaks programs that use pairs of connected sockets.
  FilterLabel look_at_socket() {
    const bool unix_sockets = options_.network == Network::host || options_.unix_sockets;
    if (options_.network == Network::none && !unix_sockets) return no_socket();

    FilterLabel next = no_socket();
    if (unix_sockets) next = program_.branch(BPF_JEQ, family_unix, allow_, next);
    if (options_.network != Network::none) {
      const FilterLabel inet = look_at_packet_type();
      const FilterLabel netlink =
          options_.network == Network::host ? allow_ : look_at_netlink_protocol();
      next = program_.branch(BPF_JEQ, family_netlink, netlink, next);
      next = program_.branch(BPF_JEQ, family_inet6, allow_, next);
      next = program_.branch(BPF_JEQ, family_inet, inet, next);
    }
    return load_argument(0);
  }

  FilterLabel look_at_packet_type() {
    program_.branch(BPF_JEQ, type_obsolete_packet, no_socket(), allow_);
    program_.mask(socket_type_bits);
    return load_argument(1);
  }

  // Names and addresses of the interfaces, for getifaddrs().
  FilterLabel look_at_netlink_protocol() {
    program_.branch(BPF_JEQ, netlink_route, allow_, no_socket());
    return load_argument(2);
  }

  // A pair of datagram sockets can send to every socket that has a path; other pairs cannot.
  FilterLabel look_at_socketpair() {
    FilterLabel pair = allow_;
    if (options_.network != Network::host && !options_.unix_sockets) {
      pair = program_.branch(BPF_JEQ, SOCK_SEQPACKET, allow_, no_socket());
      program_.branch(BPF_JEQ, SOCK_STREAM, allow_, pair);
      program_.mask(socket_type_bits);
      pair = load_argument(1);
    }
    program_.branch(BPF_JEQ, family_unix, pair, no_socket());
    return load_argument(0);
  }

  // With the network of the host what a kernel without that family says, else a refusal that name
  // resolution gives up at soon.
  FilterLabel no_socket() const {
    return options_.network == Network::host ? no_family_ : no_access_;
  }

  // A limit on the CPU time of another process kills it. Reading the limits of others, and setting
  // one's own, is what programs do.
  FilterLabel look_at_prlimit() {
    program_.branch(BPF_JEQ, 0, allow_, not_permitted_);
    const FilterLabel upper = load_upper_half(2);
    program_.branch(BPF_JEQ, 0, upper, not_permitted_);
    const FilterLabel new_limit = load_argument(2);
    program_.branch(BPF_JEQ, 0, allow_, new_limit);
    return load_argument(0);
  }

  // `kill -9 -1` ends all that the user runs.
  FilterLabel look_at_kill() {
    program_.branch(BPF_JEQ, static_cast<std::uint32_t>(-1), not_permitted_, allow_);
    return load_argument(0);
  }

  // Below ABI 3 Landlock asks for no right to write when a file is truncated without being opened
  // for writing.
  void keep_files_from_truncation() {
    answers_[SYS_truncate] = no_access_;
    answers_[call_openat2] = absent_;  // its flags are in memory
    answers_[SYS_openat] = look_at_open_flags(2);
#if defined(__x86_64__)
    answers_[SYS_open] = look_at_open_flags(1);
#endif
  }

  // O_TRUNC only together with O_WRONLY or O_RDWR. The fourth access mode, 3, truncates as well and
  // opens for neither.
  FilterLabel look_at_open_flags(std::size_t index) {
    constexpr std::uint32_t access_mode_bits = 3;
    const FilterLabel read_write = program_.branch(BPF_JEQ, O_RDWR, allow_, no_access_);
    program_.branch(BPF_JEQ, O_WRONLY, allow_, read_write);
    const FilterLabel truncating = program_.mask(access_mode_bits);
    program_.branch(BPF_JSET, O_TRUNC, truncating, allow_);
    return load_argument(index);
  }

  // Leads to the answers of the calls from `first` to before `last`. Splits where the answer
  // changes next to the middle.
  FilterLabel tree(std::size_t first, std::size_t last) {
    std::size_t split = first;  // none
    std::size_t larger_part = last - first;
    for (std::size_t call = first + 1; call < last; ++call) {
      const std::size_t larger = std::max(call - first, last - call);
      if (answers_[call] == answers_[call - 1] || larger >= larger_part) continue;
      split = call;
      larger_part = larger;
    }
    if (split == first) return answers_[first];
    const FilterLabel below = tree(first, split);
    const FilterLabel above = tree(split, last);
    return program_.branch(BPF_JGE, static_cast<std::uint32_t>(split), above, below);
  }

  FilterOptions options_;
  FilterProgram program_ = {};
  FilterLabel allow_ = program_.answer(SECCOMP_RET_ALLOW);
  FilterLabel not_permitted_ = program_.answer(SECCOMP_RET_ERRNO | EPERM);
  FilterLabel absent_ = program_.answer(SECCOMP_RET_ERRNO | ENOSYS);
  FilterLabel no_access_ = program_.answer(SECCOMP_RET_ERRNO | EACCES);
  FilterLabel no_family_ = program_.answer(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  FilterLabel killed_ = program_.answer(SECCOMP_RET_KILL_PROCESS);
  // By number; the last one stands for all numbers that are not known.
  std::array<FilterLabel, first_unknown_call + 1> answers_ = {};
};

// Any thread may install it, after no_new_privs: it holds nothing but numbers.
std::vector<sock_filter> build_filter(const FilterOptions& options) {
  return FilterBuilder(options).build();
}

}  // namespace

#endif  // CODEEXEC_HAS_FILTER

namespace {

// Grants ------------------------------------------------------------------------------------------

struct OpenedGrant {
  UniqueFd fd = UniqueFd();  // O_PATH
  std::string path = {};     // without links
  struct stat status = {};
};

// No command can have put a link into `/`, nor into a directory that this process cannot change.
bool link_is_trusted(const UniqueFd& directory, const std::string& path) {
  return path.empty() || ::faccessat(directory.get(), ".", W_OK, AT_EACCESS) != 0;
}

// Opens a path name by name, so that no link is followed but those that may be, whatever anybody
// does to the path meanwhile. `may_follow` gets the directory that a link lies in, and its path.
Expected<OpenedGrant> open_by_name(
    const std::string& path, FunctionRef<bool(const UniqueFd&, const std::string&)> may_follow) {
  constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  constexpr int most_links_followed = 40;
  const std::string subject = concat({"grants: ", quoted(path)});
  OpenedGrant grant;
  grant.fd.reset(::open("/", flags));
  if (!grant.fd || ::fstat(grant.fd.get(), &grant.status) != 0) return system_error(errno, subject);
  std::string todo = path;
  std::size_t at = 0;
  int links = 0;
  while (at < todo.size()) {
    const std::size_t end = std::min(todo.find('/', at), todo.size());
    const std::string part = todo.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    UniqueFd next(::openat(grant.fd.get(), part.c_str(), flags));
    if (!next || ::fstat(next.get(), &grant.status) != 0) return system_error(errno, subject);
    if (!S_ISLNK(grant.status.st_mode)) {
      grant.fd = std::move(next);
      if (part != "..") {
        grant.path += '/';
        grant.path += part;
      } else if (!grant.path.empty()) {
        grant.path.resize(grant.path.rfind('/'));
      }
      continue;
    }
    const std::string link = concat({grant.path, "/", part});
    if (!may_follow(grant.fd, grant.path))
      return make_error(ErrorCode::permission_denied,
                        concat({subject, " leads through the symbolic link ", quoted(link),
                                "; name the real directory"}));
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(next.get(), "", target, sizeof target);
    if (size < 0) return system_error(errno, subject);
    if (++links > most_links_followed) return system_error(ELOOP, subject);
    const std::string rest = at < todo.size() ? todo.substr(at) : std::string();
    todo = concat({{target, static_cast<std::size_t>(size)}, "/", rest});
    at = 0;
    if (target[0] != '/') continue;
    grant.fd.reset(::open("/", flags));
    if (!grant.fd || ::fstat(grant.fd.get(), &grant.status) != 0)
      return system_error(errno, subject);
    grant.path.clear();
  }
  if (grant.path.empty()) grant.path = "/";
  return grant;
}

Expected<OpenedGrant> open_grant(const std::string& path) {
  return open_by_name(path, [](const UniqueFd& directory, const std::string& lies_in) {
    return link_is_trusted(directory, lies_in);
  });
}

// What a system consists of: who may write to one of these owns it. Directories below them, like a
// workspace in /var/lib, are not meant.
constexpr std::string_view system_directories[] = {
    "/bin",       "/boot",    "/dev",       "/etc",           "/lib",           "/lib32",
    "/lib64",     "/libx32",  "/proc",      "/run",           "/sbin",          "/sys",
    "/usr/bin",   "/usr/lib", "/usr/lib64", "/usr/local/bin", "/usr/local/lib", "/usr/sbin",
    "/var/cache", "/var/lib", "/var/log",   "/var/run",       "/var/spool",     "/nix/store"};

// Why a directory may not be written to by any command, or null.
const char* objection_to_writing(const OpenedGrant& grant) {
  for (const std::string_view directory : system_directories)
    if (codeexec::is_within(directory, grant.path))
      return "is a directory of the system, or above one";
  for (const std::string_view directory : {"/proc", "/sys", "/dev", "/boot"})
    if (codeexec::is_within(grant.path, directory) && !starts_with(grant.path, "/dev/shm/"))
      return "belongs to the system";
  if (!S_ISDIR(grant.status.st_mode) && !S_ISREG(grant.status.st_mode))
    return "is neither a directory nor a regular file";
  return nullptr;
}

// The ruleset -------------------------------------------------------------------------------------

// What each ABI of Landlock can forbid; of newer ones than the last only that.
constexpr std::uint64_t rights_of_abi[] = {0,      0x1fff, 0x3fff, 0x7fff, 0x7fff,
                                           0xffff, 0xffff, 0xffff, 0xffff, 0x1ffff};
constexpr int newest_known_abi = 9;

constexpr int rename_abi = 2;
constexpr int truncate_abi = 3;
constexpr int tcp_abi = 4;
constexpr int ioctl_abi = 5;
constexpr int scope_abi = 6;

// A ruleset while it is built.
class Ruleset {
 public:
  // False and errno: there is none.
  bool create(int abi, const SandboxOptions& options) {
    const int known = std::min(abi, newest_known_abi);
    attributes_.handled_fs = rights_of_abi[known];
    // Sockets with a path are the user's to allow, and belong to the network otherwise.
    if (options.network == Network::host || options.unix_sockets)
      attributes_.handled_fs &= ~right_resolve_unix;
    size_ = sizeof attributes_.handled_fs;
    if (known >= tcp_abi) {
      constexpr std::uint64_t bind_and_connect = 3;
      size_ += sizeof attributes_.handled_net;
      if (options.network == Network::none) attributes_.handled_net = bind_and_connect;
    }
    if (known >= scope_abi) {
      constexpr std::uint64_t abstract_sockets_and_signals = 3;
      size_ += sizeof attributes_.scoped;
      attributes_.scoped = abstract_sockets_and_signals;
    }
    const long fd = ::syscall(number_of_landlock_create_ruleset, &attributes_, size_, 0);
    fd_.reset(above_child_descriptors(static_cast<int>(fd)));
    return static_cast<bool>(fd_);
  }

  // Keep the files of all rules open, for a second ruleset.
  void keep_files() { keep_ = true; }

  // False and errno when there can be no such rule.
  bool add(UniqueFd file, mode_t mode, std::uint64_t rights) {
    if (!S_ISDIR(mode)) rights &= file_rights;
    LandlockRule rule;
    rule.rights = rights & attributes_.handled_fs;
    rule.fd = file.get();
    // The kernel refuses a rule without rights, which says nothing anyway.
    if (rule.rights == 0) return true;
    if (::syscall(number_of_landlock_add_rule, fd_.get(), rule_path_beneath, &rule, 0) != 0) {
      error_ = errno;
      return false;
    }
    if (keep_) {
      rules.push_back(rule);
      files.push_back(std::move(file));
    }
    return true;
  }

  // The file that a path leads to, but not through a link at its end when `flags` is O_NOFOLLOW;
  // what is missing needs no rule.
  void add_path(const std::string& path, std::uint64_t rights, int flags = 0) {
    UniqueFd file(above_standard_streams(::open(path.c_str(), O_PATH | O_CLOEXEC | flags)));
    struct stat status {};
    if (file && ::fstat(file.get(), &status) == 0 && !S_ISLNK(status.st_mode))
      add(std::move(file), status.st_mode, rights);
  }

  // The errno of the last rule that there could not be, or 0.
  int error() const { return error_; }
  UniqueFd take() { return std::move(fd_); }
  const LandlockAttributes& attributes() const { return attributes_; }
  std::size_t size() const { return size_; }

  std::vector<LandlockRule> rules = {};
  std::vector<UniqueFd> files = {};

 private:
  UniqueFd fd_ = UniqueFd();
  LandlockAttributes attributes_ = {};
  std::size_t size_ = 0;
  int error_ = 0;
  bool keep_ = false;
};

// The names in a directory, at most as many as are worth looking at.
std::vector<std::string> names_in(const std::string& path) {
  constexpr std::size_t most_names = 10000;
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view entry_name = entry->d_name;
    if (entry_name == "." || entry_name == "..") continue;
    names.emplace_back(entry_name);
    if (names.size() == most_names) break;
  }
  ::closedir(directory);
  return names;
}

// What a path leads to, without links; empty when it cannot be learned.
std::string real_path_of(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) ? std::string(buffer) : std::string();
}

template <class Names>
bool is_one_of(std::string_view text, const Names& names) {
  return std::find(std::begin(names), std::end(names), text) != std::end(names);
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// Directories that keep passwords and keys, in a home or wherever else they are.
bool is_secret_directory(std::string_view name) {
  constexpr std::string_view secrets[] = {
      ".ssh",    ".aws",     ".gnupg",    ".kube",        ".docker", ".azure",
      ".gcloud", ".mozilla", ".pki",      ".thunderbird", ".git",    ".password-store",
      ".config", ".local",   ".keyrings", ".cache",       ".vault",  ".terraform.d"};
  return is_one_of(name, secrets);
}

// A home directory, or one that holds homes.
bool holds_a_home(const std::string& path, const std::string& home) {
  if (codeexec::is_within("/root", path) || (!home.empty() && codeexec::is_within(home, path)))
    return true;
  for (const std::string_view homes : {"/home", "/Users"})
    if (codeexec::is_within(homes, path) ||
        (codeexec::is_within(path, homes) && path.size() > homes.size() &&
         path.find('/', homes.size() + 1) == std::string::npos))
      return true;
  for (const char* entry : {"/.ssh", "/.profile", "/.bashrc", "/.bash_history"})
    if (::access((path + entry).c_str(), F_OK) == 0) return true;
  return false;
}

// The user's home without links, or "".
std::string own_home() {
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? real_path_of(home) : std::string();
}

// A program by what it begins with. A mode says less: a command may change it.
bool is_program_file(const std::string& path) {
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd file(above_standard_streams(::open(path.c_str(), flags)));
  char bytes[4] = {};
  if (!file || ::read(file.get(), bytes, sizeof bytes) < 2) return false;
  const std::string_view beginning(bytes, sizeof bytes);
  return starts_with(beginning, "#!") || beginning == "\177ELF";
}

// Adds directories of tools without what looks like a secret: at once where nothing in them does,
// entry by entry elsewhere. Installed trees are large, so all looking is within a budget. What it
// does not reach is granted in the parts that installers fill, and left out elsewhere.
class TreeGrants {
 public:
  explicit TreeGrants(Ruleset& ruleset) : ruleset_(ruleset) {}

  // Whether it has been added, or lies in what has.
  bool covers(std::string_view path) const {
    return std::any_of(done_.begin(), done_.end(),
                       [&](const std::string& root) { return codeexec::is_within(path, root); });
  }

  void add_directory(const std::string& path) { add(path, 0); }

  // What a directory holds. `of_system`: what is root's and too large to be looked at is no secret.
  void add_entries(const std::string& directory, bool of_system = false) {
    of_system_ = of_system;
    for (const std::string& entry : names_in(directory)) add_entry(directory, entry, 0);
    of_system_ = false;
  }

  void add_entry(const std::string& directory, const std::string& entry, int depth = 0) {
    const std::string path = concat({directory, "/", entry});
    if (covers(path) || rules_left_ == 0) return;
    struct stat parent {};
    struct stat status {};
    if (::lstat(directory.c_str(), &parent) != 0 || ::lstat(path.c_str(), &status) != 0 ||
        is_secret(path, entry, status, parent, depth))
      return;
    if (S_ISDIR(status.st_mode))
      add(path, depth);
    else if (S_ISREG(status.st_mode))
      add_rule(path, readable_rights);
  }

  void add_rule(const std::string& path, std::uint64_t rights) {
    if (rules_left_ == 0 || covers(path)) return;
    --rules_left_;
    ruleset_.add_path(path, rights, O_NOFOLLOW);
    done_.push_back(path);
  }

 private:
  enum class Finding { nothing, secret, unknown };

  // What installers fill. Only the first level of these is looked at: the umask of who installed
  // it may hide all files of a library, and it would not work without them.
  static bool is_installed_part(std::string_view name) {
    constexpr std::string_view parts[] = {
        "bin",   "sbin",       "shims",    "lib",        "lib64",        "libexec",  "include",
        "share", "man",        "versions", "toolchains", "plugins",      "installs", "pkgs",
        "envs",  "candidates", "registry", "pkg",        "node_modules", "modules",  "jmods"};
    return is_one_of(name, parts);
  }

  static std::string_view last_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
  }

  void add(const std::string& path, int depth) {
    if (covers(path)) return;
    const bool installed = is_installed_part(last_name(path));
    std::size_t budget = std::min(budget_, most_of_one);
    const std::size_t before = budget;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
    const Finding finding = look_into(path, status, depth, budget);
    budget_ -= before - budget;
    const bool trusted = installed || (of_system_ && status.st_uid == 0);
    if (finding == Finding::nothing || (finding == Finding::unknown && trusted)) {
      add_rule(path, readable_rights);
    } else if (depth < deepest) {
      for (const std::string& entry : names_in(path)) add_entry(path, entry, depth + 1);
    }
  }

  Finding look_into(const std::string& directory, const struct stat& status, int depth,
                    std::size_t& budget) {
    if (depth > deepest) return Finding::unknown;
    const bool installed = is_installed_part(last_name(directory));
    std::vector<std::pair<std::string, struct stat>> below;
    for (const std::string& entry : names_in(directory)) {
      if (budget == 0) return Finding::unknown;
      --budget;
      const std::string path = concat({directory, "/", entry});
      struct stat found {};
      if (::lstat(path.c_str(), &found) != 0) return Finding::unknown;
      if (is_secret(path, entry, found, status, depth + 1)) return Finding::secret;
      if (!installed && S_ISDIR(found.st_mode)) below.emplace_back(path, found);
    }
    // Near ones first: what is at hand is what an owner put there.
    Finding worst = Finding::nothing;
    for (const auto& next : below) {
      const Finding finding = look_into(next.first, next.second, depth + 1, budget);
      if (finding == Finding::secret) return finding;
      if (finding == Finding::unknown) worst = finding;
    }
    return worst;
  }

  // By its name, or because its owner shows it to fewer than what it lies in.
  static bool is_secret(const std::string& path, const std::string& entry,
                        const struct stat& status, const struct stat& parent, int depth) {
    // What a link leads to is judged by its own rules.
    if (S_ISLNK(status.st_mode)) return false;
    const bool regular = S_ISREG(status.st_mode);
    const bool directory = S_ISDIR(status.st_mode);
    if (!regular && !directory) return true;
    const bool hidden = directory
                            ? (status.st_mode & S_IXOTH) == 0 && (parent.st_mode & S_IXOTH) != 0
                            : (status.st_mode & S_IROTH) == 0;
    if (!hidden && !has_secret_name(in_lower_case(entry), directory, depth)) return false;
    return !regular || (status.st_mode & S_IXUSR) == 0 || !is_program_file(path);
  }

  static bool has_secret_name(const std::string& name, bool directory, int depth) {
    if (directory && is_secret_directory(name)) return true;
    constexpr std::string_view wholes[] = {
        ".npmrc",    ".pypirc",     ".netrc",    "_netrc",           ".pgpass",
        ".my.cnf",   ".htpasswd",   ".env",      "config.json",      "config.yml",
        "auth.json", "config.yaml", "hosts.yml", ".git-credentials", ".yarnrc.yml"};
    if (starts_with(name, ".env.") || starts_with(name, "credentials")) return true;
    if (starts_with(name, "id_") && name.find('.') == std::string::npos) return true;
    if (ends_with(name, ".key") || ends_with(name, ".p12") || ends_with(name, ".pfx")) return true;
    // But not the certificates of the world's authorities.
    if (ends_with(name, ".pem") && name.find("cert") == std::string::npos &&
        !starts_with(name, "ca"))
      return true;
    if (is_one_of(name, wholes) && (depth <= 1 || name[0] == '.')) return true;
    // Parts of names say something of what lies beside tools; deeper ones are source files.
    if (depth > 1) return false;
    for (const char* part : {"credential", "secret", "token", "passw", "pgpass", "keystore",
                             "netrc", "npmrc", "pypirc", "history", "private"})
      if (name.find(part) != std::string::npos) return true;
    return false;
  }

  static constexpr int deepest = 3;
  static constexpr std::size_t most_of_one = 500;
  Ruleset& ruleset_;
  std::vector<std::string> done_ = {};
  std::size_t budget_ = 2000;      // entries that are looked at
  std::size_t rules_left_ = 1000;  // each costs every command
  bool of_system_ = false;
};

// Adds what commands need of the system: programs, their settings, harmless devices.
class SystemGrants {
 public:
  SystemGrants(Ruleset& ruleset, TreeGrants& trees) : ruleset_(ruleset), trees_(trees) {}

  void add(const SandboxOptions& options) {
    for (const std::string_view path : readable_system)
      ruleset_.add_path(std::string(path), readable_rights);
    // Names only; rules reach down.
    ruleset_.add_path("/etc", right_read_dir);
    add_settings("/etc", 0);
    ruleset_.add_path("/opt", right_read_dir);
    trees_.add_entries("/opt", true);
    for (const char* device : {"null", "zero", "full", "random", "urandom", "tty"})
      ruleset_.add_path(concat({"/dev/", device}), device_rights);
    if (options.terminals) {
      ruleset_.add_path("/dev/ptmx", device_rights);
      ruleset_.add_path("/dev/pts", device_rights | right_read_dir);
    }
    if (options.shared_memory) ruleset_.add_path("/dev/shm", writable_rights);
  }

  static bool covers(std::string_view path) {
    return std::any_of(std::begin(readable_system), std::end(readable_system),
                       [&](std::string_view root) { return codeexec::is_within(path, root); });
  }

 private:
  static constexpr std::string_view readable_system[] = {"/usr",
                                                         "/bin",
                                                         "/sbin",
                                                         "/lib",
                                                         "/lib32",
                                                         "/lib64",
                                                         "/libx32",
                                                         "/nix/store",
                                                         "/run/current-system",
                                                         "/proc",
                                                         "/sys/devices/system/cpu",
                                                         "/sys/devices/system/node",
                                                         "/sys/fs/cgroup",
                                                         "/sys/kernel/mm/transparent_hugepage"};

  // Kept from commands whatever their mode is. A command of root's owns them even without
  // capabilities, and a member of a group may read what others may not.
  static bool is_secret(std::string_view entry) {
    constexpr std::string_view secrets[] = {"shadow",         "shadow-",      "gshadow",
                                            "gshadow-",       "sudoers",      "sudoers.d",
                                            "private",        "docker",       "kubernetes",
                                            "rancher",        "wireguard",    "openvpn",
                                            "ipsec.d",        "ppp",          "letsencrypt",
                                            "NetworkManager", "credstore",    "credstore.encrypted",
                                            "machine-id",     "vault.d",      "opasswd",
                                            "krb5.keytab",    "netrc",        "polkit-1",
                                            "swanctl",        "ipsec.secrets"};
    return std::find(std::begin(secrets), std::end(secrets), entry) != std::end(secrets);
  }

  // What its owner does not show to everybody is a secret, too.
  static bool is_public(const struct stat& status) {
    const mode_t needed = S_ISDIR(status.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    return (status.st_mode & needed) == needed;
  }

  // Entry by entry where there is a secret in a directory, at once where there is none.
  void add_settings(const std::string& directory, int depth) {
    for (const std::string& entry : names_in(directory)) {
      if (is_secret(entry)) continue;
      const std::string path = concat({directory, "/", entry});
      struct stat status {};
      if (::lstat(path.c_str(), &status) != 0) continue;
      if (S_ISLNK(status.st_mode)) {
        add_link(path);
      } else if (S_ISDIR(status.st_mode)) {
        if (!is_public(status)) continue;
        if (is_public_tree(path, depth + 1))
          ruleset_.add_path(path, readable_rights);
        else if (depth < deepest)
          add_settings(path, depth + 1);
      } else if (S_ISREG(status.st_mode) && is_public(status)) {
        ruleset_.add_path(path, readable_rights);
      }
    }
  }

  // Settings that are kept elsewhere: /etc/resolv.conf in /run. A file only.
  void add_link(const std::string& path) {
    const std::string target = real_path_of(path);
    struct stat status {};
    if (target.empty() || codeexec::is_within(target, "/etc") || covers(target) ||
        !(codeexec::is_within(target, "/run") || codeexec::is_within(target, "/var/lib")))
      return;
    if (::lstat(target.c_str(), &status) == 0 && S_ISREG(status.st_mode) && is_public(status))
      ruleset_.add_path(target, right_read_file);
  }

  bool is_public_tree(const std::string& directory, int depth) {
    if (depth > deepest) return false;
    for (const std::string& entry : names_in(directory)) {
      struct stat status {};
      const std::string path = concat({directory, "/", entry});
      if (budget_ == 0 || is_secret(entry) || ::lstat(path.c_str(), &status) != 0) return false;
      --budget_;
      // What a link leads to is judged by its own rules.
      if (S_ISLNK(status.st_mode)) continue;
      if (!is_public(status)) return false;
      if (S_ISDIR(status.st_mode) && !is_public_tree(path, depth + 1)) return false;
    }
    return true;
  }

  static constexpr int deepest = 6;
  Ruleset& ruleset_;
  TreeGrants& trees_;
  std::size_t budget_ = 20000;  // entries that are looked at
};

// Adds the directories of PATH that lie outside of the system, and what their programs need.
//
// A link on the way to one may have been planted: never one in a directory that commands may write
// to is followed. What commands of another policy could write to cannot be known, so whatever a
// link leads to has to look like a tool itself, by its place and by what is in it.
class ToolGrants {
 public:
  ToolGrants(Ruleset& ruleset, TreeGrants& trees, const std::vector<SandboxGrant>& grants,
             std::vector<std::string> writable)
      : ruleset_(ruleset), trees_(trees), grants_(grants), writable_(std::move(writable)) {}

  void add(std::string_view search_path) {
    while (!search_path.empty()) {
      const std::size_t end = std::min(search_path.find(':'), search_path.size());
      const std::string_view directory = search_path.substr(0, end);
      search_path.remove_prefix(std::min(end + 1, search_path.size()));
      if (starts_with(directory, "/") && !is_granted(directory)) add_directory(directory);
    }
  }

 private:
  struct Place {
    std::string path = {};  // without links; empty: it leads nowhere, or through a planted link
    bool linked = false;    // by somebody who may be anybody
  };

  Place place_of(const std::string& path) const {
    Place place;
    const auto found =
        open_by_name(path, [&](const UniqueFd& directory, const std::string& lies_in) {
          if (!link_is_trusted(directory, lies_in)) place.linked = true;
          return std::none_of(writable_.begin(), writable_.end(), [&](const std::string& root) {
            return codeexec::is_within(lies_in, root);
          });
        });
    if (found) place.path = found->path;
    return place;
  }

  void add_directory(std::string_view given) {
    const Place place = place_of(std::string(given));
    const std::string& path = place.path;
    if (path.empty() || is_known(path) || is_never_granted(path)) return;
    if (place.linked && !(is_bin(path) && lies_among_tools(path))) return;
    add_tools(path, place.linked);
    add_targets(path);
  }

  bool is_granted(std::string_view path) const {
    return std::any_of(grants_.begin(), grants_.end(), [&](const SandboxGrant& grant) {
      return codeexec::is_within(path, grant.path);
    });
  }
  bool is_known(const std::string& path) const {
    return SystemGrants::covers(path) || is_granted(path) || trees_.covers(path);
  }

  // Whatever PATH says: a home directory, a directory of the system, or one above it; what holds
  // secrets, or what everybody puts there.
  bool is_never_granted(const std::string& path) const {
    for (const std::string_view directory : system_directories)
      if (codeexec::is_within(directory, path)) return true;
    for (const std::string_view directory : {"/etc", "/proc", "/sys", "/dev", "/boot"})
      if (codeexec::is_within(path, directory)) return true;
    if (holds_a_home(path, home_) || is_secret_directory(path.substr(path.rfind('/') + 1)))
      return true;
    struct stat status {};
    return ::lstat(path.c_str(), &status) != 0 ||
           (S_ISDIR(status.st_mode) && (status.st_mode & (S_IWOTH | S_ISVTX)) != 0);
  }

  static bool is_bin(const std::string& path) {
    constexpr std::string_view names[] = {"bin", "sbin", "shims", ".bin"};
    return is_one_of(std::string_view(path).substr(path.rfind('/') + 1), names);
  }

  // Hidden directories hold tools, or what is nobody's business.
  static bool lies_among_tools(std::string_view path) {
    constexpr std::string_view tools[] = {
        ".asdf",       ".bin",          ".bun",       ".cabal", ".cargo",  ".composer",
        ".conda",      ".deno",         ".dotnet",    ".elan",  ".fnm",    ".foundry",
        ".fvm",        ".gem",          ".ghcup",     ".goenv", ".jenv",   ".juliaup",
        ".krew",       ".linuxbrew",    ".mise",      ".n",     ".nodenv", ".npm",
        ".npm-global", ".npm-packages", ".nvm",       ".opam",  ".pnpm",   ".pnpm-store",
        ".poetry",     ".proto",        ".pub-cache", ".pyenv", ".rbenv",  ".rustup",
        ".rvm",        ".sdkman",       ".swiftly",   ".tfenv", ".tox",    ".venv",
        ".venvs",      ".virtualenvs",  ".volta",     ".yarn"};
    // What tools keep where other programs keep their data.
    constexpr std::string_view shared[] = {".local/bin/",
                                           ".local/lib/",
                                           ".local/share/uv/",
                                           ".local/share/pipx/",
                                           ".local/share/mise/",
                                           ".local/share/pnpm/",
                                           ".local/share/fnm/",
                                           ".local/share/rtx/",
                                           ".local/share/virtualenvs/",
                                           ".local/share/claude/",
                                           ".local/pipx/",
                                           ".config/yarn/global/",
                                           ".config/composer/vendor/"};
    for (std::size_t at = path.find("/."); at != std::string_view::npos;
         at = path.find("/.", at + 1)) {
      const std::string_view rest = path.substr(at + 1);
      const auto leads_there = [&](std::string_view part) {
        return starts_with(concat({rest, "/"}), part);
      };
      if (!is_one_of(rest.substr(0, rest.find('/')), tools) &&
          std::none_of(std::begin(shared), std::end(shared), leads_there))
        return false;
    }
    return true;
  }

  // The prefix of a `bin` directly below `/` would be a whole part of the system.
  bool is_prefix(const std::string& path) const {
    const auto depth = std::count(path.begin(), path.end(), '/');
    const bool of_users = codeexec::is_within(path, "/home") || codeexec::is_within(path, "/Users");
    return depth >= (of_users ? 3 : 2) && (is_shared_prefix(path) || !is_never_granted(path));
  }

  // The directory, and its prefix when it is the `bin` of one: all of it, or only what installers
  // fill when it holds other things as well, or when a link led there.
  void add_tools(const std::string& directory, bool linked) {
    const std::string prefix = directory.substr(0, directory.rfind('/'));
    trees_.add_directory(directory);
    if (!is_bin(directory) || !is_prefix(prefix)) return;
    const bool is_shared = is_shared_prefix(prefix);
    for (const std::string& entry : names_in(prefix))
      if ((!linked && !is_shared) || is_tool_part(entry)) trees_.add_entry(prefix, entry);
    if (!linked && !is_shared) ruleset_.add_path(prefix, right_read_dir, O_NOFOLLOW);
    // What is in ~/.cargo/bin are fronts for what is here.
    if (ends_with(prefix, "/.cargo"))
      trees_.add_directory(concat({prefix.substr(0, prefix.rfind('/')), "/.rustup"}));
    // Python's parts of ~/.local that are not in a directory of their own.
    if (is_shared)
      for (const char* part : {"uv", "pipx", "mise", "pnpm", "virtualenvs"})
        trees_.add_rule(concat({prefix, "/share/", part}), readable_rights);
  }

  // ~/.local and ~/.config hold the data of all programs, keyrings among it.
  static bool is_shared_prefix(const std::string& prefix) {
    const std::string last = prefix.substr(prefix.rfind('/') + 1);
    return last == "share" || is_secret_directory(last);
  }
  static bool is_tool_part(const std::string& entry) {
    constexpr std::string_view parts[] = {"bin",   "sbin",    "shims",   "lib",
                                          "lib64", "libexec", "include", "pyvenv.cfg"};
    return is_one_of(entry, parts);
  }

  // Programs in a directory are often links to where they are installed.
  void add_targets(const std::string& directory) {
    for (const std::string& entry : names_in(directory)) {
      const std::string path = concat({directory, "/", entry});
      struct stat status {};
      if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) continue;
      // Most lead to what is known; only others are worth the way name by name.
      const std::string quick = real_path_of(path);
      if (quick.empty() || is_known(quick)) continue;
      const std::string target = place_of(path).path;
      if (target.empty() || is_known(target) || !is_tool(target)) continue;
      const std::string parent = target.substr(0, target.rfind('/'));
      const std::string prefix = parent.substr(0, parent.rfind('/'));
      // An interpreter brings its library, anything else is but a file.
      if (is_bin(parent) && !is_never_granted(parent) &&
          ::access(concat({prefix, "/lib"}).c_str(), F_OK) == 0)
        add_tools(parent, true);
      else
        trees_.add_rule(target, readable_rights);
    }
  }

  // A program that its owner shows to everybody.
  bool is_tool(const std::string& path) const {
    constexpr mode_t shown = S_IXUSR | S_IROTH | S_IXOTH;
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           (status.st_mode & shown) == shown && !is_never_granted(path) && lies_among_tools(path) &&
           is_program_file(path);
  }

  Ruleset& ruleset_;
  TreeGrants& trees_;
  const std::vector<SandboxGrant>& grants_;
  std::vector<std::string> writable_;
  std::string home_ = own_home();
};

bool is_readable_system(std::string_view path) { return SystemGrants::covers(path); }
bool is_home_directory(const std::string& path) { return holds_a_home(path, own_home()); }

// cgroups -----------------------------------------------------------------------------------------
//
// A run's leaf is made below the group that this program is in, so that whatever holds this program
// holds its commands, too. With cgroup v2 a group that has processes cannot have such children,
// unless it is the root; then the leaf is made beside it, but only where that escapes no limit.

// Writes a control file of a cgroup, in one call as they need it. An errno, or 0.
int write_control(const std::string& path, std::string_view text) {
  const UniqueFd fd(above_standard_streams(::open(path.c_str(), O_WRONLY | O_CLOEXEC)));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

// A control file, or nothing. They are short.
std::string read_control(const std::string& path) {
  constexpr std::size_t most = 65536;
  auto text = read_whole_file(path, most, "cgroup");
  return text ? std::move(*text) : std::string();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool has_word(std::string_view text, std::string_view word, char separator) {
  for (const std::string_view part : split(text, separator))
    if (part == word ||
        (part.size() == word.size() + 1 && ends_with(part, "\n") && starts_with(part, word)))
      return true;
  return false;
}

// The count after a word in a control file of lines like "oom_kill 3".
std::uint64_t counter_in(const std::string& text, std::string_view word) {
  for (const std::string_view line : split(text, '\n')) {
    if (!starts_with(line, word) || line.size() <= word.size() || line[word.size()] != ' ')
      continue;
    const std::string_view digits = line.substr(word.size() + 1);
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }
  return 0;
}

// This process's group in the hierarchy of a controller; an empty `controller` is cgroup v2.
std::string own_group(std::string_view groups, std::string_view controller) {
  for (const std::string_view line : split(groups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool matches =
        controller.empty() ? controllers.empty() : has_word(controllers, controller, ',');
    if (matches) return std::string(line.substr(second + 1));
  }
  return {};
}

// Blanks and backslashes of mountinfo are written in octal.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '\\' && text.size() - i > 3 &&
        std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      result += static_cast<char>(code);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// The directory of this process's group, as it is mounted here.
std::string group_directory(std::string_view mounts, const std::string& group,
                            std::string_view controller) {
  for (const std::string_view line : split(mounts, '\n')) {
    // id parent device ROOT PLACE options [tags] - TYPE source SUPER_OPTIONS
    const std::vector<std::string_view> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const bool matches = controller.empty()
                             ? dash[1] == "cgroup2"
                             : dash[1] == "cgroup" && has_word(dash[3], controller, ',');
    const std::string root = unescaped(fields[3]);
    if (!matches || !codeexec::is_within(group, root)) continue;
    std::string below = root == "/" ? group : group.substr(root.size());
    if (below == "/") below.clear();
    return unescaped(fields[4]) + below;
  }
  return {};
}

// A name that no other program's leaf has, and no other run's.
std::string new_leaf_name() {
  static std::atomic<std::uint64_t> runs{0};
  return concat({"codeexec-", std::to_string(::getpid()), "-", std::to_string(runs.fetch_add(1))});
}

// Removes what programs left that were killed. A leaf with processes in it stays.
void remove_dead_leaves(const std::string& directory) {
  constexpr std::string_view prefix = "codeexec-";
  for (const std::string& leaf : names_in(directory)) {
    if (!starts_with(leaf, prefix)) continue;
    int pid = 0;
    const char* digits = leaf.data() + prefix.size();
    const auto parsed = std::from_chars(digits, leaf.data() + leaf.size(), pid);
    if (parsed.ptr == digits || *parsed.ptr != '-' || pid <= 0) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) ::rmdir(concat({directory, "/", leaf}).c_str());
  }
}

// Gives a leaf its limits; 0 is none. An errno, or 0.
int limit_leaf(const std::string& leaf, bool unified, std::uint64_t memory,
               std::uint64_t processes) {
  if (memory != 0) {
    const std::string bytes = std::to_string(memory);
    const int error =
        write_control(leaf + (unified ? "/memory.max" : "/memory.limit_in_bytes"), bytes);
    if (error != 0) return error;
    // Without it a command swaps instead of ending. Missing where swap is not accounted for.
    if (unified)
      write_control(leaf + "/memory.swap.max", "0");
    else
      write_control(leaf + "/memory.memsw.limit_in_bytes", bytes);
  }
  return processes == 0 ? 0 : write_control(leaf + "/pids.max", std::to_string(processes));
}

// Whether leaves with these limits can really be made in a directory.
bool can_make_leaves(const std::string& directory, bool unified, bool memory, bool processes) {
  constexpr std::uint64_t some_memory = std::uint64_t{1} << 30;
  constexpr std::uint64_t some_processes = 1024;
  const std::string leaf = concat({directory, "/", new_leaf_name()});
  if (::mkdir(leaf.c_str(), 0755) != 0) return false;
  const bool limited =
      limit_leaf(leaf, unified, memory ? some_memory : 0, processes ? some_processes : 0) == 0;
  const bool can_be_joined =
      UniqueFd(::open((leaf + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)).get() >= 0;
  return ::rmdir(leaf.c_str()) == 0 && limited && can_be_joined;
}

// Where leaves with a limit can be made; its directory is empty when there is no such place.
CgroupBase find_cgroup_base(bool memory) {
  const std::string_view controller = memory ? "memory" : "pids";
  const std::string groups = read_control("/proc/self/cgroup");
  constexpr std::size_t most_mounts = std::size_t{16} << 20;
  auto mounts = read_whole_file("/proc/self/mountinfo", most_mounts, "mounts");
  CgroupBase base;
  if (!mounts) return base;
  std::string group = own_group(groups, controller);
  if (!group.empty()) {
    base.directory = group_directory(*mounts, group, controller);
  } else {
    base.unified = true;
    group = own_group(groups, {});
    if (group.empty()) return base;
    base.directory = group_directory(*mounts, group, {});
    const auto gives = [&](const std::string& directory) {
      return has_word(read_control(directory + "/cgroup.subtree_control"), controller, ' ');
    };
    if (!base.directory.empty() && !gives(base.directory)) {
      const std::string own_limit =
          read_control(base.directory + (memory ? "/memory.max" : "/pids.max"));
      base.directory.resize(base.directory.rfind('/'));
      if (own_limit != "max\n" || !gives(base.directory)) base.directory.clear();
    }
  }
  if (base.directory.empty()) return base;
  remove_dead_leaves(base.directory);
  if (!can_make_leaves(base.directory, base.unified, memory, !memory)) base.directory.clear();
  return base;
}

}  // namespace

RunCgroup::RunCgroup(RunCgroup&& other) noexcept
    : leaves_(std::exchange(other.leaves_, {})),
      descriptors_(std::exchange(other.descriptors_, {})) {}

RunCgroup& RunCgroup::operator=(RunCgroup&& other) noexcept {
  if (this == &other) return *this;
  finish();
  leaves_ = std::exchange(other.leaves_, {});
  descriptors_ = std::exchange(other.descriptors_, {});
  return *this;
}

RunCgroup::~RunCgroup() { finish(); }

Expected<RunCgroup> RunCgroup::make(const SandboxState& state) {
  RunCgroup cgroup;
  const Limits& limits = state.options.limits;
  const std::string& for_memory = state.memory_base.directory;
  const std::string& for_processes = state.process_base.directory;
  const std::uint64_t memory = for_memory.empty() ? 0 : limits.memory;
  const std::uint64_t processes = for_processes.empty() ? 0 : limits.processes;
  const bool together = for_memory == for_processes;
  if (memory != 0)
    if (auto added = cgroup.add(state.memory_base, memory, together ? processes : 0); !added)
      return added.error();
  if (processes != 0 && !(together && memory != 0))
    if (auto added = cgroup.add(state.process_base, 0, processes); !added) return added.error();
  return cgroup;
}

Expected<void> RunCgroup::add(const CgroupBase& base, std::uint64_t memory,
                              std::uint64_t processes) {
  Leaf leaf;
  leaf.directory = concat({base.directory, "/", new_leaf_name()});
  leaf.unified = base.unified;
  leaf.memory = memory != 0;
  leaf.tasks = processes != 0;
  const std::string subject = concat({"limits: cgroup ", quoted(leaf.directory)});
  if (::mkdir(leaf.directory.c_str(), 0755) != 0) return system_error(errno, subject);
  leaves_.push_back(std::move(leaf));
  Leaf& made = leaves_.back();
  if (const int error = limit_leaf(made.directory, made.unified, memory, processes); error != 0)
    return system_error(error, subject);
  made.processes.reset(above_child_descriptors(
      ::open((made.directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)));
  if (!made.processes) return system_error(errno, subject);
  descriptors_.push_back(made.processes.get());
  return {};
}

std::vector<std::string> RunCgroup::finish() {
  std::vector<std::string> reached;
  for (Leaf& leaf : leaves_) {
    const std::string events =
        leaf.directory + (leaf.unified ? "/memory.events" : "/memory.oom_control");
    if (leaf.memory && counter_in(read_control(events), "oom_kill") != 0)
      reached.emplace_back("memory");
    if (leaf.tasks && counter_in(read_control(leaf.directory + "/pids.events"), "max") != 0)
      reached.emplace_back("processes");
    leaf.processes.reset();
    // The dead stay in their group until somebody has waited for them. What is not gone by then is
    // removed by a later create(), of another program.
    constexpr int attempts = 50;
    for (int i = 0; i < attempts && ::rmdir(leaf.directory.c_str()) != 0 && errno == EBUSY; ++i) {
      if (!leaf.unified || write_control(leaf.directory + "/cgroup.kill", "1") != 0) {
        for (const std::string_view line :
             split(read_control(leaf.directory + "/cgroup.procs"), '\n')) {
          int pid = 0;
          std::from_chars(line.data(), line.data() + line.size(), pid);
          if (pid > 0) ::kill(pid, SIGKILL);
        }
      }
      ::poll(nullptr, 0, 1);
    }
  }
  leaves_.clear();
  descriptors_.clear();
  return reached;
}

namespace {

// Building ----------------------------------------------------------------------------------------

// Fills in a state: the plan, and the report of what it does.
class SandboxBuilder {
 public:
  explicit SandboxBuilder(SandboxState& state) : state_(state), options_(state.options) {}

  Expected<void> build() {
    if (auto checked = check_sandbox_options(options_); !checked) return checked;
    state_.report.mode = options_.mode;
    const bool sandboxed = options_.mode != SandboxMode::off;
    state_.plan.supervised = sandboxed;
    if (sandboxed)
      if (auto opened = open_grants(); !opened) return opened;
    if (options_.limits.disk != 0) find_disk_root();
    set_limits();
    if (sandboxed) {
      state_.report.network = network_;
      if (auto made = make_plan(); !made) return made;
      if (auto tried = try_plan(); !tried) return tried;
      judge_containment();
    }
    write_report(sandboxed);
    if (options_.mode == SandboxMode::strict && !state_.report.missing.empty())
      return make_error(ErrorCode::unsupported, refusal());
    return {};
  }

 private:
  struct Grant {
    OpenedGrant file = {};
    std::string given = {};
    std::uint64_t rights = 0;
  };

  bool strict() const { return options_.mode == SandboxMode::strict; }

  // A supervisor finds its children by a list of the kernel's, which is an option of it, or has a
  // process table for them alone.
  void judge_containment() {
    const bool own_table = (state_.plan.clone_flags & CLONE_NEWPID) != 0;
    if (!own_table && ::access("/proc/thread-self/children", R_OK) != 0)
      miss("containment", "/proc has no lists of children here");
  }

  // Why a feature is missing; the first reason stays.
  void miss(const std::string& feature, std::string why) {
    missing_.emplace(feature, std::move(why));
  }

  Expected<void> open_grants() {
    for (const std::string& path : options_.writable)
      if (auto added = open_one(path, writable_rights); !added) return added;
    for (const std::string& path : options_.readable)
      if (auto added = open_one(path, readable_rights); !added) return added;
    return {};
  }

  Expected<void> open_one(const std::string& path, std::uint64_t rights) {
    auto opened = open_grant(path);
    if (!opened) {
      if (strict()) return opened.error();
      state_.report.missing.push_back(opened.error().message);
      return {};
    }
    const bool writable = rights == writable_rights;
    const char* objection = writable ? objection_to_writing(*opened) : nullptr;
    if (opened->path == "/") objection = "is the whole system";
    if (objection)
      return make_error(ErrorCode::invalid_argument,
                        concat({"grants: ", quoted(path), " ", objection,
                                "; name the directories that commands need"}));
    if (!writable && lies_in_writable(opened->path)) {
      state_.report.missing.push_back(
          concat({"read_only: ", quoted(path), " lies in a writable directory"}));
      return {};
    }
    state_.grants.push_back({opened->path, opened->status.st_dev, opened->status.st_ino});
    Grant grant;
    grant.file = std::move(*opened);
    grant.given = path;
    grant.rights = rights;
    grants_.push_back(std::move(grant));
    return {};
  }

  bool lies_in_writable(const std::string& path) const {
    return std::any_of(grants_.begin(), grants_.end(), [&](const Grant& grant) {
      return grant.rights == writable_rights && codeexec::is_within(path, grant.file.path);
    });
  }

  // The first writable directory that there is.
  void find_disk_root() {
    for (const std::string& path : options_.writable) {
      auto opened = open_grant(path);
      if (!opened) continue;
      state_.disk_root.reset(above_standard_streams(opened->fd.release()));
      return;
    }
  }

  // limits ----------------------------------------------------------------------------------------

  void add_rlimit(int resource, std::uint64_t soft, std::uint64_t hard) {
    SandboxRlimit limit;
    limit.resource = resource;
    limit.soft = soft;
    limit.hard = hard;
    state_.rlimits.push_back(limit);
  }

  void set_limits() {
    const Limits& limits = options_.limits;
    // A second between the signal that can be caught and the one that cannot.
    if (limits.cpu_time != 0) add_rlimit(RLIMIT_CPU, limits.cpu_time, limits.cpu_time + 1);
    if (limits.address_space != 0)
      add_rlimit(RLIMIT_AS, limits.address_space, limits.address_space);
    if (limits.open_files != 0) add_rlimit(RLIMIT_NOFILE, limits.open_files, limits.open_files);
    if (limits.file_size != 0) add_rlimit(RLIMIT_FSIZE, limits.file_size, limits.file_size);
    if (limits.memory != 0) {
      state_.memory_base = find_cgroup_base(true);
      if (state_.memory_base.directory.empty())
        add_rlimit(RLIMIT_DATA, limits.memory, limits.memory);
    }
    if (limits.processes != 0) {
      state_.process_base = find_cgroup_base(false);
      if (state_.process_base.directory.empty()) {
        add_rlimit(RLIMIT_NPROC, limits.processes, limits.processes);
        if (::getuid() == 0)
          miss("processes", "there is no cgroup for it, and the kernel does not count root's");
      }
    }
    if (limits.disk != 0 && !state_.disk_root) miss("disk", "no writable directory is granted");
    state_.plan.rlimits = state_.rlimits.data();
    state_.plan.rlimit_count = state_.rlimits.size();
  }

  // plan ------------------------------------------------------------------------------------------

  Expected<void> make_plan() {
    find_landlock();
    if (abi_ > 0)
      if (auto built = build_ruleset(); !built) return built;
    state_.plan.drop_capabilities = true;
    state_.plan.no_new_privs = true;
    return {};
  }

  void find_landlock() {
    constexpr int version = 1;  // LANDLOCK_CREATE_RULESET_VERSION
    const long abi = ::syscall(number_of_landlock_create_ruleset, nullptr, 0, version);
    if (abi > 0) {
      abi_ = static_cast<int>(std::min(abi, long{INT_MAX}));
      state_.report.landlock_abi = abi_;
      return;
    }
    landlock_problem_ = errno == ENOSYS ? "the kernel has no Landlock (Linux 5.13)"
                        : errno == EOPNOTSUPP
                            ? "Landlock is switched off (lsm= of the kernel)"
                            : "Landlock is not permitted here: " + errno_text(errno);
  }

  SandboxOptions effective_options() const {
    SandboxOptions options;
    options.network = network_;
    options.unix_sockets = options_.unix_sockets;
    return options;
  }

  void drop_ruleset(std::string why) {
    abi_ = 0;
    landlock_problem_ = std::move(why);
    state_.plan.ruleset = -1;
    state_.ruleset.reset();
    forget_rules();
  }

  // The files of the rules are kept open for a second ruleset only.
  void forget_rules() {
    state_.plan.rules = nullptr;
    state_.plan.rule_count = 0;
    state_.rules.clear();
    state_.rule_files.clear();
  }

  Expected<void> build_ruleset() {
    Ruleset ruleset;
    if (!ruleset.create(abi_, effective_options())) {
      drop_ruleset("no ruleset can be made: " + errno_text(errno));
      return {};
    }
    if (options_.pid_namespace) ruleset.keep_files();
    TreeGrants trees(ruleset);
    SystemGrants(ruleset, trees).add(options_);
    std::vector<std::string> writable;
    for (const Grant& grant : grants_)
      if (grant.rights == writable_rights) writable.push_back(grant.file.path);
    ToolGrants(ruleset, trees, state_.grants, std::move(writable)).add(options_.search_path);
    // Without them no program would start.
    if (ruleset.error() != 0) {
      drop_ruleset("no rules can be made: " + errno_text(ruleset.error()));
      return {};
    }
    for (const Grant& grant : grants_) {
      UniqueFd file(above_standard_streams(::fcntl(grant.file.fd.get(), F_DUPFD_CLOEXEC, 3)));
      if (!file || !ruleset.add(std::move(file), grant.file.status.st_mode, grant.rights)) {
        const Error error = system_error(errno, concat({"grants: ", quoted(grant.given)}));
        if (strict()) return error;
        state_.report.missing.push_back(error.message);
      }
    }
    SandboxPlan& plan = state_.plan;
    plan.attributes = ruleset.attributes();
    plan.attributes_size = ruleset.size();
    state_.rules = std::move(ruleset.rules);
    state_.rule_files = std::move(ruleset.files);
    plan.rules = state_.rules.data();
    plan.rule_count = state_.rules.size();
    state_.ruleset = ruleset.take();
    plan.ruleset = state_.ruleset.get();
    return {};
  }

  void build_program() {
    if (!with_filter_) {
      state_.plan.filter = nullptr;
      state_.plan.filter_size = 0;
      return;
    }
    FilterOptions options;
    options.network = network_;
    options.unix_sockets = options_.unix_sockets;
    options.landlock_abi = abi_;
    options.own_processes = (state_.plan.clone_flags & CLONE_NEWPID) != 0;
    options.own_ipc = (state_.plan.clone_flags & CLONE_NEWIPC) != 0;
    state_.filter = build_filter(options);
    state_.plan.filter = state_.filter.data();
    state_.plan.filter_size = static_cast<unsigned short>(state_.filter.size());
  }

  // The namespaces that are wanted still, with a user namespace around them or without.
  void choose_namespaces(bool user_namespace) {
    SandboxPlan& plan = state_.plan;
    plan.clone_flags = 0;
    plan.loopback = network_ == Network::loopback;
    plan.mount_proc = with_processes_;
    if (plan.loopback) plan.clone_flags |= CLONE_NEWNET;
    if (with_processes_) plan.clone_flags |= CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    plan.uid_map = nullptr;
    plan.gid_map = nullptr;
    if (plan.clone_flags == 0 || !user_namespace) return;
    const auto only = [](std::uint64_t id) {
      return concat({std::to_string(id), " ", std::to_string(id), " 1\n"});
    };
    state_.uid_map = only(::geteuid());
    state_.gid_map = only(::getegid());
    plan.clone_flags |= CLONE_NEWUSER;
    plan.uid_map = state_.uid_map.c_str();
    plan.gid_map = state_.gid_map.c_str();
  }

  // trial -----------------------------------------------------------------------------------------

  Expected<void> try_plan() {
    const AbstractListener listener;
    with_processes_ = options_.pid_namespace;
    bool user_namespace = ::geteuid() != 0;
    for (;;) {
      choose_namespaces(user_namespace);
      build_program();
      Trial trial;
      trial.plan = &state_.plan;
      trial.network = network_;
      trial.unix_sockets = options_.unix_sockets;
      trial.host = static_cast<int>(::getpid());
      if (listener.size != 0) {
        trial.abstract = &listener.address;
        trial.abstract_size = listener.size;
      }
      const NamespaceTurn turn(state_.plan);
      const long started = run_trial(trial);
      const long error = started < 0 ? started : long{trial.error};
      const bool by_namespaces =
          state_.plan.clone_flags != 0 &&
          (started < 0 || trial.step == ConfineStep::namespaces || !trial.finished);
      if (by_namespaces) {
        if (!user_namespace)
          user_namespace = true;
        else if (auto left = leave_out_namespace(error); !left)
          return left;
        else
          user_namespace = ::geteuid() != 0;
        continue;
      }
      if (started < 0 || !trial.finished)
        return system_error(started < 0 ? static_cast<int>(-started) : ENOSYS,
                            "sandbox: the trial of it could not be run");
      if (error == 0) {
        if ((trial.breaches & breach_loopback) != 0 && network_ == Network::loopback) {
          if (auto left = give_up_loopback("127.0.0.1 does not work in it"); !left) return left;
          continue;
        }
        judge(trial);
        if (!state_.plan.mount_proc) forget_rules();
        return {};
      }
      if (!leave_out_step(trial.step, static_cast<int>(-error)))
        return system_error(static_cast<int>(-error), "sandbox: limits");
    }
  }

  Expected<void> give_up_loopback(std::string why) {
    miss("network", concat({"loopback cannot be had (", why, "); commands have none"}));
    network_ = Network::none;
    // Its rules for the network are others.
    if (abi_ > 0) return build_ruleset();
    return {};
  }

  // The process table goes first, as it needs most, but comes back when the network was at fault.
  Expected<void> leave_out_namespace(long error) {
    const std::string why = "no namespaces can be made here: " +
                            errno_text(error != 0 ? static_cast<int>(-error) : ENOSYS);
    if (with_processes_) {
      with_processes_ = false;
      miss("pid_namespace", why);
      return {};
    }
    with_processes_ = options_.pid_namespace;
    missing_.erase("pid_namespace");
    return give_up_loopback(why);
  }

  bool leave_out_step(ConfineStep step, int error) {
    SandboxPlan& plan = state_.plan;
    const std::string why = errno_text(error);
    switch (step) {
      case ConfineStep::capabilities:
        plan.drop_capabilities = false;
        miss("privileges", "capabilities cannot be dropped: " + why);
        return true;
      case ConfineStep::privileges:
        plan.no_new_privs = false;
        miss("privileges", "no_new_privs cannot be set: " + why);
        return true;
      case ConfineStep::landlock:
        drop_ruleset("Landlock cannot be put in force: " + why);
        return true;
      case ConfineStep::filter:
        with_filter_ = false;
        miss("system_calls", "a filter (seccomp) cannot be installed: " + why);
        return true;
      case ConfineStep::namespaces:
      case ConfineStep::limits:
      case ConfineStep::end:
        break;
    }
    return false;
  }

  // report ----------------------------------------------------------------------------------------

  void judge(const Trial& trial) {
    constexpr const char* broken = "it is claimed to be there, but a trial got around it";
    const unsigned breaches = trial.breaches;
    const auto has = [&](unsigned some) { return (breaches & some) != 0; };
    if (abi_ == 0) {
      for (const char* feature : {"filesystem", "rename", "truncate", "devices"})
        miss(feature, landlock_problem_);
    } else {
      if (has(breach_read | breach_write | breach_create)) miss("filesystem", broken);
      if (abi_ < rename_abi) miss("rename", "needs Landlock ABI 2");
      if (has(breach_truncate))
        miss("truncate", abi_ < truncate_abi ? "needs Landlock ABI 3" : broken);
      if (abi_ < ioctl_abi) miss("devices", "needs Landlock ABI 5");
    }
    if (has(breach_signal)) miss("signals", reason_of_scope(broken));
    if (has(breach_abstract)) miss("abstract_sockets", reason_of_scope(broken));
    if (has(breach_capability | breach_privilege)) miss("privileges", broken);
    if (has(breach_filter)) miss("system_calls", broken);
    judge_network(breaches);
  }

  std::string reason_of_scope(const char* broken) const {
    if (abi_ == 0) return landlock_problem_;
    return abi_ < scope_abi ? "needs Landlock ABI 6" : broken;
  }

  void judge_network(unsigned breaches) {
    state_.report.network = network_;
    if ((breaches & (breach_internet | breach_outside)) != 0) {
      state_.report.network = Network::host;
      missing_["network"] = with_filter_ ? "a trial could make sockets"
                                         : "it needs a filter (seccomp), which cannot be installed";
    } else if ((breaches & breach_unix) != 0) {
      miss("network", "sockets with a path reach services of this host");
    }
  }

  void write_report(bool sandboxed) {
    std::vector<std::string> features;
    if (sandboxed) {
      features = {"filesystem",       "rename",       "truncate",   "devices", "signals",
                  "abstract_sockets", "system_calls", "privileges", "network", "containment"};
      if (options_.pid_namespace) features.emplace_back("pid_namespace");
    }
    for (const NamedLimit& limit : limit_names)
      if (options_.limits.*limit.value != 0) features.emplace_back(limit.name);
    for (const std::string& feature : features) {
      const auto missing = missing_.find(feature);
      if (missing == missing_.end())
        state_.report.enforced.push_back(feature);
      else
        state_.report.missing.push_back(concat({feature, ": ", missing->second}));
    }
  }

  std::string refusal() const {
    std::string text = "sandbox: strict mode is refused, for lack of ";
    for (const std::string& entry : state_.report.missing) {
      if (&entry != &state_.report.missing.front()) text += "; ";
      text += entry;
    }
    return text;
  }

  SandboxState& state_;
  const SandboxOptions& options_;
  Network network_ = options_.network;
  std::vector<Grant> grants_ = {};
  std::map<std::string, std::string> missing_ = {};
  int abi_ = 0;
  std::string landlock_problem_ = {};
  bool with_filter_ = true;
  bool with_processes_ = false;
};

}  // namespace

#else

namespace {

// No grant is made here.
bool is_readable_system(std::string_view) { return false; }
bool is_home_directory(const std::string&) { return false; }

// Nothing of it can be had here.
Expected<void> build_without_kernel(SandboxState& state) {
  const SandboxOptions& options = state.options;
  if (auto checked = check_sandbox_options(options); !checked) return checked;
  state.report.mode = options.mode;
  constexpr const char* why = ": not on this system";
  std::vector<const char*> features;
  if (options.mode != SandboxMode::off) {
    features = {"filesystem",       "rename",       "truncate",   "devices", "signals",
                "abstract_sockets", "system_calls", "privileges", "network", "containment"};
    if (options.pid_namespace) features.push_back("pid_namespace");
  }
  for (const NamedLimit& limit : limit_names)
    if (options.limits.*limit.value != 0) features.push_back(limit.name);
  for (const char* feature : features) state.report.missing.push_back(concat({feature, why}));
  if (options.mode == SandboxMode::strict)
    return make_error(ErrorCode::unsupported,
                      "sandbox: strict mode needs Linux on x86_64 or aarch64");
  return {};
}

}  // namespace

#endif

struct Sandbox::State : SandboxState {};

Expected<Sandbox> Sandbox::create(const SandboxOptions& options) {
  auto state = std::make_shared<State>();
  state->options = options;
#if CODEEXEC_HAS_SANDBOX
  auto built = SandboxBuilder(*state).build();
#else
  auto built = build_without_kernel(*state);
#endif
  if (!built) return built.error();
  Sandbox sandbox;
  sandbox.state_ = std::move(state);
  return sandbox;
}

const SandboxReport& Sandbox::report() const noexcept {
  static const SandboxReport none;
  return state_ ? state_->report : none;
}

Expected<void> Sandbox::check_grants() const {
  if (!state_) return {};
  for (const SandboxGrant& grant : state_->grants) {
    struct stat status {};
    if (::fstatat(AT_FDCWD, grant.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return system_error(errno, concat({"grants: ", quoted(grant.path)}));
    if (status.st_dev != grant.device || status.st_ino != grant.inode)
      return make_error(ErrorCode::permission_denied,
                        concat({"grants: ", quoted(grant.path),
                                " is no longer the file that was granted; restart to grant it"}));
  }
  return {};
}

// =================================================================================================
// >>process (definitions)
//
// Starting. On Linux a child is made by clone3 with CLONE_VM | CLONE_VFORK: it borrows this
// process's memory until it has executed the program, so that a start costs the same from a host
// of 3 MB and of 80 GB, where fork copies page tables (21 ms per GiB). Therefore the child may use
// prepared data and raw system calls only, runs on a stack of its own, and all signals are blocked
// so that no handler of the host runs in it. A failure comes back through that same memory, as an
// errno and the step that failed. The caller waits in clone meanwhile, so that a work_dir or
// program on a dead network file system blocks it beyond any timeout.
//
// Running. Process::State is one child as a state machine without a thread: it names descriptors
// and a deadline to wait for, and takes a step when one of them is due. run_process() drives it in
// the calling thread; Process::Reactor drives any number of them in one.
//
// Ending. The end of the program, not the end of its output, ends a run: a grandchild may hold the
// pipe for ever. The leader stays a zombie until the very last step, which keeps its process group
// number from being used again while the group is being killed.
//
// What cannot be reached from here is a process that left the group, whose parents are dead, and
// that has closed our pipes. A supervisor holds that, where there is one; see below.
// =================================================================================================

// The parts of a start that can fail; step_name() is what ProcessResult::step says.
enum class SpawnStep : int { setup, start, stdio, work_dir, pass_fd, sandbox, exec };

// A step of a start that failed, with its errno.
struct Failure {
  SpawnStep step;
  int error;
};

// What a child needs, as plain pointers into the parent's memory, and what it tells.
struct ChildPlan {
  const char* const* paths = nullptr;  // to try in this order; ends with a null pointer
  char* const* argv = nullptr;
  char** shell_argv = nullptr;  // sh, (path), arguments: for a script without a #! line
  char* const* environment = nullptr;
  const char* work_dir = nullptr;
  int work_dir_fd = -1;
  int input = -1;
  int output = -1;
  int error_output = -1;
  int pass_fd = -1;
  int report = -1;  // also told the failure, where memory might not be shared
#if CODEEXEC_HAS_SANDBOX
  const SandboxPlan* sandbox = nullptr;
  bool supervised = false;  // by a supervisor where there can be one, whatever the sandbox wants
  const int* cgroups = nullptr;  // to join: descriptors of files to which the child writes itself
  std::size_t cgroup_count = 0;
  long supervisor = 0;  // its pid as the child sees it; 0: this program starts the child itself
#endif
  bool handlers_cleared = false;
  volatile int ran = 0;
  volatile int failed_step = 0;
  volatile int failed_error = 0;  // 0: the program runs
};

constexpr std::size_t child_stack_size = 16384;

#if CODEEXEC_HAS_SANDBOX

// What a supervisor tells: first that the command runs or why it does not, then how it ended.
struct SupervisorReport {
  Failure failure;
  long pid;    // of the command, as the supervisor sees it
  bool known;  // that it ended as follows
  bool exited;
  int value;       // exit status or signal
  bool all_ended;  // nothing of the run is left
  bool denied;     // some of it cannot be killed: it is another user's
  rusage usage;
};

// The memory of a supervisor, in pages of its own. What comes first is needed at the start and at
// the end, and goes back to the system in between: a command that runs costs the last page.
struct Supervision {
  union {
    char command_stack[child_stack_size];       // until the program was executed
    int found[child_stack_size / sizeof(int)];  // processes that are still to be killed
  };
  alignas(8) char entries[2048];
  alignas(16) char stack[child_stack_size - 3072];  // and the fields below fill whole pages

  ChildPlan* plan = nullptr;             // until the first report
  const SandboxPlan* sandbox = nullptr;  // likewise
  int orders = -1;  // a pipe: each byte is a signal for the command's group; SIGKILL is for all
  int host = -1;    // a pidfd of this program, or -1
  int reports = -1;
  int child_ended = -1;    // a signalfd, or -1
  bool own_table = false;  // it is the first process of a process table of its own
  std::size_t page_size = 0;
  std::size_t found_count = 0;
  std::uint32_t signals_sent = 0;  // to the group; read by this program, too
  SupervisorReport report = {};
  siginfo_t info = {};
  char path[64] = {};
  char text[256] = {};
};
static_assert(sizeof(Supervision) <= 2 * child_stack_size, "its last page holds all of its fields");

struct SupervisionDeleter {
  void operator()(Supervision* run) const noexcept { ::munmap(run, sizeof *run); }
};

// What this program has of a supervisor.
struct Supervisor {
  std::unique_ptr<Supervision, SupervisionDeleter> run = {};  // until the supervisor has ended
  UniqueFd orders = UniqueFd();
  UniqueFd reports = UniqueFd();
  pid_t command = -1;  // -1 in a process table of its own
  std::uint32_t signals_asked = 0;
  SupervisorReport last = {};
};

#else

struct Supervisor {};

#endif

namespace {

const char* step_name(SpawnStep step) {
  switch (step) {
    case SpawnStep::setup:
      return "setup";
    case SpawnStep::start:
      return "start";
    case SpawnStep::stdio:
      return "stdio";
    case SpawnStep::work_dir:
      return "work_dir";
    case SpawnStep::pass_fd:
      return "pass_fd";
    case SpawnStep::sandbox:
      return "sandbox";
    case SpawnStep::exec:
      break;
  }
  return "exec";
}

// A child that runs, or why there is none.
struct Spawned {
  pid_t pid = -1;                    // of our own child: the program, or its supervisor
  UniqueFd exit_event = UniqueFd();  // becomes readable when the whole process has ended
  bool is_pidfd = false;
  pthread_t waiter = {};  // unless is_pidfd: the thread that makes exit_event readable
  SpawnStep step = SpawnStep::setup;
  int error = 0;
  bool no_supervisor = false;  // there can be none here; no command has been started
};

// Lets nothing that a pump does be cut short by pthread_cancel(): the call is acted upon after.
class CancellationPause {
 public:
  CancellationPause() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  CancellationPause(const CancellationPause&) = delete;
  CancellationPause& operator=(const CancellationPause&) = delete;
  ~CancellationPause() { ::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = 0;
};

Clock::time_point later(Clock::time_point from, std::chrono::milliseconds time) {
  // A hundred years are for ever, and far from overflow.
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 36500);
  if (time >= longest) return Clock::time_point::max();
  return from + std::max(time, std::chrono::milliseconds(0));
}

// Waits until a descriptor is ready or the deadline has passed. Interruptions count as events.
void wait_for_events(std::vector<pollfd>& set, Clock::time_point deadline) {
  using std::chrono::nanoseconds;
  nanoseconds left = nanoseconds::max();
  if (deadline != Clock::time_point::max())
    left = std::max(nanoseconds(0), nanoseconds(deadline - Clock::now()));
  const auto size = static_cast<nfds_t>(set.size());
#if defined(__linux__)
  timespec time{};
  time.tv_sec = static_cast<time_t>(left.count() / 1000000000);
  time.tv_nsec = static_cast<long>(left.count() % 1000000000);
  const bool for_ever = left == nanoseconds::max();
  const int ready = ::ppoll(set.data(), size, for_ever ? nullptr : &time, nullptr);
#else
  const auto rounded = left.count() / 1000000 + 1;
  const int time = left == nanoseconds::max()
                       ? -1
                       : static_cast<int>(std::min<decltype(rounded)>(rounded, INT_MAX));
  const int ready = ::poll(set.data(), size, left.count() == 0 ? 0 : time);
#endif
  // After an interruption the answers are undefined: nothing is ready.
  if (ready < 0)
    for (pollfd& entry : set) entry.revents = 0;
}

// A pipe whose ends are not inherited and not one of 0, 1 and 2. False and errno on failure.
bool make_pipe(UniqueFd& read_end, UniqueFd& write_end) {
  int ends[2] = {-1, -1};
#if defined(__linux__)
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
#else
  if (::pipe(ends) != 0) return false;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
  read_end.reset(above_standard_streams(ends[0]));
  const int error = errno;
  write_end.reset(above_standard_streams(ends[1]));
  if (read_end && write_end) return true;
  if (!read_end) errno = error;
  return false;
}

#if defined(__linux__)
// A process, and not another that gets its number later; -1 before Linux 5.3.
int open_pidfd(pid_t pid) {
  return above_standard_streams(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<long>(pid), 0L)));
}
#endif

void set_nonblocking(const UniqueFd& fd) {
  if (fd) ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

// Of the file system that a directory lies on, for users without privileges; 0 if it is not known.
std::uint64_t free_bytes(const UniqueFd& directory) {
  struct statvfs status {};
  if (::fstatvfs(directory.get(), &status) != 0) return 0;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

// Starting ----------------------------------------------------------------------------------------

// Its value is another for each run, so that the processes of a run can be found by it.
constexpr std::string_view run_variable_name = "CODEEXEC_RUN_ID=";

// Everything a child needs that takes memory, made before it exists.
class Launch {
 public:
  // `run_variable` takes the place of one of the same name.
  Launch(const ProcessOptions& options, const std::string& run_variable) {
    const std::string& program = options.argv[0];
    if (program.find('/') != std::string::npos) {
      candidates_.push_back(program);
    } else {
      search(options.environment, program);
    }
    for (const std::string& path : candidates_) paths_.push_back(path.c_str());
    paths_.push_back(nullptr);
    argv_.reserve(options.argv.size() + 1);
    shell_argv_.reserve(options.argv.size() + 2);
    environment_.reserve(options.environment.size() + 2);
    static char shell_name[] = "sh";
    shell_argv_ = {shell_name, nullptr};
    for (std::size_t i = 0; i < options.argv.size(); ++i) {
      // execve() takes char*, but promises in its rationale not to write.
      argv_.push_back(const_cast<char*>(options.argv[i].c_str()));
      if (i > 0) shell_argv_.push_back(argv_.back());
    }
    argv_.push_back(nullptr);
    shell_argv_.push_back(nullptr);
    for (const std::string& variable : options.environment)
      if (!starts_with(variable, run_variable_name))
        environment_.push_back(const_cast<char*>(variable.c_str()));
    environment_.push_back(const_cast<char*>(run_variable.c_str()));
    environment_.push_back(nullptr);
    plan.paths = paths_.data();
    plan.argv = argv_.data();
    plan.shell_argv = shell_argv_.data();
    plan.environment = environment_.data();
    plan.work_dir = options.work_dir.empty() ? nullptr : options.work_dir.c_str();
    plan.work_dir_fd = options.work_dir_fd;
    plan.pass_fd = options.pass_fd;
  }

  const std::vector<std::string>& candidates() const { return candidates_; }
  const std::string& search_path() const { return search_path_; }

  ChildPlan plan = {};

 private:
  // An empty element of PATH is the working directory (POSIX, 8.3).
  void search(const std::vector<std::string>& environment, const std::string& program) {
    search_path_ = "/bin:/usr/bin";
    for (const std::string& variable : environment)
      if (starts_with(variable, "PATH=")) {
        search_path_ = variable.substr(5);
        break;
      }
    if (program.empty()) return;
    std::string_view rest = search_path_;
    for (;;) {
      const std::size_t colon = rest.find(':');
      const std::string_view directory = rest.substr(0, colon);
      candidates_.push_back(concat({directory.empty() ? "." : directory, "/", program}));
      if (colon == std::string_view::npos) return;
      rest.remove_prefix(colon + 1);
    }
  }

  std::string search_path_ = {};
  std::vector<std::string> candidates_ = {};
  std::vector<const char*> paths_ = {};
  std::vector<char*> argv_ = {};
  std::vector<char*> shell_argv_ = {};
  std::vector<char*> environment_ = {};
};

// Executes the first path that is a program, as execvp(3) does; returns the errno of its failure.
template <class Execute>
CODEEXEC_IN_CHILD int execute_first(ChildPlan& plan, Execute execute) {
  int failure = ENOENT;
  for (const char* const* path = plan.paths; *path; ++path) {
    int error = execute(*path, plan.argv, plan.environment);
    if (error == ENOEXEC) {
      plan.shell_argv[1] = const_cast<char*>(*path);
      const int shell_error = execute("/bin/sh", plan.shell_argv, plan.environment);
      if (shell_error != ENOENT) error = shell_error;
    }
    if (error == EACCES) failure = EACCES;
    if (error != EACCES && error != ENOENT && error != ENOTDIR) return error;
  }
  return failure;
}

// A thread that waits for the end of a child, without reaping it, and then closes a pipe. For
// systems without pidfd.
struct ExitWaiter {
  pid_t pid = -1;
  UniqueFd end = UniqueFd();
};

void* wait_for_exit(void* argument) {
  const std::unique_ptr<ExitWaiter> waiter(static_cast<ExitWaiter*>(argument));
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(waiter->pid), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  return nullptr;
}

// Starts a thread on which no signal of the host is handled. An errno, or 0.
int start_thread(pthread_t* thread, void* (*function)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::pthread_create(thread, nullptr, function, argument);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

int watch_by_thread(Spawned& child) {
  auto waiter = std::make_unique<ExitWaiter>();
  waiter->pid = child.pid;
  if (!make_pipe(child.exit_event, waiter->end)) return errno;
  const int error = start_thread(&child.waiter, wait_for_exit, waiter.get());
  if (error == 0) (void)waiter.release();
  return error;
}

// Reads what a child has written to its pipe. False when there is nothing, or not all of it.
template <class Record>
bool read_record(const UniqueFd& pipe, Record& record) {
  ssize_t size = 0;
  do size = ::read(pipe.get(), &record, sizeof record);
  while (size < 0 && errno == EINTR);
  return size == static_cast<ssize_t>(sizeof record);
}

// Makes the pipe by which a child tells what went wrong. An errno, or 0.
int make_report_pipe(UniqueFd& report, UniqueFd& report_end) {
  if (!make_pipe(report, report_end)) return errno;
  report_end.reset(above_child_descriptors(report_end.release()));
  return report_end ? 0 : errno;
}

// Reaps a child that never became a program, or is not wanted.
void reap_failed(pid_t pid) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
  }
}

#if CODEEXEC_HAS_CLONE

// clone -------------------------------------------------------------------------------------------

// Ignored signals would stay ignored in the program, and with SIGPIPE ignored `yes | head` never
// ends. The kernel cannot be asked for all of them at once; the 62 questions take 5 to 10 us.
CODEEXEC_IN_CHILD void reset_signals(const ChildPlan& plan) {
  // The kernel's sigaction is the handler, the flags, perhaps a restorer, and the mask.
  unsigned long current[8] = {};
  const unsigned long by_default[8] = {};
  for (int number = 1; number <= kernel_signals; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    // Where handlers are cleared already, most signals need no second call.
    const long unknown = plan.handlers_cleared ? raw(SYS_rt_sigaction, number, as_word(nullptr),
                                                     &current[0], kernel_sigset_size)
                                               : 1;
    if (unknown == 0 && current[0] == 0 && current[1] == 0) continue;
    raw(SYS_rt_sigaction, number, &by_default[0], as_word(nullptr), kernel_sigset_size);
  }
}

#ifndef SYS_close_range
#define CODEEXEC_CLOSE_RANGE_NUMBER 436  // the same on every architecture
#else
#define CODEEXEC_CLOSE_RANGE_NUMBER SYS_close_range
#endif

// The number that is the name of an entry which getdents64() gave, or -1. Goes on to the next one.
CODEEXEC_IN_CHILD int next_number(const char* entries, long& at) {
  // inode and offset (8 bytes each), the record's length (2), a type (1), the name
  const auto* record = reinterpret_cast<const unsigned char*>(entries + at);
  at += record[16] | record[17] << 8;
  const unsigned char* digit = record + 19;
  int number = 0;
  while (*digit >= '0' && *digit <= '9') number = number * 10 + (*digit++ - '0');
  return digit == record + 19 ? -1 : number;
}

// Marks all descriptors from `first` on so that the program does not get them; Linux before 5.9.
CODEEXEC_IN_CHILD void mark_descriptors(int first) {
  const long directory = raw(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
  if (directory < 0) {
    for (int fd = first; fd < 65536; ++fd) raw(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
    return;
  }
  alignas(8) char entries[2048];
  long size = 0;
  while ((size = raw(SYS_getdents64, directory, &entries[0], as_word(2048))) > 0) {
    long at = 0;
    while (at < size) {
      const int fd = next_number(entries, at);
      if (fd >= first) raw(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
    }
  }
  raw(SYS_close, directory);
}

// The table of descriptors is a copy: closing touches nothing of the parent's.
CODEEXEC_IN_CHILD void close_from(int first, int keep) {
  constexpr int last = INT_MAX;
  long failed = 0;
  if (keep < first) {
    failed = raw(CODEEXEC_CLOSE_RANGE_NUMBER, first, last, 0);
  } else {
    if (keep > first) failed = raw(CODEEXEC_CLOSE_RANGE_NUMBER, first, keep - 1, 0);
    if (failed == 0) failed = raw(CODEEXEC_CLOSE_RANGE_NUMBER, keep + 1, last, 0);
  }
  if (failed != 0) mark_descriptors(first);
}

CODEEXEC_IN_CHILD Failure failed_at(SpawnStep step, long result) {
  return {step, static_cast<int>(-result)};
}

// 0 or a negative errno.
CODEEXEC_IN_CHILD long enter_work_dir(const ChildPlan& plan) {
  if (plan.work_dir_fd < 0) return plan.work_dir ? raw(SYS_chdir, plan.work_dir) : 0;
#if CODEEXEC_HAS_SANDBOX
  // The descriptor belongs to the host's mounts. Among mounts of its own the program needs the
  // directory of that path there, which must be the same.
  if (plan.sandbox && (plan.sandbox->clone_flags & CLONE_NEWNS) != 0 && plan.work_dir) {
    const long entered = raw(SYS_chdir, plan.work_dir);
    if (entered < 0) return entered;
    struct stat wanted;
    struct stat found;
    long known = raw(SYS_fstat, plan.work_dir_fd, &wanted);
    if (known == 0) known = raw(SYS_newfstatat, AT_FDCWD, ".", &found, 0);
    if (known < 0) return known;
    return wanted.st_dev == found.st_dev && wanted.st_ino == found.st_ino ? 0 : -ESTALE;
  }
#endif
  return raw(SYS_fchdir, plan.work_dir_fd);
}

#if CODEEXEC_HAS_SANDBOX

// All of it but the filter, which would keep the next steps from being taken. 0 or a negative
// errno.
CODEEXEC_IN_CHILD long enter_sandbox(const ChildPlan& plan) {
  if (!plan.sandbox) return 0;
  for (std::size_t i = 0; i < plan.cgroup_count; ++i) {
    const long written = raw(SYS_write, plan.cgroups[i], "0", 1);
    if (written < 0) return written;
  }
  const long result = confine(*plan.sandbox);
  if (result < 0 || plan.supervisor == 0) return result;
  // Should the supervisor be killed, by whomever, the program dies with it; what it has started
  // until then is found by its marks.
  raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  return raw(SYS_getppid) == plan.supervisor ? 0 : -ESRCH;
}

#endif

// Returns only if a step fails.
CODEEXEC_IN_CHILD Failure become_program(ChildPlan& plan) {
  reset_signals(plan);
  // No terminal: a prompt for a password fails at once instead of waiting for ever.
  raw(SYS_setsid);
  // All sources are above 2, so that none is overwritten before its turn.
  const int streams[3] = {plan.input, plan.output, plan.error_output};
  for (int fd = 0; fd < 3; ++fd) {
    const long result = raw(SYS_dup3, streams[fd], fd, 0);
    if (result < 0) return failed_at(SpawnStep::stdio, result);
  }
  long result = enter_work_dir(plan);
  if (result < 0) return failed_at(SpawnStep::work_dir, result);
  if (plan.pass_fd == 3)
    result = raw(SYS_fcntl, 3, F_SETFD, 0);
  else if (plan.pass_fd >= 0)
    result = raw(SYS_dup3, plan.pass_fd, 3, 0);
  if (result < 0) return failed_at(SpawnStep::pass_fd, result);
  const std::uint64_t no_core[2] = {0, 0};
  raw(SYS_prlimit64, 0, RLIMIT_CORE, &no_core[0], as_word(nullptr));
#if CODEEXEC_HAS_SANDBOX
  result = enter_sandbox(plan);
  if (result < 0) return failed_at(SpawnStep::sandbox, result);
#endif
  close_from(plan.pass_fd >= 0 ? 4 : 3, plan.report);
  const KernelSigset none = {};
  set_signal_mask(&none, nullptr);
#if CODEEXEC_HAS_SANDBOX
  if (plan.sandbox) result = install_filter(*plan.sandbox);
  if (result < 0) return failed_at(SpawnStep::sandbox, result);
#endif
  struct Execute {
    CODEEXEC_IN_CHILD int operator()(const char* path, char* const* argv, char* const* variables) {
      return static_cast<int>(-raw(SYS_execve, path, argv, variables));
    }
  };
  return {SpawnStep::exec, execute_first(plan, Execute())};
}

CODEEXEC_IN_CHILD int child_main(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  plan.ran = 1;
  const Failure failure = become_program(plan);
  plan.failed_step = static_cast<int>(failure.step);
  plan.failed_error = failure.error;
  if (plan.report >= 0) raw(SYS_write, plan.report, &failure, sizeof failure);
  for (;;) raw(SYS_exit_group, 127);
}

// Returns when the child has executed its program or has ended.
CODEEXEC_IN_CHILD long clone_child(ChildPlan& plan, char* stack, std::size_t size, int* pidfd) {
  const CloneRequest request = {CLONE_VFORK, child_main, &plan, stack, size, pidfd, SIGCHLD};
  return clone_process(request, plan.handlers_cleared);
}

// Whether clone really shares memory. Emulators (qemu-user, Valgrind) turn it into a fork, and then
// a failure must travel through a pipe. Learned from the first start, which has a pipe in any case.
enum class SharedMemory : int { unknown, yes, no };
std::atomic<SharedMemory> shared_memory{SharedMemory::unknown};

void read_report(const UniqueFd& report, ChildPlan& plan) {
  Failure failure = {};
  if (!read_record(report, failure)) return;
  plan.failed_error = failure.error;
  plan.failed_step = static_cast<int>(failure.step);
}

Spawned spawn_once(ChildPlan& plan) {
  Spawned child;
  child.step = SpawnStep::setup;
  UniqueFd report;
  UniqueFd report_end;
  if (shared_memory.load() != SharedMemory::yes) {
    child.error = make_report_pipe(report, report_end);
    if (child.error != 0) return child;
  }
  plan.report = report_end.get();
  plan.ran = 0;
  plan.failed_error = 0;
  int pidfd = -1;
  long pid = -1;
  {
    alignas(16) char stack[child_stack_size];
    const SignalPause pause;
    pid = clone_child(plan, stack, sizeof stack, &pidfd);
  }
  child.exit_event.reset(above_standard_streams(pidfd));
  if (pid < 0) {
    child.step = SpawnStep::start;
    child.error = static_cast<int>(-pid);
    return child;
  }
  child.pid = static_cast<pid_t>(pid);
  report_end.reset();
  if (plan.report >= 0) shared_memory.store(plan.ran ? SharedMemory::yes : SharedMemory::no);
  if (!plan.ran) read_report(report, plan);
  if (plan.failed_error == 0) {
    if (!child.exit_event)
      child.exit_event.reset(above_standard_streams(
          static_cast<int>(::syscall(SYS_pidfd_open, static_cast<long>(pid), 0L))));
    child.is_pidfd = static_cast<bool>(child.exit_event);
    if (child.is_pidfd) return child;
    plan.failed_error = watch_by_thread(child);
    plan.failed_step = static_cast<int>(SpawnStep::start);
    if (plan.failed_error == 0) return child;
    ::kill(-child.pid, SIGKILL);
  }
  child.error = plan.failed_error;
  child.step = static_cast<SpawnStep>(int{plan.failed_step});
  reap_failed(child.pid);
  child.exit_event.reset();
  return child;
}

#else

// other posix -------------------------------------------------------------------------------------

// Only functions that POSIX allows between fork and exec in a process with threads.
SpawnStep become_program(ChildPlan& plan) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &by_default, nullptr);
  ::setsid();
  if (::dup2(plan.input, 0) < 0 || ::dup2(plan.output, 1) < 0 || ::dup2(plan.error_output, 2) < 0)
    return SpawnStep::stdio;
  if (plan.work_dir_fd >= 0) {
    if (::fchdir(plan.work_dir_fd) != 0) return SpawnStep::work_dir;
  } else if (plan.work_dir) {
    if (::chdir(plan.work_dir) != 0) return SpawnStep::work_dir;
  }
  if (plan.pass_fd == 3) {
    if (::fcntl(3, F_SETFD, 0) < 0) return SpawnStep::pass_fd;
  } else if (plan.pass_fd >= 0) {
    if (::dup2(plan.pass_fd, 3) < 0) return SpawnStep::pass_fd;
  }
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // Above 65536 descriptors a loop would take seconds; what a host opens there must be CLOEXEC.
  rlimit descriptors = {65536, 65536};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const int limit = static_cast<int>(std::min<rlim_t>(descriptors.rlim_cur, 65536));
  for (int fd = plan.pass_fd >= 0 ? 4 : 3; fd < limit; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  errno = execute_first(plan, [](const char* path, char* const* argv, char* const* variables) {
    ::execve(path, argv, variables);
    return errno;
  });
  return SpawnStep::exec;
}

Spawned spawn_once(ChildPlan& plan) {
  Spawned child;
  child.step = SpawnStep::setup;
  UniqueFd report;
  UniqueFd report_end;
  child.error = make_report_pipe(report, report_end);
  if (child.error != 0) return child;
  plan.report = report_end.get();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  child.pid = ::fork();
  if (child.pid == 0) {
    const SpawnStep step = become_program(plan);
    const Failure failure = {step, errno};
    (void)!::write(plan.report, &failure, sizeof failure);
    ::_exit(127);
  }
  child.error = child.pid < 0 ? errno : 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  child.step = SpawnStep::start;
  if (child.pid < 0) return child;
  report_end.reset();
  Failure failure = {};
  if (read_record(report, failure)) {
    child.error = failure.error;
    child.step = failure.step;
  } else {
    child.error = watch_by_thread(child);
    if (child.error == 0) return child;
    ::kill(-child.pid, SIGKILL);
  }
  reap_failed(child.pid);
  return child;
}

#endif

#if CODEEXEC_HAS_SANDBOX

// supervising -------------------------------------------------------------------------------------
//
// A supervised command is the child of a supervisor, and that is ours: a process on this program's
// memory that never executes anything, and so costs a clone without an exec. It is a subreaper:
// whatever the command starts, in whichever session, becomes its child when its own parents die.
// So it can kill all of them when the command ends, when it is told to, and when this program is
// gone, however that came; and it knows that nobody is left when it has no more children.
//
// It shares the memory with threads that go on running: it may use nothing but raw system calls and
// what lies in its Supervision, which must stay until it has ended.

// Where it keeps its descriptors, in a table of its own.
enum SupervisorDescriptor : int { orders_fd, host_fd, command_fd, reports_fd, first_other_fd };

CODEEXEC_IN_CHILD void tell(Supervision& run) {
  raw(SYS_write, run.reports, &run.report, sizeof run.report);
}

// Gives up everything of the host's but what it needs. 0 or a negative errno.
CODEEXEC_IN_CHILD long keep_descriptors(Supervision& run, int command) {
  const int kept[] = {run.orders, run.host, command, run.reports};
  long high[first_other_fd];
  for (int i = 0; i < first_other_fd; ++i) {
    high[i] = raw(SYS_fcntl, kept[i], F_DUPFD, int{first_other_fd});
    if (high[i] < 0 && kept[i] >= 0) return high[i];
  }
  for (int i = 0; i < first_other_fd; ++i) {
    raw(SYS_close, i);
    if (high[i] >= 0) raw(SYS_dup3, high[i], i, 0);
  }
  run.orders = orders_fd;
  run.reports = reports_fd;
  if (run.host >= 0) run.host = host_fd;
  close_from(first_other_fd, -1);
  return 0;
}

// "/proc/PID/task", with "/TID/children" when `thread` is not 0.
CODEEXEC_IN_CHILD void set_path(Supervision& run, int pid, int thread) {
  std::size_t size = 0;
  const char* const parts[] = {"/proc/", "/task", "/", "/children"};
  const int numbers[] = {pid, 0, thread, 0};
  for (int part = 0; part < (thread == 0 ? 2 : 4); ++part) {
    for (const char* c = parts[part]; *c != '\0'; ++c) run.path[size++] = *c;
    int number = numbers[part];
    char digits[12];
    int count = 0;
    for (; number > 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
    while (count > 0) run.path[size++] = digits[--count];
  }
  run.path[size] = '\0';
}

// Adds the processes of such a list to those that were found. False: it cannot be read.
CODEEXEC_IN_CHILD bool find_children(Supervision& run, const char* path) {
  const long list = raw(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
  if (list < 0) return false;
  int pid = 0;
  long size = 0;
  while ((size = raw(SYS_read, list, &run.text[0], sizeof run.text)) > 0) {
    for (long i = 0; i < size; ++i) {
      const char c = run.text[i];
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
        continue;
      }
      // Whom there is no room for is found again once its parents are dead.
      constexpr std::size_t most = sizeof run.found / sizeof run.found[0];
      if (pid > 0 && run.found_count < most) run.found[run.found_count++] = pid;
      pid = 0;
    }
  }
  raw(SYS_close, list);
  return true;
}

CODEEXEC_IN_CHILD void find_children_of(Supervision& run, int pid) {
  set_path(run, pid, 0);
  const long threads = raw(SYS_openat, AT_FDCWD, &run.path[0], O_RDONLY | O_DIRECTORY, 0);
  if (threads < 0) return;
  long size = 0;
  while ((size = raw(SYS_getdents64, threads, &run.entries[0], sizeof run.entries)) > 0) {
    long at = 0;
    while (at < size) {
      const int thread = next_number(run.entries, at);
      if (thread <= 0) continue;
      set_path(run, pid, thread);
      find_children(run, run.path);
    }
  }
  raw(SYS_close, threads);
}

// Kills all descendants, each after it was stopped and looked into, so that it cannot go on making
// others meanwhile. None is reaped during that, and so no number becomes another's. What came in
// between is there for the next time. False: they cannot be found, or not be killed.
CODEEXEC_IN_CHILD bool kill_descendants(Supervision& run) {
  if (run.own_table) {
    // To everybody in that table but itself; elsewhere it would be everybody of the user.
    if (raw(SYS_getpid) == 1) raw(SYS_kill, -1, SIGKILL);
    return true;
  }
  run.found_count = 0;
  run.report.denied = false;
  if (!find_children(run, "/proc/thread-self/children")) return false;
  while (run.found_count > 0) {
    const int pid = run.found[--run.found_count];
    raw(SYS_kill, pid, SIGSTOP);
    find_children_of(run, pid);
    if (raw(SYS_kill, pid, SIGKILL) == -EPERM) run.report.denied = true;
  }
  return !run.report.denied;
}

CODEEXEC_IN_CHILD KernelSigset only_child_ended() {
  KernelSigset set = {};
  set.bits[(SIGCHLD - 1) / 8] = 1u << ((SIGCHLD - 1) % 8);
  return set;
}

// Takes away all that has ended, and how the command did. False: there is nobody left.
CODEEXEC_IN_CHILD bool reap_ended(Supervision& run) {
  SupervisorReport& report = run.report;
  for (;;) {
    run.info.si_pid = 0;
    const long waited =
        raw(SYS_waitid, P_ALL, 0, &run.info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
    if (waited == -ECHILD) return false;
    const long pid = run.info.si_pid;
    if (waited < 0 || pid == 0) return true;
    const bool is_command = pid == report.pid && !report.known;
    const long reaped = raw(SYS_waitid, P_PID, pid, &run.info, WEXITED | WNOHANG | __WALL,
                            is_command ? &report.usage : nullptr);
    if (!is_command || reaped < 0) continue;
    report.known = true;
    report.exited = run.info.si_code == CLD_EXITED;
    report.value = run.info.si_status;
  }
}

// Until nobody is left, however long some take to die. The end of a process that another one traces
// comes only when that one has gone, so that nobody is waited for alone. False: there are some that
// cannot be found or killed, after a second.
CODEEXEC_IN_CHILD bool end_all(Supervision& run) {
  constexpr int most_failures = 100;
  const KernelSigset child_ended = only_child_ended();
  int failures = 0;
  while (reap_ended(run)) {
    if (!kill_descendants(run) && ++failures == most_failures) return false;
    // Signals are blocked here, and so this one stays until it is taken.
    const long time[2] = {0, 10000000};
    raw(SYS_rt_sigtimedwait, &child_ended, as_word(nullptr), &time[0], kernel_sigset_size);
  }
  return true;
}

// Takes away daemons of the command that have ended before it; nobody else would.
CODEEXEC_IN_CHILD void reap_orphans(Supervision& run) {
  for (;;) {
    run.info.si_pid = 0;
    raw(SYS_waitid, P_ALL, 0, &run.info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
    const long pid = run.info.si_pid;
    if (pid == 0 || pid == run.report.pid) return;
    raw(SYS_waitid, P_PID, pid, &run.info, WEXITED | WNOHANG | __WALL, 0);
  }
}

// Waits until the command has ended, or is to end.
CODEEXEC_IN_CHILD void watch_command(Supervision& run) {
  for (;;) {
    pollfd set[4];
    set[0].fd = orders_fd;
    set[1].fd = run.host;
    set[2].fd = command_fd;
    set[3].fd = run.child_ended;
    for (pollfd& entry : set) {
      entry.events = POLLIN;
      entry.revents = 0;
    }
    raw(SYS_ppoll, &set[0], 4, as_word(nullptr), as_word(nullptr), 0);
    if (set[1].revents || set[2].revents) return;
    if (set[3].revents) {
      raw(SYS_read, run.child_ended, &run.text[0], sizeof run.text);
      reap_orphans(run);
    }
    if (!set[0].revents) continue;
    const long size = raw(SYS_read, orders_fd, &run.text[0], sizeof run.text);
    if (size <= 0) return;
    for (long i = 0; i < size; ++i) {
      if (run.text[i] == SIGKILL) return;
      raw(SYS_kill, -run.report.pid, int{run.text[i]});
      __atomic_store_n(&run.signals_sent, run.signals_sent + 1, __ATOMIC_RELEASE);
    }
  }
}

CODEEXEC_IN_CHILD void end_command(Supervision& run) {
  // The command is not reaped yet: the number of its group is still its own.
  raw(SYS_kill, -run.report.pid, SIGKILL);
  raw(SYS_kill, run.report.pid, SIGKILL);
  run.report.all_ended = end_all(run);
}

CODEEXEC_IN_CHILD long start_command(Supervision& run) {
  raw(SYS_prctl, PR_SET_NAME, "codeexec", 0, 0, 0);
  // Who kills the host's group must not kill this, too.
  raw(SYS_setpgid, 0, 0);
  // A host that ignores this signal has its children reaped by the kernel.
  const unsigned long by_default[8] = {};
  raw(SYS_rt_sigaction, SIGCHLD, &by_default[0], as_word(nullptr), kernel_sigset_size);
  long result = raw(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (result == 0) result = set_up_namespaces(*run.sandbox);
  if (result < 0) {
    run.report.failure = failed_at(SpawnStep::sandbox, result);
    return result;
  }
  ChildPlan& plan = *run.plan;
  plan.supervisor = raw(SYS_getpid);
  int command = -1;
  result = clone_child(plan, run.command_stack, sizeof run.command_stack, &command);
  if (result < 0) {
    run.report.failure = failed_at(SpawnStep::start, result);
    return result;
  }
  run.report.pid = result;
  run.report.failure = failed_at(static_cast<SpawnStep>(int{plan.failed_step}), -plan.failed_error);
  const long kept = plan.failed_error == 0 ? keep_descriptors(run, command) : 0;
  if (kept < 0) run.report.failure = failed_at(SpawnStep::start, kept);
  if (run.report.failure.error != 0) {
    end_command(run);
    return -run.report.failure.error;
  }
  const KernelSigset child_ended = only_child_ended();
  run.child_ended = static_cast<int>(
      raw(SYS_signalfd4, -1, &child_ended, kernel_sigset_size, O_CLOEXEC | O_NONBLOCK));
  return 0;
}

// Gives back the pages that the start needed, up to what this and its callers use of the stack.
CODEEXEC_IN_CHILD void give_back_memory(Supervision& run) {
  constexpr std::uintptr_t most_used_from_here = 1024;
  volatile char here = 0;
  const auto begin = reinterpret_cast<std::uintptr_t>(&run);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(&here) - most_used_from_here;
  raw(SYS_madvise, &run, (end - begin) / run.page_size * run.page_size, MADV_DONTNEED);
}

CODEEXEC_IN_CHILD int supervisor_main(void* argument) {
  Supervision& run = *static_cast<Supervision*>(argument);
  run.plan->ran = 1;
  const long result = start_command(run);
  tell(run);
  if (result == 0) {
    give_back_memory(run);
    watch_command(run);
    end_command(run);
    tell(run);
  }
  for (;;) raw(SYS_exit_group, 0);
}

// Of a program that has nothing of a sandbox but, where there can be one, a supervisor.
constexpr SandboxPlan no_sandbox = {false};

struct SharingTrial {
  volatile bool ran = false;
};

CODEEXEC_IN_CHILD int sharing_trial_main(void* argument) {
  static_cast<SharingTrial*>(argument)->ran = true;
  for (;;) raw(SYS_exit_group, 0);
}

// Whether a child shares this program's memory, which is not so in an emulator, and is given with a
// pidfd (Linux 5.2). Learned from one that does nothing, so that no command is started in vain. An
// errno, or 0.
int check_sharing() {
  static std::atomic<bool> shared{false};
  if (shared.load()) return 0;
  alignas(16) char stack[child_stack_size];
  SharingTrial trial;
  int pidfd = -1;
  long pid = -1;
  {
    bool cleared = false;
    const SignalPause pause;
    const CloneRequest request = {
        CLONE_VFORK, sharing_trial_main, &trial, stack, sizeof stack, &pidfd, 0};
    pid = clone_process(request, cleared);
  }
  if (pid < 0) return static_cast<int>(-pid);
  const UniqueFd handle(pidfd);
  while (raw(SYS_wait4, pid, 0, __WALL, 0) == -EINTR) {
  }
  shared.store(trial.ran && handle);
  return shared.load() ? 0 : ENOSYS;
}

// A child that could not be made for want of something that there may be more of in a moment.
bool is_passing(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

int make_supervision(Supervisor& supervisor) {
  // As a stack it is not made of huge pages.
  void* const place = ::mmap(nullptr, sizeof(Supervision), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (place == MAP_FAILED) return errno;
  supervisor.run.reset(::new (place) Supervision);
  supervisor.run->page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return 0;
}

// As spawn_once(), with a supervisor between.
Spawned spawn_supervised(ChildPlan& plan, Supervisor& supervisor) {
  Spawned child;
  child.step = SpawnStep::start;
  child.error = check_sharing();
  child.no_supervisor = child.error != 0 && !is_passing(child.error);
  if (child.error != 0) return child;
  child.step = SpawnStep::setup;
  UniqueFd report_end;
  UniqueFd orders_end;
  child.error = make_report_pipe(supervisor.reports, report_end);
  if (child.error == 0 && !make_pipe(orders_end, supervisor.orders)) child.error = errno;
  if (child.error == 0) child.error = make_supervision(supervisor);
  if (child.error != 0) return child;
  const UniqueFd host(open_pidfd(::getpid()));
  Supervision& run = *supervisor.run;
  run.plan = &plan;
  run.sandbox = plan.sandbox;
  run.own_table = (plan.sandbox->clone_flags & CLONE_NEWPID) != 0;
  run.orders = orders_end.get();
  run.host = host.get();
  run.reports = report_end.get();
  plan.report = -1;
  plan.ran = 0;
  plan.failed_error = 0;
  int pidfd = -1;
  const CloneRequest request = {plan.sandbox->clone_flags, supervisor_main, &run,   run.stack,
                                sizeof run.stack,          &pidfd,          SIGCHLD};
  long pid = -1;
  const NamespaceTurn turn(*plan.sandbox);
  {
    const SignalPause pause;
    pid = clone_process(request, plan.handlers_cleared);
  }
  child.exit_event.reset(above_standard_streams(pidfd));
  if (pid < 0) {
    child.step = SpawnStep::start;
    child.error = static_cast<int>(-pid);
    child.no_supervisor = !is_passing(child.error);
    return child;
  }
  child.pid = static_cast<pid_t>(pid);
  child.is_pidfd = true;
  report_end.reset();
  orders_end.reset();
  SupervisorReport& report = supervisor.last;
  const bool told = read_record(supervisor.reports, report);
  if (!told) report.failure = {SpawnStep::sandbox, ESRCH};
  if (report.failure.error == 0 && child.exit_event) {
    supervisor.command = run.own_table ? -1 : static_cast<pid_t>(report.pid);
    set_nonblocking(supervisor.orders);
    set_nonblocking(supervisor.reports);
    return child;
  }
  child.step = report.failure.step;
  child.error = report.failure.error != 0 ? report.failure.error : EMFILE;
  child.no_supervisor = told && report.pid == 0 && !is_passing(child.error);
  supervisor.orders.reset();  // its order to end
  reap_failed(child.pid);
  // Killed by somebody during the start, it may have left a child that still uses its memory.
  if (!told) (void)supervisor.run.release();
  child.exit_event.reset();
  return child;
}

#endif

// Both failures pass by themselves: a system that is out of processes for a moment, and a program
// that another thread's fork still holds open for writing.
Spawned spawn(ChildPlan& plan, [[maybe_unused]] Supervisor& supervisor) {
  const auto attempt = [&] {
#if CODEEXEC_HAS_SANDBOX
    const bool sandboxed = plan.sandbox && plan.sandbox->supervised;
    if (sandboxed || plan.supervised) {
      Spawned child = spawn_supervised(plan, supervisor);
      if (sandboxed || !child.no_supervisor) return child;
      plan.supervised = false;
      plan.supervisor = 0;
      supervisor = Supervisor();
    }
#endif
    return spawn_once(plan);
  };
  Spawned child = attempt();
  for (const int milliseconds : {1, 5, 20}) {
    if (child.error != EAGAIN && child.error != ETXTBSY) break;
    ::poll(nullptr, 0, milliseconds);
    child = attempt();
  }
  return child;
}

// A program that is there, but whose #! interpreter or dynamic loader is not, fails like a missing
// one. "; its interpreter '/x' is missing" for such a file, else an empty text.
std::string missing_interpreter(const Launch& launch) {
  const ChildPlan& plan = launch.plan;
  UniqueFd directory;
  int base = plan.work_dir_fd >= 0 ? plan.work_dir_fd : AT_FDCWD;
  if (plan.work_dir_fd < 0 && plan.work_dir) {
    directory.reset(::open(plan.work_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    base = directory.get();
  }
  for (const std::string& path : launch.candidates()) {
    struct stat status {};
    if (::fstatat(base, path.c_str(), &status, 0) != 0 || !S_ISREG(status.st_mode)) continue;
    const UniqueFd file(::openat(base, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    char line[256];
    const ssize_t size = file ? ::read(file.get(), line, sizeof line) : -1;
    const std::string_view start(line, size > 0 ? static_cast<std::size_t>(size) : 0);
    if (!starts_with(start, "#!")) return "; the program is there, but its loader is missing";
    const std::size_t begin = std::min(start.find_first_not_of(" \t", 2), start.size());
    const std::size_t end = start.find_first_of(" \t\r\n", begin);
    return concat({"; its interpreter ", quoted(start.substr(begin, end - begin)), " is missing"});
  }
  return {};
}

// As quoted(), without the quotes.
std::string unquoted(std::string_view text) {
  const std::string safe = quoted(text);
  return safe.substr(1, safe.size() - 2);
}

std::string describe_failure(const ProcessOptions& options, const Launch& launch, SpawnStep step,
                             int error) {
  const std::string reason = errno_text(error);
  if (step == SpawnStep::work_dir) {
    const std::string place = options.work_dir_fd >= 0
                                  ? concat({"descriptor ", std::to_string(options.work_dir_fd)})
                                  : quoted(options.work_dir);
    return concat({"cannot enter work_dir ", place, ": ", reason});
  }
  std::string detail = step_name(step);
  if (step == SpawnStep::exec) {
    if (options.argv[0].find('/') == std::string::npos)
      detail += concat({"; looked in PATH=", unquoted(launch.search_path())});
    if (error == ENOENT) detail += missing_interpreter(launch);
  }
  return concat({"cannot start ", quoted(options.argv[0]), ": ", reason, " (", detail, ")"});
}

// Killing -----------------------------------------------------------------------------------------

#if defined(__linux__)

// What /proc/<pid>/stat says about a process.
struct ProcessStat {
  pid_t parent = -1;
  pid_t group = -1;
  pid_t session = -1;
  std::uint64_t start = 0;  // clock ticks since the system's start
  bool dead = false;        // a zombie, or on its way
};

bool read_stat(pid_t pid, ProcessStat& stat) {
  const UniqueFd file(
      ::open(concat({"/proc/", std::to_string(pid), "/stat"}).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return false;
  text[size] = '\0';
  // The name in parentheses may hold anything, more parentheses, too.
  const char* rest = std::strrchr(text, ')');
  if (!rest) return false;
  unsigned long long start = 0;
  char state = '?';
  const int fields = std::sscanf(
      rest + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
      &state, &stat.parent, &stat.group, &stat.session, &start);
  stat.start = start;
  stat.dead = state == 'Z' || state == 'X';
  return fields == 5;
}

// The numbers among the names in a directory of /proc.
std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> numbers;
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return numbers;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view text = entry->d_name;
    int number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size())
      numbers.push_back(number);
  }
  ::closedir(directory);
  return numbers;
}

// Needs CONFIG_PROC_CHILDREN, which distributions have; without it none are found.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = concat({"/proc/", std::to_string(pid), "/task"});
  for (const int task : numbers_in(tasks)) {
    auto content = read_whole_file(concat({tasks, "/", std::to_string(task), "/children"}),
                                   std::size_t{1} << 24, "children");
    if (!content) continue;
    const char* at = content->data();
    const char* const end = at + content->size();
    while (at < end) {
      int child = 0;
      const auto parsed = std::from_chars(at, end, child);
      if (parsed.ec != std::errc()) break;
      children.push_back(child);
      at = parsed.ptr + 1;
    }
  }
  return children;
}

bool signal_pidfd(int pidfd, int number, unsigned flags = 0) {
  return ::syscall(SYS_pidfd_send_signal, static_cast<long>(pidfd), static_cast<long>(number), 0L,
                   static_cast<long>(flags)) == 0;
}

std::string link_target(const std::string& path) {
  char text[512];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

// Clock ticks since the system's start, as /proc/<pid>/stat counts them.
std::uint64_t ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1000000000u;
}

// True when the process has an end for writing of one of the pipes, named as /proc names them.
bool writes_to(pid_t pid, const std::vector<std::string>& pipes) {
  const std::string directory = concat({"/proc/", std::to_string(pid), "/fd"});
  for (const int fd : numbers_in(directory)) {
    const std::string path = concat({directory, "/", std::to_string(fd)});
    const std::string target = link_target(path);
    if (std::find(pipes.begin(), pipes.end(), target) == pipes.end()) continue;
    // The link's permissions are the descriptor's.
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IWUSR) != 0) return true;
  }
  return false;
}

// True when the process was started with this variable in its environment.
bool has_variable(pid_t pid, const std::string& variable) {
  constexpr std::size_t most = std::size_t{4} << 20;
  const std::string path = concat({"/proc/", std::to_string(pid), "/environ"});
  const auto content = read_whole_file(path, most, "environment");
  if (!content) return false;
  const std::string_view variables = *content;
  const std::size_t at = variables.find(variable);
  return at != std::string_view::npos && (at == 0 || variables[at - 1] == '\0');
}

// Signals a process only if it is still the one that was looked at.
void signal_same(pid_t pid, std::uint64_t start, int number) {
  const UniqueFd handle(open_pidfd(pid));
  ProcessStat stat;
  if (!read_stat(pid, stat) || stat.start != start) return;
  if (handle)
    signal_pidfd(handle.get(), number);
  else
    ::kill(pid, number);
}

// What tells the processes of one run from all others, wherever they went.
struct RunMarks {
  pid_t session = -1;
  std::string variable = {};            // of their environment
  std::vector<std::string> pipes = {};  // that only they can write to
  std::uint64_t since = 0;              // the run's start, in ticks
};

// Kills the processes that bear a mark of the run, in rounds until there are none: those that left
// the group, and whose parents are dead. What was there before the run is not ours, whatever pipe
// it was given; nor is a fork of the host that merely caught one. False: there were always more.
bool kill_marked(const RunMarks& marks) {
  constexpr int most_rounds = 16;
  const pid_t self = ::getpid();
  const std::string own_program = link_target("/proc/self/exe");
  std::map<pid_t, std::uint64_t> killed;  // with the time of its start
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<std::pair<pid_t, std::uint64_t>> found;
    for (const pid_t pid : numbers_in("/proc")) {
      if (pid == self || pid == 1 || pid == marks.session) continue;
      ProcessStat stat;
      if (!read_stat(pid, stat) || stat.start < marks.since || stat.dead) continue;
      const auto before = killed.find(pid);
      if (before != killed.end() && before->second == stat.start) continue;
      const bool marked = stat.session == marks.session || has_variable(pid, marks.variable) ||
                          (!marks.pipes.empty() && writes_to(pid, marks.pipes));
      if (!marked) continue;
      const bool our_fork =
          stat.parent == self &&
          link_target(concat({"/proc/", std::to_string(pid), "/exe"})) == own_program;
      if (our_fork) continue;
      // Stopped, it cannot start another before all of them are killed.
      signal_same(pid, stat.start, SIGSTOP);
      found.emplace_back(pid, stat.start);
    }
    if (found.empty()) return true;
    for (const auto& [pid, start] : found) {
      signal_same(pid, start, SIGKILL);
      killed[pid] = start;
    }
  }
  return false;
}

#endif

// Reaping -----------------------------------------------------------------------------------------

// How a child ended, as waitid() tells it.
struct ExitStatus {
  bool known = false;
  bool exited = false;
  int value = 0;  // exit status or signal
  rusage usage = {};
};

void decode_wait_status(int status, ExitStatus& result) {
  result.known = true;
  result.exited = WIFEXITED(status);
  result.value = result.exited ? WEXITSTATUS(status) : WTERMSIG(status);
}

#if defined(__linux__)

// Linux 6.15 keeps the status for the holders of a pidfd when the host has reaped the child, or had
// it reaped by ignoring SIGCHLD.
void ask_pidfd(int pidfd, ExitStatus& result) {
  struct PidfdInfo {  // first version of the kernel's struct pidfd_info
    std::uint64_t mask;
    std::uint64_t cgroup;
    std::uint32_t ids[11];
    std::int32_t exit_code;
  };
  constexpr std::uint64_t wants_exit = 8;
  constexpr unsigned long request = _IOWR(0xFF, 11, PidfdInfo);
  for (int attempt = 0; attempt < 2; ++attempt) {
    PidfdInfo info{};
    info.mask = wants_exit;
    if (::ioctl(pidfd, request, &info) != 0) return;
    if (info.mask & wants_exit) return decode_wait_status(info.exit_code, result);
    // Dead, but not yet gone: the hang-up comes when the kernel has let go of it.
    pollfd gone = {pidfd, 0, 0};
    ::poll(&gone, 1, 200);
  }
}

#endif

// Takes the zombie away. Never claims success for a status that is lost.
ExitStatus reap(const UniqueFd& exit_event, bool is_pidfd, pid_t pid) {
  ExitStatus result;
#if defined(__linux__)
  // The kernel's waitid, unlike libc's, gives the resources used as well.
  siginfo_t info{};
  const long type = is_pidfd ? 3 /* P_PIDFD */ : P_PID;
  const long id = is_pidfd ? exit_event.get() : pid;
  long failed = 0;
  do failed = ::syscall(SYS_waitid, type, id, &info, long{WEXITED}, &result.usage);
  while (failed != 0 && errno == EINTR);
  if (failed == 0) {
    result.known = true;
    result.exited = info.si_code == CLD_EXITED;
    result.value = info.si_status;
  } else if (is_pidfd) {
    ask_pidfd(exit_event.get(), result);
  }
#else
  (void)exit_event;
  (void)is_pidfd;
  int status = 0;
  pid_t reaped = 0;
  do reaped = ::wait4(pid, &status, 0, &result.usage);
  while (reaped < 0 && errno == EINTR);
  if (reaped == pid) decode_wait_status(status, result);
#endif
  return result;
}

// Children that did not die of SIGKILL (they wait in the kernel for a device or a network file
// system). They are reaped when they have ended, at some later start.
struct Abandoned {
  std::mutex mutex = {};
  std::vector<pid_t> pids = {};
  std::atomic<bool> any{false};
};

// Never destroyed: handles in static objects may end after it would.
Abandoned& abandoned() {
  static Abandoned& list = *new Abandoned;
  return list;
}

void reap_abandoned() {
  Abandoned& list = abandoned();
  if (!list.any.load()) return;
  const std::lock_guard<std::mutex> lock(list.mutex);
  const auto gone = [](pid_t pid) {
    siginfo_t info{};
    const int failed = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG);
    return failed != 0 || info.si_pid == pid;
  };
  list.pids.erase(std::remove_if(list.pids.begin(), list.pids.end(), gone), list.pids.end());
  list.any.store(!list.pids.empty());
}

// Capturing ---------------------------------------------------------------------------------------

// Bytes at the end of a text that begin a UTF-8 sequence which goes on after it.
std::size_t cut_at_end(std::string_view text) {
  const std::size_t most = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= most; ++back) {
    const std::size_t start = text.size() - back;
    const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + start;
    if ((*s & 0xc0) == 0x80) continue;
    return utf8_step(s, back).cut ? back : 0;
  }
  return 0;
}

// Bytes at the start of a text that can only end a UTF-8 sequence which began before it.
std::size_t cut_at_start(std::string_view text) {
  std::size_t size = 0;
  while (size < 3 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
    ++size;
  return size;
}

// A new file for the whole of a stream. -1 and errno on failure.
int open_spill_file(const std::string& directory, std::string_view suffix, std::string& path) {
  unsigned char bytes[12];
  if (::getentropy(bytes, sizeof bytes) != 0) return -1;
  std::string random;
  constexpr char digits[] = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    random += digits[byte >> 4];
    random += digits[byte & 15];
  }
  path = concat({directory, "/codeexec-", random, suffix});
  return above_standard_streams(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
}

}  // namespace

const char* name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::exited:
      return "exited";
    case Outcome::signaled:
      return "signaled";
    case Outcome::timed_out:
      return "timed_out";
    case Outcome::cancelled:
      return "cancelled";
    case Outcome::refused:
      return "refused";
    case Outcome::not_started:
      return "not_started";
    case Outcome::unknown:
      break;
  }
  return "unknown";
}

// The kept bytes lie in one row of blocks: first the head, then the tail as a ring. As long as
// nothing was dropped the position is the offset.
Capture::Capture(std::size_t max_bytes) : Capture(max_bytes, max_bytes / 2) {}

Capture::Capture(std::size_t max_bytes, std::size_t head_bytes)
    : max_bytes_(max_bytes), head_size_(std::min(max_bytes, head_bytes)) {}

std::size_t Capture::position(std::uint64_t offset) const noexcept {
  if (offset < head_size_) return static_cast<std::size_t>(offset);
  return head_size_ + static_cast<std::size_t>((offset - head_size_) % (max_bytes_ - head_size_));
}

// Bytes from a position to the end of its block, of the head or of the ring.
std::size_t Capture::contiguous(std::size_t position) const noexcept {
  const std::size_t block_end = (position / block_size + 1) * block_size;
  const std::size_t part_end = position < head_size_ ? head_size_ : max_bytes_;
  return std::min(block_end, part_end) - position;
}

std::uint64_t Capture::tail_begin() const noexcept {
  if (total_ <= max_bytes_) return std::min<std::uint64_t>(total_, head_size_);
  return total_ - (max_bytes_ - head_size_);
}

void Capture::add(std::string_view bytes) {
  const std::size_t tail_size = max_bytes_ - head_size_;
  while (!bytes.empty()) {
    // What the same call would overwrite again is not copied.
    if (total_ >= head_size_ && bytes.size() > tail_size) {
      total_ += bytes.size() - tail_size;
      bytes.remove_prefix(bytes.size() - tail_size);
      if (bytes.empty()) return;
    }
    std::size_t size = bytes.size();
    char* const place = room(total_, size);
    std::memcpy(place, bytes.data(), size);
    total_ += size;
    bytes.remove_prefix(size);
  }
}

// True when so many bytes more can be put where they belong without overwriting each other, and as
// many came already: room for a flood is made when there is one.
bool Capture::keeps_only_end(std::size_t size) const noexcept {
  return total_ >= std::max(head_size_, size) && max_bytes_ - head_size_ >= size;
}

// Where the byte at an offset goes; `size` is cut down to what is in one piece from there.
char* Capture::room(std::uint64_t offset, std::size_t& size) {
  const std::size_t at = position(offset);
  size = std::min(size, contiguous(at));
  if (at / block_size == 0 && at + size > first_size_) grow_first(at + size);
  while (blocks_.size() <= at / block_size) {
    const std::size_t begin = blocks_.size() * block_size;
    blocks_.emplace_back(new char[std::min(block_size, max_bytes_ - begin)]);
  }
  return blocks_[at / block_size].get() + at % block_size;
}

// At least by half, so that single bytes cost no more.
void Capture::grow_first(std::size_t size) {
  constexpr std::size_t smallest = 64;
  const std::size_t wanted = std::max({smallest, size, first_size_ + first_size_ / 2});
  const std::size_t grown = std::min({wanted, block_size, max_bytes_});
  std::unique_ptr<char[]> block(new char[grown]);
  if (blocks_.empty()) blocks_.emplace_back();
  if (first_size_ > 0) std::memcpy(block.get(), blocks_[0].get(), first_size_);
  blocks_[0] = std::move(block);
  first_size_ = grown;
}

void Capture::visit(std::uint64_t begin, std::uint64_t end,
                    FunctionRef<void(std::string_view)> use) const {
  while (begin < end) {
    const std::size_t at = position(begin);
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(contiguous(at), end - begin));
    use(std::string_view(blocks_[at / block_size].get() + at % block_size, size));
    begin += size;
  }
}

std::string Capture::bytes(std::uint64_t begin, std::uint64_t end) const {
  std::string result;
  result.reserve(static_cast<std::size_t>(end - begin));
  visit(begin, end, [&](std::string_view piece) { result.append(piece); });
  return result;
}

std::string Capture::text(OutputCounts* counts) const {
  std::uint64_t invalid = 0;
  std::uint64_t dropped = 0;
  std::string result;
  if (total_ <= max_bytes_) {
    std::string all = bytes(0, total_);
    result = is_utf8(all) ? std::move(all) : to_utf8(all, &invalid);
  } else {
    const std::string head = bytes(0, head_size_);
    const std::string tail = bytes(tail_begin(), total_);
    const std::size_t head_cut = cut_at_end(head);
    const std::size_t tail_cut = cut_at_start(tail);
    dropped = total_ - max_bytes_ + head_cut + tail_cut;
    const std::string_view head_kept = std::string_view(head).substr(0, head.size() - head_cut);
    const std::string_view tail_kept = std::string_view(tail).substr(tail_cut);
    result = concat({to_utf8(head_kept, &invalid), "\n... (truncated, exceeded ",
                     std::to_string(max_bytes_), " bytes: ", std::to_string(dropped),
                     " bytes omitted) ...\n", to_utf8(tail_kept, &invalid)});
  }
  if (counts) {
    counts->total_bytes = total_;
    counts->dropped_bytes = dropped;
    counts->invalid_bytes = invalid;
  }
  return result;
}

Capture::Chunk Capture::read(std::uint64_t cursor, bool ended) const {
  Chunk chunk;
  cursor = std::min(cursor, total_);
  const std::uint64_t head_end = std::min<std::uint64_t>(total_, head_size_);
  const std::uint64_t resume = std::max(cursor, tail_begin());
  const std::uint64_t gap_begin = std::max(cursor, head_end);
  std::string before = cursor < head_end ? bytes(cursor, head_end) : std::string();
  std::string after = bytes(resume, total_);
  if (resume > gap_begin) {
    const std::size_t head_cut = cut_at_end(before);
    const std::size_t tail_cut = cut_at_start(after);
    before.resize(before.size() - head_cut);
    after.erase(0, tail_cut);
    chunk.missed = resume - gap_begin + head_cut + tail_cut;
  }
  const std::size_t waiting = ended ? 0 : cut_at_end(after.empty() ? before : after);
  (after.empty() ? before : after).resize((after.empty() ? before : after).size() - waiting);
  chunk.next = total_ - waiting;
  if (chunk.missed > 0)
    before = concat({to_utf8(before), "\n... (", std::to_string(chunk.missed),
                     " bytes omitted) ...\n", to_utf8(after)});
  else
    before = to_utf8(concat({before, after}));
  chunk.text = std::move(before);
  return chunk;
}

// Masking -----------------------------------------------------------------------------------------

static_assert(Redactor::min_size == shortest_secret && Redactor::max_total == longest_secrets,
              "the environment checks what the redactor can do");

// The secrets as a trie. States are numbered in breadth-first order, so that the children of each
// have numbers in a row, in order of their bytes: no state needs a table of 256.
struct Redactor::Table {
  using Index = std::uint32_t;
  static constexpr Index root = 0;

  std::array<Index, 256> root_children = {};
  std::vector<Index> first_child = {root +
                                    1};    // of each state, and one more for the last one's end
  std::vector<unsigned char> label = {0};  // the byte that leads to it
  std::vector<Index> depth = {0};
  std::vector<Index> match = {0};  // length of the longest secret that ends here, or 0
  // The state of the longest shorter suffix that can go on.
  std::vector<Index> fallback = {root};

  explicit Table(const std::vector<std::string_view>& secrets) {
    build_trie(secrets);
    link();
  }

  bool is_leaf(Index state) const { return first_child[state] == first_child[state + 1]; }

  // The child for that byte, or the root.
  Index child(Index state, unsigned char byte) const {
    if (state == root) return root_children[byte];
    const auto begin = label.begin() + first_child[state];
    const auto end = label.begin() + first_child[state + 1];
    const auto at = std::lower_bound(begin, end, byte);
    return at != end && *at == byte ? static_cast<Index>(at - label.begin()) : root;
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
  // `secrets` are sorted and different, so that those with a common beginning stand in a row.
  void build_trie(const std::vector<std::string_view>& secrets) {
    struct Row {
      std::size_t begin;
      std::size_t end;
    };
    std::vector<Row> rows = {{0, secrets.size()}};  // of each state
    for (std::size_t state = 0; state < rows.size(); ++state) {
      first_child.resize(state + 1);
      first_child[state] = static_cast<Index>(rows.size());
      const Index level = depth[state];
      std::size_t at = rows[state].begin;
      const std::size_t end = rows[state].end;
      if (secrets[at].size() == level) {
        match[state] = level;
        ++at;
      }
      while (at < end) {
        const char byte = secrets[at][level];
        const std::size_t begin = at;
        while (at < end && secrets[at][level] == byte) ++at;
        if (state == root)
          root_children[static_cast<unsigned char>(byte)] = static_cast<Index>(rows.size());
        rows.push_back({begin, at});
        label.push_back(static_cast<unsigned char>(byte));
        depth.push_back(level + 1);
        match.push_back(0);
      }
    }
    first_child.push_back(static_cast<Index>(rows.size()));
  }

  // From the shallow to the deep: what a state falls back to is always done already.
  void link() {
    fallback.assign(depth.size(), root);
    for (Index state = root; state < depth.size(); ++state) {
      for (Index below = first_child[state]; below < first_child[state + 1]; ++below) {
        const Index suffix = state == root ? root : next(fallback[state], label[below]);
        if (match[below] == 0) match[below] = match[suffix];
        fallback[below] = is_leaf(suffix) ? fallback[suffix] : suffix;
      }
    }
  }
};

Redactor::Redactor(const std::vector<std::string>& secrets) {
  std::vector<std::string_view> wanted;
  for (const std::string& secret : secrets) {
    const std::string_view text = without_line_ends(secret);
    if (text.size() >= min_size) wanted.push_back(text);
  }
  if (wanted.empty()) return;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  table_ = std::make_shared<const Table>(wanted);
}

std::string_view Redactor::add(std::string_view bytes) {
  // Bounds what is found, but not settled, whatever the size of `bytes` is.
  constexpr std::size_t most = 65536;
  out_.clear();
  if (!table_) return out_ = bytes;
  while (!bytes.empty()) {
    scan(bytes.substr(0, most));
    bytes.remove_prefix(std::min(bytes.size(), most));
  }
  return out_;
}

std::string_view Redactor::finish() {
  out_.clear();
  settle(position_);
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

void Redactor::scan(std::string_view piece) {
  const Table& table = *table_;
  auto state = static_cast<Table::Index>(state_);
  for (std::size_t i = 0; i < piece.size(); ++i) {
    state = table.next(state, static_cast<unsigned char>(piece[i]));
    const std::uint64_t end = position_ + i + 1;
    if (table.match[state] > 0) found(end - table.match[state], end);
    // Nothing can begin where a secret that has ended began.
    if (table.is_leaf(state)) state = table.fallback[state];
  }
  state_ = state;
  held_.append(piece);
  position_ += piece.size();
  settle(position_ - table.depth[state]);
  // As with the spans.
  const auto undecided = static_cast<std::size_t>(position_ - decided_);
  if (undecided <= held_.size() / 2) held_.erase(0, held_.size() - undecided);
}

void Redactor::found(std::uint64_t begin, std::uint64_t end) {
  while (spans_.size() > first_span_ && spans_.back().end > begin) {
    begin = std::min(begin, spans_.back().begin);
    spans_.pop_back();
  }
  if (begin < masked_until_)
    masked_until_ = end;
  else
    spans_.push_back({begin, end});
}

// Returns what is certain when no secret can begin before `limit` any more.
void Redactor::settle(std::uint64_t limit) {
  decided_ = std::max(decided_, masked_until_);
  for (; first_span_ < spans_.size() && spans_[first_span_].begin <= limit; ++first_span_) {
    give(spans_[first_span_].begin);
    out_ += mask;
    ++count_;
    decided_ = masked_until_ = spans_[first_span_].end;
  }
  // Only when the done ones are the larger part, so that it costs no more than they did.
  if (first_span_ > spans_.size() / 2) {
    spans_.erase(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(first_span_));
    first_span_ = 0;
  }
  give(limit);
}

// Returns the bytes up to that offset.
void Redactor::give(std::uint64_t end) {
  if (end <= decided_) return;
  const std::uint64_t held_begin = position_ - held_.size();
  out_.append(held_, static_cast<std::size_t>(decided_ - held_begin),
              static_cast<std::size_t>(end - decided_));
  decided_ = end;
}

// One child ---------------------------------------------------------------------------------------

// Fields above the mutex belong to the thread that pumps; those below are shared with the handles.
struct Process::State {
  enum class Phase { running, asked_to_end, killed, draining, over };

  // The whole of a stream, in a file.
  struct Spill {
    UniqueFd file = UniqueFd();
    std::string path = {};
    std::uint64_t written = 0;
    bool tried = false;
    std::string problem = {};
  };

  struct Output {
    Stream stream;
    UniqueFd pipe = UniqueFd();
    UniqueFd writer = UniqueFd();  // our own copy of the program's end, see start()
    bool open = false;             // not yet seen at its end
    Spill spill = {};
    Capture capture;
    Redactor redactor = {};
    Output(Stream which, std::size_t max_bytes, bool only_end)
        : stream(which), capture(max_bytes, only_end ? 0 : max_bytes / 2) {}
  };

  // A descendant outside the process group. Its start tells it from a later one of that number.
  struct Escaped {
    pid_t pid = -1;
    std::uint64_t start = 0;
  };

  static constexpr std::size_t buffer_size = 65536;

  // Where output is read to on its way; one serves all states of a thread. Not on the stack, of
  // which threads may have little, not zeroed, and only made for a program that prints something.
  class ReadBuffer {
   public:
    char* data() {
      if (!bytes_) bytes_.reset(new char[buffer_size]);
      return bytes_.get();
    }

   private:
    std::unique_ptr<char[]> bytes_ = {};
  };

  // The descriptors that are waited for, in this order.
  enum Slot { slot_out, slot_err, slot_input, slot_exit, slot_cancel, slot_count };

  explicit State(const ProcessOptions& borrowed)
      : options(borrowed),
        out(Stream::out, borrowed.max_output, borrowed.keep_end_only),
        err(Stream::err, borrowed.merge_streams ? 0 : borrowed.max_output, borrowed.keep_end_only) {
    if (!options.secrets.empty() && total_size(options.secrets) <= Redactor::max_total)
      out.redactor = err.redactor = Redactor(options.secrets);
  }
  explicit State(std::unique_ptr<ProcessOptions> given) : State(*given) {
    owned_options = std::move(given);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;

  // With `hold_writers` the program's ends of the pipes stay open here until it has ended, so that
  // its exit wakes this thread once and not three times. That costs two descriptors for each.
  bool start(bool hold_writers);
  void add_descriptors(std::vector<pollfd>& set);
  Clock::time_point deadline() const;
  void step(const std::vector<pollfd>& set, ReadBuffer& buffer);
  bool over() const { return phase == Phase::over; }

  // Of options that are its own: what only the start needs, which is most of it.
  void forget_start();

  // For the handles.
  bool signal_group(int number);

  std::unique_ptr<ProcessOptions> owned_options = {};
  const ProcessOptions& options;
  Function<void(const ProcessResult&)> on_end = {};
  Phase phase = Phase::running;
  Outcome stopped_as = Outcome::exited;  // timed_out or cancelled once it was asked to end
  pid_t pid = -1;                        // of our child: the program, or its supervisor
  UniqueFd exit_event = UniqueFd();
  bool is_pidfd = false;
  pthread_t waiter = {};
  Supervisor supervisor = {};
#if CODEEXEC_HAS_SANDBOX
  RunCgroup cgroup = {};
#endif
  Output out;
  Output err;
  UniqueFd input = UniqueFd();
  std::string_view unwritten = {};  // of options.input, then of `current_input`
  std::string current_input = {};
  std::vector<Escaped> escaped = {};
  bool scattered_killed = false;
  std::string run_variable = {};  // NAME=value, in the environment of this run alone
  std::uint64_t start_ticks = 0;
  std::size_t slots[slot_count] = {};
  Clock::time_point started = {};
  Clock::time_point ended = {};
  Clock::time_point timeout_at = Clock::time_point::max();
  Clock::time_point heartbeat_at = Clock::time_point::max();
  Clock::time_point disk_check_at = Clock::time_point::max();
  std::uint64_t free_disk = 0;  // bytes, at the start
  bool disk_reached = false;
  Clock::time_point phase_until = {};  // of asked_to_end and killed
  Clock::time_point drain_until = {};
  Clock::time_point drain_end = {};

  std::atomic<bool> cancel_asked{false};
  std::atomic<bool> kill_asked{false};
  std::mutex mutex = {};
  std::condition_variable ended_event = {};
  std::string queued_input = {};
  bool input_open = false;
  bool input_ends = true;  // when everything queued is written
  bool reaped = false;
  bool done = false;
  ProcessResult result = {};

 private:
  static constexpr std::size_t no_slot = std::size_t(-1);

  bool refuse_options();
  bool fail(SpawnStep step, int error, std::string message);
  void add_slot(std::vector<pollfd>& set, Slot slot, int fd, short events);
  short events_of(const std::vector<pollfd>& set, Slot slot) const;
  void output_event(Output& output, short events, ReadBuffer& buffer, Clock::time_point now);
  void read_output(Output& output, ReadBuffer& buffer, Clock::time_point now);
  ssize_t read_in_place(Output& output);
  void take_output(Output& output, std::string_view bytes);
  void keep_output(Output& output, std::string_view bytes);
  void end_output(Output& output);
  void spill(Output& output, std::string_view bytes);
  void write_spill(Output& output, std::string_view bytes);
  bool more_input();
  void feed_input();
  void close_input();
  void check_time(Clock::time_point now);
  void check_disk(Clock::time_point now);
  void ask_to_end(Outcome why, Clock::time_point now);
  void kill_all();
  void kill_background();
  void leader_ended(ReadBuffer& buffer, Clock::time_point now);
  void kill_scattered(Clock::time_point now);
  void drain_further(Clock::time_point now);
  void finish(bool abandon);
  void fill_status();
  void fill_output(Output& output, std::string& text, OutputCounts& counts, std::string& file);
  bool find_escaped();
  void signal_escaped(int number);
  bool supervised() const;
  pid_t command() const;
  bool order(int number);
  void await_group_signals();
  void take_report();
  bool none_left() const;  // nothing of the run is alive, for sure
  ExitStatus last_status();
  void name_limits();
};

// Fails the start for a mistake of the caller's, before anything is made.
bool Process::State::refuse_options() {
  const auto has_nul = [](const std::string& text) { return text.find('\0') != text.npos; };
  const auto any_nul = [&](const std::vector<std::string>& texts) {
    return std::any_of(texts.begin(), texts.end(), has_nul);
  };
  if (options.argv.empty()) return !fail(SpawnStep::setup, EINVAL, "argv is empty: no program");
  const char* where = nullptr;
  if (any_nul(options.argv)) where = "argv";
  if (any_nul(options.environment)) where = "environment";
  if (has_nul(options.work_dir)) where = "work_dir";
  if (has_nul(options.spill_dir)) where = "spill_dir";
  if (where)
    return !fail(SpawnStep::setup, EINVAL,
                 concat({"cannot start ", quoted(options.argv[0]), ": ", where,
                         " has a NUL byte in it, which no program can be given"}));
  if (total_size(options.secrets) > Redactor::max_total)
    return !fail(SpawnStep::setup, E2BIG,
                 concat({"cannot start ", quoted(options.argv[0]), ": secrets has more than ",
                         std::to_string(Redactor::max_total), " bytes"}));
  return false;
}

// Always false, so that a failing step can return it.
bool Process::State::fail(SpawnStep step, int error, std::string message) {
  phase = Phase::over;
  result.outcome = Outcome::not_started;
  result.system_error = error;
  result.step = step_name(step);
  result.message = std::move(message);
  done = true;
  return false;
}

bool Process::State::start(bool hold_writers) {
  reap_abandoned();
  if (refuse_options()) return false;
  if (options.cancel && options.cancel->cancelled()) {
    fail(SpawnStep::setup, ECANCELED, "cancelled before it was started");
    result.outcome = Outcome::cancelled;
    return false;
  }
#if defined(__linux__)
  start_ticks = ticks_now();
#endif
  static std::atomic<std::uint64_t> runs{0};
  run_variable = concat({run_variable_name, std::to_string(::getpid()), "-",
                         std::to_string(start_ticks), "-", std::to_string(runs.fetch_add(1))});
  Launch launch(options, run_variable);
#if CODEEXEC_HAS_SANDBOX
  if (options.sandbox.state_) {
    auto made = RunCgroup::make(*options.sandbox.state_);
    if (!made) return fail(SpawnStep::sandbox, made.error().system_error, made.error().message);
    cgroup = std::move(*made);
    launch.plan.sandbox = &options.sandbox.state_->plan;
    launch.plan.cgroups = cgroup.descriptors();
    launch.plan.cgroup_count = cgroup.count();
  } else if (options.supervised) {
    launch.plan.sandbox = &no_sandbox;
  }
  launch.plan.supervised = options.supervised;
#endif
  const auto fail_at = [&](SpawnStep step, int error) {
    return fail(step, error, describe_failure(options, launch, step, error));
  };
  UniqueFd child_out;
  UniqueFd child_err;
  UniqueFd child_in;
  if (!make_pipe(out.pipe, child_out)) return fail_at(SpawnStep::setup, errno);
  if (!options.merge_streams && !make_pipe(err.pipe, child_err))
    return fail_at(SpawnStep::setup, errno);
  if (options.input.empty() && !options.keep_input_open) {
    child_in.reset(above_standard_streams(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    if (!child_in) return fail_at(SpawnStep::setup, errno);
  } else if (!make_pipe(child_in, input)) {
    return fail_at(SpawnStep::setup, errno);
  }
  launch.plan.input = child_in.get();
  launch.plan.output = child_out.get();
  launch.plan.error_output = options.merge_streams ? child_out.get() : child_err.get();
  started = Clock::now();
  Spawned child = spawn(launch.plan, supervisor);
  if (child.error != 0) return fail_at(child.step, child.error);
  pid = child.pid;
  exit_event = std::move(child.exit_event);
  is_pidfd = child.is_pidfd;
  waiter = child.waiter;
  result.pid = command();
  out.open = true;
  err.open = !options.merge_streams;
  if (hold_writers) {
    out.writer = std::move(child_out);
    err.writer = std::move(child_err);
  }
  set_nonblocking(out.pipe);
  set_nonblocking(err.pipe);
  set_nonblocking(input);
  unwritten = options.input;
  input_open = static_cast<bool>(input);
  input_ends = !options.keep_input_open;
  timeout_at = later(started, options.timeout);
  if (options.heartbeat.count() > 0 && options.on_heartbeat)
    heartbeat_at = later(started, options.heartbeat);
  if (options.sandbox.state_ && options.sandbox.state_->disk_root) {
    free_disk = free_bytes(options.sandbox.state_->disk_root);
    disk_check_at = started;
  }
  return true;
}

void Process::State::forget_start() {
  for (auto* texts : {&owned_options->argv, &owned_options->environment, &owned_options->secrets})
    std::vector<std::string>().swap(*texts);
}

void Process::State::add_slot(std::vector<pollfd>& set, Slot slot, int fd, short events) {
  slots[slot] = no_slot;
  if (fd < 0) return;
  slots[slot] = set.size();
  set.push_back({fd, events, 0});
}

short Process::State::events_of(const std::vector<pollfd>& set, Slot slot) const {
  return slots[slot] == no_slot ? short{0} : set[slots[slot]].revents;
}

void Process::State::add_descriptors(std::vector<pollfd>& set) {
  add_slot(set, slot_out, out.open ? out.pipe.get() : -1, POLLIN);
  add_slot(set, slot_err, err.open ? err.pipe.get() : -1, POLLIN);
  // Without anything to write, only the reader's end of it is of interest.
  add_slot(set, slot_input, input.get(), input && more_input() ? POLLOUT : short{0});
  add_slot(set, slot_exit, phase == Phase::draining ? -1 : exit_event.get(), POLLIN);
  const bool may_cancel = options.cancel && phase == Phase::running;
  add_slot(set, slot_cancel, may_cancel ? options.cancel->descriptor() : -1, POLLIN);
}

Clock::time_point Process::State::deadline() const {
  switch (phase) {
    case Phase::running:
      return std::min({timeout_at, heartbeat_at, disk_check_at});
    case Phase::asked_to_end:
    case Phase::killed:
      return std::min(phase_until, heartbeat_at);
    case Phase::draining:
      return drain_until;
    case Phase::over:
      break;
  }
  return Clock::time_point::max();
}

void Process::State::step(const std::vector<pollfd>& set, ReadBuffer& buffer) {
  const Clock::time_point now = Clock::now();
  output_event(out, events_of(set, slot_out), buffer, now);
  output_event(err, events_of(set, slot_err), buffer, now);
  const short input_events = events_of(set, slot_input);
  if (input_events & POLLOUT)
    feed_input();
  else if (input_events)
    close_input();
  if (events_of(set, slot_exit)) leader_ended(buffer, now);
  check_time(now);
}

void Process::State::check_time(Clock::time_point now) {
  const bool cancelled = cancel_asked.load() || (options.cancel && options.cancel->cancelled());
  if (phase == Phase::running || phase == Phase::asked_to_end) {
    if (now >= heartbeat_at) {
      options.on_heartbeat();
      heartbeat_at = later(now, options.heartbeat);
    }
  }
  switch (phase) {
    case Phase::running:
      if (kill_asked.load() || cancelled)
        ask_to_end(Outcome::cancelled, now);
      else if (now >= timeout_at)
        ask_to_end(Outcome::timed_out, now);
      else if (now >= disk_check_at)
        check_disk(now);
      break;
    case Phase::asked_to_end:
      if (kill_asked.load() || now >= phase_until) {
        kill_all();
        phase = Phase::killed;
        phase_until = now + std::chrono::seconds(2);
      }
      break;
    case Phase::killed:
      if (now >= phase_until) finish(true);
      break;
    case Phase::draining:
      if (!out.open && !err.open)
        finish(false);
      else if (now >= drain_until)
        drain_further(now);
      break;
    case Phase::over:
      break;
  }
}

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
  // So many and no more: `yes` must not keep a deadline from being seen.
  constexpr int most_reads = 16;
  for (int count = 0; count < most_reads; ++count) {
    const bool direct = options.spill_dir.empty() && output.redactor.empty() &&
                        output.capture.keeps_only_end(buffer_size);
    const ssize_t size =
        direct ? read_in_place(output) : ::read(output.pipe.get(), buffer.data(), buffer_size);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return end_output(output);
    if (!direct) take_output(output, {buffer.data(), static_cast<std::size_t>(size)});
    if (phase == Phase::draining) drain_until = std::min(later(now, options.drain), drain_end);
    // The pipe is probably empty now; poll knows better than another read.
    else if (static_cast<std::size_t>(size) < buffer_size)
      return;
  }
}

// Reads at most buffer_size bytes to where they are kept: without a copy between, a flood is read
// as fast as if it were thrown away.
ssize_t Process::State::read_in_place(Output& output) {
  // 64 KiB lie in five blocks at most, and in two parts when the ring begins again.
  constexpr int most_pieces = 7;
  Capture& capture = output.capture;
  iovec pieces[most_pieces];
  int count = 0;
  std::unique_lock<std::mutex> lock(mutex);
  for (std::size_t planned = 0; planned < buffer_size && count < most_pieces; ++count) {
    std::size_t size = buffer_size - planned;
    pieces[count].iov_base = capture.room(capture.total_ + planned, size);
    pieces[count].iov_len = size;
    planned += size;
  }
  const ssize_t size = ::readv(output.pipe.get(), pieces, count);
  if (size <= 0) return size;
  capture.total_ += static_cast<std::uint64_t>(size);
  lock.unlock();
  if (options.on_output)
    capture.visit(capture.total_ - static_cast<std::uint64_t>(size), capture.total_,
                  [&](std::string_view piece) { options.on_output(output.stream, piece); });
  return size;
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
  if (!options.spill_dir.empty()) spill(output, bytes);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    output.capture.add(bytes);
  }
  options.on_output(output.stream, bytes);
}

void Process::State::spill(Output& output, std::string_view bytes) {
  Spill& file = output.spill;
  if (!file.tried) {
    if (output.capture.total_bytes() + bytes.size() <= options.max_output) return;
    file.tried = true;
    const bool is_out = output.stream == Stream::out;
    file.file.reset(open_spill_file(options.spill_dir, is_out ? ".out" : ".err", file.path));
    if (!file.file) {
      file.problem = concat({"cannot make ", quoted(file.path), ": ", errno_text(errno)});
      file.path.clear();
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
  const std::uint64_t room = options.max_spill - std::min(options.max_spill, file.written);
  const bool fits = bytes.size() <= room;
  if (!fits) bytes = bytes.substr(0, static_cast<std::size_t>(room));
  while (!bytes.empty()) {
    const ssize_t size = ::write(file.file.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      file.problem =
          concat({"output file ", quoted(file.path), " is not complete: ", errno_text(errno)});
      return file.file.reset();
    }
    file.written += static_cast<std::uint64_t>(size);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  if (fits) return;
  file.problem = concat({"output file ", quoted(file.path), " is not complete: max_spill is ",
                         std::to_string(options.max_spill), " bytes"});
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
  NoSigpipe guard;
  const ssize_t size = ::write(input.get(), unwritten.data(), std::min(unwritten.size(), most));
  if (size < 0 && errno == EPIPE) {
    // A program may stop reading when it knows enough.
    guard.take_back();
    close_input();
  } else if (size >= 0) {
    unwritten.remove_prefix(static_cast<std::size_t>(size));
    more_input();
  } else if (errno != EAGAIN && errno != EINTR) {
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

// Nothing tells when a disk fills up, so it is looked at now and then.
void Process::State::check_disk(Clock::time_point now) {
  constexpr std::chrono::milliseconds interval(250);
  const Sandbox::State& sandbox = *options.sandbox.state_;
  const std::uint64_t free_now = free_bytes(sandbox.disk_root);
  disk_check_at = later(now, interval);
  if (free_now >= free_disk || free_disk - free_now <= sandbox.options.limits.disk) return;
  disk_reached = true;
  ask_to_end(Outcome::signaled, now);
}

void Process::State::ask_to_end(Outcome why, Clock::time_point now) {
  stopped_as = why;
  phase = Phase::asked_to_end;
  // Asked politely, it would go on writing.
  const bool at_once = kill_asked.load() || disk_reached;
  phase_until = at_once ? now : later(now, options.kill_grace);
  if (now >= phase_until) return check_time(now);
  find_escaped();
  signal_group(SIGTERM);
  signal_group(SIGCONT);
  // A shell that waits for one of these would otherwise end as if nothing had been asked of it.
  if (!escaped.empty()) await_group_signals();
  signal_escaped(SIGTERM);
  signal_escaped(SIGCONT);
}

// Stops first, so that nobody forks away from under the search, then kills.
void Process::State::kill_all() {
  if (supervised()) {
    order(SIGKILL);
    // Somebody may have stopped it.
    ::kill(pid, SIGCONT);
    return;
  }
  signal_group(SIGSTOP);
  for (int round = 0; round < 16 && find_escaped(); ++round) signal_escaped(SIGSTOP);
  signal_group(SIGKILL);
  signal_escaped(SIGKILL);
}

// The leader has ended: what it leaves is killed while its zombie keeps the group's number ours.
void Process::State::kill_background() {
  signal_group(SIGKILL);
  if (stopped_as == Outcome::exited) return;
  for (int round = 0; round < 16 && find_escaped(); ++round) signal_escaped(SIGSTOP);
  signal_escaped(SIGKILL);
}

void Process::State::leader_ended(ReadBuffer& buffer, Clock::time_point now) {
  phase = Phase::draining;
  ended = now;
  out.writer.reset();
  err.writer.reset();
  close_input();
  take_report();
  const bool keep = options.keep_background && stopped_as == Outcome::exited && !supervised();
  if (!keep && !none_left()) kill_background();
  drain_end = later(now, options.max_drain);
  drain_until = std::min(later(now, options.drain), drain_end);
  if (!none_left() && (stopped_as != Outcome::exited || supervised())) kill_scattered(now);
  if (out.open) read_output(out, buffer, now);
  if (err.open) read_output(err, buffer, now);
  if (keep) finish(false);
}

// Kills what bears a mark of this run and gives the pipes a last moment to be closed.
void Process::State::kill_scattered([[maybe_unused]] Clock::time_point now) {
#if defined(__linux__)
  scattered_killed = true;
  RunMarks marks;
  marks.session = command();
  marks.variable = run_variable;
  marks.since = start_ticks;
  for (const Output* output : {&out, &err})
    if (output->open)
      marks.pipes.push_back(
          link_target(concat({"/proc/self/fd/", std::to_string(output->pipe.get())})));
  if (!kill_marked(marks)) result.message = "some of its processes may still be running";
  drain_end = later(now, std::min(options.drain, std::chrono::milliseconds(100)));
  drain_until = drain_end;
#endif
}

// Nothing came for a while: those who still hold the pipes are not in the group.
void Process::State::drain_further(Clock::time_point now) {
#if defined(__linux__)
  if (!scattered_killed) return kill_scattered(now);
#endif
  (void)now;
  finish(false);
}

// Finds descendants outside the process group. True: found new ones.
bool Process::State::find_escaped() {
  bool found = false;
#if defined(__linux__)
  std::map<pid_t, std::uint64_t> seen;  // with the time of its start
  std::vector<pid_t> parents;
  const pid_t group = command();
  const auto visit = [&](pid_t process) {
    ProcessStat stat;
    if (read_stat(process, stat) && seen.emplace(process, stat.start).second)
      parents.push_back(process);
  };
  visit(pid);
  for (const Escaped& process : escaped) {
    ProcessStat stat;
    if (read_stat(process.pid, stat) && stat.start == process.start) visit(process.pid);
  }
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const pid_t child : children_of(parent)) {
      if (seen.count(child)) continue;
      // Numbers are used again: it is a child only if its parent is still the one that was asked.
      ProcessStat stat;
      ProcessStat parent_stat;
      if (!read_stat(child, stat) || stat.parent != parent) continue;
      if (!read_stat(parent, parent_stat) || parent_stat.start != seen[parent]) continue;
      seen.emplace(child, stat.start);
      parents.push_back(child);
      if (stat.group == group) continue;
      escaped.push_back({child, stat.start});
      found = true;
    }
  }
#endif
  return found;
}

void Process::State::signal_escaped(int number) {
#if defined(__linux__)
  for (const Escaped& process : escaped) signal_same(process.pid, process.start, number);
#else
  (void)number;
#endif
}

bool Process::State::signal_group(int number) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (reaped || pid <= 0) return false;
  if (supervised()) return order(number);
#if CODEEXEC_HAS_CLONE
  // Linux 6.9: cannot hit another group, even if the host has reaped the leader.
  constexpr unsigned to_group = 4;
  if (is_pidfd) {
    if (signal_pidfd(exit_event.get(), number, to_group)) return true;
    if (errno != EINVAL) return false;
  }
#endif
  return ::kill(-pid, number) == 0;
}

void Process::State::fill_output(Output& output, std::string& text, OutputCounts& counts,
                                 std::string& file) {
  end_output(output);
  output.pipe.reset();
  output.spill.file.reset();
  text = output.capture.text(&counts);
  counts.redactions = output.redactor.count();
  counts.file_bytes = output.spill.written;
  file = output.spill.path;
  if (output.spill.problem.empty()) return;
  if (!result.message.empty()) result.message += "; ";
  result.message += output.spill.problem;
}

#if CODEEXEC_HAS_SANDBOX

bool Process::State::supervised() const { return static_cast<bool>(supervisor.reports); }

// The number of the command's group, as this program sees it.
pid_t Process::State::command() const {
  if (!supervised()) return pid;
  if (supervisor.command > 0) return supervisor.command;
  const std::vector<pid_t> children = children_of(pid);
  return children.empty() ? pid : children[0];
}

// Tells the supervisor. False when there is none, or none any more.
bool Process::State::order(int number) {
  if (!supervisor.orders) return false;
  const char byte = static_cast<char>(number);
  NoSigpipe guard;
  const ssize_t written = ::write(supervisor.orders.get(), &byte, 1);
  if (written < 0 && errno == EPIPE) guard.take_back();
  if (written == 1 && number != SIGKILL) ++supervisor.signals_asked;
  return written == 1;
}

// A supervisor that somebody has stopped is not waited for.
void Process::State::await_group_signals() {
  if (!supervised()) return;
  std::uint32_t asked = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    asked = supervisor.signals_asked;
  }
  constexpr int most_milliseconds = 50;
  for (int i = 0; i < most_milliseconds; ++i) {
    if (__atomic_load_n(&supervisor.run->signals_sent, __ATOMIC_ACQUIRE) == asked) return;
    ::poll(nullptr, 0, 1);
  }
}

void Process::State::take_report() {
  if (!supervised() || read_record(supervisor.reports, supervisor.last)) return;
  supervisor.last.known = false;
  supervisor.last.all_ended = false;
  supervisor.last.denied = false;
}

bool Process::State::none_left() const { return supervised() && supervisor.last.all_ended; }

ExitStatus Process::State::last_status() {
  const ExitStatus own = reap(exit_event, is_pidfd, pid);
  if (!supervised()) return own;
  ExitStatus status;
  status.known = supervisor.last.known;
  status.exited = supervisor.last.exited;
  status.value = supervisor.last.value;
  status.usage = supervisor.last.usage;
  if (supervisor.last.denied && !supervisor.last.all_ended)
    result.message = "some of its processes are another user's and are still running";
  supervisor.run.reset();
  return status;
}

#else

bool Process::State::supervised() const { return false; }
pid_t Process::State::command() const { return pid; }
bool Process::State::order(int) { return false; }
void Process::State::await_group_signals() {}
void Process::State::take_report() {}
bool Process::State::none_left() const { return false; }
ExitStatus Process::State::last_status() { return reap(exit_event, is_pidfd, pid); }

#endif

void Process::State::fill_status() {
  if (!is_pidfd) ::pthread_join(waiter, nullptr);
  const ExitStatus status = last_status();
  result.outcome = status.exited ? Outcome::exited : Outcome::signaled;
  if (status.known && status.exited) result.exit_code = status.value;
  if (status.known && !status.exited) result.signal = status.value;
  if (!status.known) {
    result.outcome = Outcome::unknown;
    result.message = supervised()
                         ? "its exit status was lost: its supervisor was killed"
                         : "its exit status was lost: this program ignores SIGCHLD or waits for "
                           "any child";
  }
  const auto micros = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  result.cpu_time = micros(status.usage.ru_utime) + micros(status.usage.ru_stime);
#if defined(__APPLE__)
  constexpr std::uint64_t unit = 1;
#else
  constexpr std::uint64_t unit = 1024;
#endif
  result.peak_memory = static_cast<std::uint64_t>(status.usage.ru_maxrss) * unit;
  if (options.sandbox.state_) name_limits();
}

// As far as it shows: in the signals that the kernel sends for some limits, to the program itself
// or to what a shell ran and tells by its own status, and in the counters of a cgroup.
void Process::State::name_limits() {
  const Limits& limits = options.sandbox.state_->options.limits;
  const auto ended_by = [&](int number) {
    return result.signal == number || result.exit_code == 128 + number;
  };
  const auto cpu_seconds = std::chrono::duration_cast<std::chrono::seconds>(result.cpu_time);
  const bool cpu_used_up = static_cast<std::uint64_t>(cpu_seconds.count()) >= limits.cpu_time;
  if (limits.cpu_time > 0 && (ended_by(SIGXCPU) || (ended_by(SIGKILL) && cpu_used_up)))
    result.limits_reached.push_back("cpu_time");
  if (limits.file_size > 0 && ended_by(SIGXFSZ)) result.limits_reached.push_back("file_size");
  if (disk_reached) result.limits_reached.push_back("disk");
#if CODEEXEC_HAS_SANDBOX
  for (std::string& name : cgroup.finish()) result.limits_reached.push_back(std::move(name));
#endif
}

void Process::State::finish(bool abandon) {
  phase = Phase::over;
  result.pipe_held = out.open || err.open;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    reaped = true;
    if (!abandon) fill_status();
  }
  if (abandon) {
    ended = Clock::now();
    close_input();
    result.message = "it did not die within 2 s of SIGKILL and was given up";
    if (!is_pidfd) ::pthread_detach(waiter);
#if CODEEXEC_HAS_SANDBOX
    (void)supervisor.run.release();  // it is still in use
#endif
    Abandoned& list = abandoned();
    const std::lock_guard<std::mutex> lock(list.mutex);
    list.pids.push_back(pid);
    list.any.store(true);
  }
  if (stopped_as != Outcome::exited) result.outcome = stopped_as;
  result.wall_time = std::chrono::duration_cast<std::chrono::microseconds>(ended - started);
  exit_event.reset();
  escaped.clear();
  fill_output(out, result.out, result.out_counts, result.out_file);
  fill_output(err, result.err, result.err_counts, result.err_file);
  on_end(result);
  const std::lock_guard<std::mutex> lock(mutex);
  done = true;
  ended_event.notify_all();
}

ProcessResult run_process(const ProcessOptions& options) {
  const CancellationPause pause;
  Process::State state(options);
  if (!state.start(true)) return std::move(state.result);
  Process::State::ReadBuffer buffer;
  std::vector<pollfd> set;
  set.reserve(Process::State::slot_count);
  while (!state.over()) {
    set.clear();
    state.add_descriptors(set);
    wait_for_events(set, state.deadline());
    state.step(set, buffer);
  }
  return std::move(state.result);
}

// Many children -----------------------------------------------------------------------------------

// The thread owns `running`; handles hand over through `incoming` and wake it by the pipe.
struct Process::Reactor {
  static std::shared_ptr<Reactor> shared(int& error);
  Reactor() = default;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  void add(std::shared_ptr<State> state);
  void wake();
  // False in a fork of the process that made it, which has no such thread.
  bool is_ours() const { return owner == ::getpid(); }

 private:
  int begin();
  static void* thread_main(void* self);
  void loop();

  pid_t owner = -1;
  pthread_t thread = {};
  bool has_thread = false;
  UniqueFd wake_in = UniqueFd();
  UniqueFd wake_out = UniqueFd();
  std::vector<std::shared_ptr<State>> running = {};
  std::mutex mutex = {};
  std::vector<std::shared_ptr<State>> incoming = {};
  bool ending = false;
};

std::shared_ptr<Process::Reactor> Process::Reactor::shared(int& error) {
  struct Shared {
    std::mutex mutex = {};
    std::weak_ptr<Reactor> reactor = {};
  };
  // Never destroyed: handles in static objects may end after it would.
  static Shared& current = *new Shared;
  const std::lock_guard<std::mutex> lock(current.mutex);
  std::shared_ptr<Reactor> reactor = current.reactor.lock();
  if (reactor && reactor->is_ours()) return reactor;
  reactor = std::make_shared<Reactor>();
  error = reactor->begin();
  if (error != 0) return nullptr;
  current.reactor = reactor;
  return reactor;
}

int Process::Reactor::begin() {
  owner = ::getpid();
  if (!make_pipe(wake_out, wake_in)) return errno;
  set_nonblocking(wake_out);
  set_nonblocking(wake_in);
  const int error = start_thread(&thread, thread_main, this);
  has_thread = error == 0;
  return error;
}

Process::Reactor::~Reactor() {
  if (!has_thread) return;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  wake();
  ::pthread_join(thread, nullptr);
}

void Process::Reactor::add(std::shared_ptr<State> state) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    incoming.push_back(std::move(state));
  }
  wake();
}

void Process::Reactor::wake() {
  // A full pipe wakes it just as well.
  (void)!::write(wake_in.get(), "", 1);
}

void* Process::Reactor::thread_main(void* self) {
  static_cast<Reactor*>(self)->loop();
  return nullptr;
}

void Process::Reactor::loop() {
  State::ReadBuffer buffer;
  std::vector<pollfd> set;
  for (;;) {
    Clock::time_point deadline = Clock::time_point::max();
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (ending) return;
      // What was asked of a new one may have woken this thread before it was here: the wake-up is
      // spent, so it is looked at once without waiting.
      if (!incoming.empty()) deadline = Clock::now();
      for (std::shared_ptr<State>& state : incoming) running.push_back(std::move(state));
      incoming.clear();
    }
    set.assign(1, {wake_out.get(), POLLIN, 0});
    for (const std::shared_ptr<State>& state : running) {
      state->add_descriptors(set);
      deadline = std::min(deadline, state->deadline());
    }
    wait_for_events(set, deadline);
    if (set[0].revents) (void)!::read(wake_out.get(), buffer.data(), State::buffer_size);
    for (const std::shared_ptr<State>& state : running) state->step(set, buffer);
    running.erase(std::remove_if(running.begin(), running.end(),
                                 [](const auto& state) { return state->over(); }),
                  running.end());
  }
}

Expected<Process> Process::start(ProcessOptions options,
                                 Function<void(const ProcessResult&)> on_end,
                                 ProcessResult* failure) {
  const CancellationPause pause;
  const auto state = std::make_shared<State>(std::make_unique<ProcessOptions>(std::move(options)));
  state->on_end = std::move(on_end);
  int error = 0;
  std::shared_ptr<Reactor> reactor = Reactor::shared(error);
  if (!reactor) {
    state->result.system_error = error;
    state->result.step = step_name(SpawnStep::setup);
    state->result.message = concat({"cannot start the thread for processes: ", errno_text(error)});
  }
  if (!reactor || !state->start(false)) {
    if (failure) *failure = state->result;
    Error result = system_error(state->result.system_error, "");
    result.message = state->result.message;
    return result;
  }
  state->forget_start();
  reactor->add(state);
  return Process(state, std::move(reactor));
}

Process::Process(std::shared_ptr<State> state, std::shared_ptr<Reactor> reactor) noexcept
    : state_(std::move(state)), reactor_(std::move(reactor)) {}

Process::Process(Process&& other) noexcept = default;

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  end();
  state_ = std::move(other.state_);
  reactor_ = std::move(other.reactor_);
  return *this;
}

Process::~Process() { end(); }

void Process::end() noexcept {
  if (!state_) return;
  if (!reactor_->is_ours()) {
    // Neither process nor thread belong to this fork of the host. Both objects stay behind: they
    // are moved to where nobody destroys them, without memory from a heap that the fork may have
    // left locked.
    alignas(std::shared_ptr<State>) unsigned char state[sizeof state_];
    alignas(std::shared_ptr<Reactor>) unsigned char reactor[sizeof reactor_];
    ::new (static_cast<void*>(state)) std::shared_ptr<State>(std::move(state_));
    ::new (static_cast<void*>(reactor)) std::shared_ptr<Reactor>(std::move(reactor_));
    return;
  }
  const CancellationPause pause;
  state_->kill_asked.store(true);
  reactor_->wake();
  (void)wait();
  state_.reset();
  reactor_.reset();
}

int Process::pid() const noexcept { return state_->result.pid; }

bool Process::done() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->done;
}

bool Process::wait_for(std::chrono::milliseconds time) const {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const Clock::time_point until = later(Clock::now(), time);
  if (until == Clock::time_point::max()) {
    state_->ended_event.wait(lock, [&] { return state_->done; });
    return true;
  }
  return state_->ended_event.wait_until(lock, until, [&] { return state_->done; });
}

const ProcessResult& Process::wait() const {
  (void)wait_for(no_limit);
  return state_->result;
}

void Process::cancel() const {
  state_->cancel_asked.store(true);
  reactor_->wake();
}

bool Process::signal(int number) const { return state_->signal_group(number); }

Expected<void> Process::write(std::string_view bytes) const {
  constexpr std::size_t most = std::size_t{1} << 20;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->input_open || state_->input_ends)
      return system_error(EPIPE, "cannot write to standard input: it is closed");
    if (state_->queued_input.size() + bytes.size() > most)
      return make_error(ErrorCode::limit,
                        "cannot write to standard input: 1 MiB waits to be read already");
    state_->queued_input.append(bytes);
  }
  reactor_->wake();
  return {};
}

void Process::close_input() const {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->input_ends = true;
  }
  reactor_->wake();
}

Process::Chunk Process::read(Stream stream, std::uint64_t cursor) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const State::Output& output = stream == Stream::out ? state_->out : state_->err;
  return output.capture.read(cursor, state_->done);
}

// =================================================================================================
// >>executor (definitions)
//
// screen() and admit() are the gate: policy, deadline, work_dir, the files it would change, then
// the place where it runs, in this order, so that the message a caller gets is the same as in the
// systems this library replaces. run() and start() both go through it and through Gate::record();
// neither has a way around. Without read-only roots and delete guard, no file is looked for.
// =================================================================================================

namespace {

// A single argument or variable may have 128 KiB on Linux (MAX_ARG_STRLEN), its NUL included.
// Scripts that do not fit are handed to the shell as a file.
constexpr std::size_t longest_inline_script = (std::size_t{128} << 10) - 1;

// Audit records hold at most this much of a command, and of code.
constexpr std::size_t longest_audited_text = std::size_t{16} << 10;

// 60 s as "60", 1500 ms as "1.5", -250 ms as "-0.25".
std::string seconds_text(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  const auto rest = std::abs(time.count() % 1000);
  std::string text = concat({time.count() < 0 && seconds == 0 ? "-" : "", std::to_string(seconds)});
  if (rest == 0) return text;
  std::string fraction = std::to_string(1000 + rest).substr(1);
  while (fraction.back() == '0') fraction.pop_back();
  return concat({text, ".", fraction});
}

// The present as RFC 3339 in UTC with milliseconds: 2026-01-31T12:00:00.250Z.
std::string utc_timestamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm fields{};
  ::gmtime_r(&now.tv_sec, &fields);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &fields);
  std::snprintf(text + size, sizeof text - size, ".%03dZ", static_cast<int>(now.tv_nsec / 1000000));
  return text;
}

// Errors that say nothing about the command, but that the system is short of something.
bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

// A file that only its descriptor knows, with `content` in it and read from the start.
Expected<UniqueFd> anonymous_file(std::string_view content) {
#if defined(__linux__)
  UniqueFd fd(above_standard_streams(::memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
#else
  char path[] = "/tmp/codeexec-XXXXXX";
  UniqueFd fd(above_standard_streams(::mkostemp(path, O_CLOEXEC)));
  if (fd) ::unlink(path);
#endif
  if (!fd) return system_error(errno, "cannot make a file for the script");
  while (!content.empty()) {
    const ssize_t written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(errno, "cannot write the script");
    content.remove_prefix(static_cast<std::size_t>(written));
  }
#if defined(__linux__)
  // The running script cannot rewrite itself.
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
#endif
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return system_error(errno, "cannot rewind the script");
  return fd;
}

bool is_program(const std::string& path) {
  struct stat status {};
  return path.find('/') != std::string::npos && ::stat(path.c_str(), &status) == 0 &&
         S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// The canonical path of a directory that an option names, with the rights `mode` of access(2) to
// it. An empty option stays empty.
Expected<std::string> usable_directory(const char* option, const std::string& given, int mode) {
  if (given.empty()) return std::string();
  auto path = canonical_path(given);
  if (!path) return with_prefix(concat({option, ": "}), path.error());
  struct stat status {};
  int error = 0;
  if (::stat(path->c_str(), &status) != 0 || ::access(path->c_str(), mode) != 0)
    error = errno;
  else if (!S_ISDIR(status.st_mode))
    error = ENOTDIR;
  if (error != 0) return system_error(error, concat({option, ": ", quoted(*path)}));
  return path;
}

// The audit log, to be appended to. Only what takes every write at once is good enough: a pipe
// would block the commands, or end the host with SIGPIPE.
Expected<UniqueFd> open_audit_file(const std::string& path) {
  const std::string subject = concat({"audit_file: ", quoted(path)});
  if (path.find('\0') != std::string::npos)
    return make_error(ErrorCode::invalid_argument, concat({subject, " has a NUL byte"}));
  UniqueFd fd(above_standard_streams(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK,
      0600)));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return system_error(errno, subject);
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))
    return make_error(ErrorCode::invalid_argument,
                      concat({subject, " is neither a file nor a device"}));
  return fd;
}

// Never replaces what is there: it may be the user's own.
Expected<void> link_skills(const std::string& workspace, const std::string& skills_dir) {
  const std::string folder = workspace + "/.agent";
  const std::string link = folder + "/skills";
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return system_error(errno, concat({"cannot make ", quoted(folder), " for the skills"}));
  if (::symlink(skills_dir.c_str(), link.c_str()) == 0) return {};
  const int error = errno;
  const auto present = canonical_path(link);
  if (error == EEXIST && present && *present == skills_dir) return {};
  return system_error(error, concat({"cannot link the skills as ", quoted(link)}));
}

}  // namespace

Command Command::shell(std::string script) {
  Command command;
  command.script = std::move(script);
  return command;
}

Command Command::program(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  return command;
}

std::string Result::summary() const {
  std::string text;
  switch (outcome) {
    case Outcome::exited:
      text = concat({"exited with status ", std::to_string(exit_code)});
      break;
    case Outcome::signaled:
      text = concat({"killed by signal ", std::to_string(signal)});
      break;
    case Outcome::timed_out:
      text = concat({"timed out after ", seconds_text(timeout), " s"});
      break;
    case Outcome::cancelled:
      text = "cancelled";
      break;
    case Outcome::refused:
      return concat({"refused (", rule, "): ", message});
    case Outcome::not_started:
      return concat({"not started: ", message});
    case Outcome::unknown:
      text = "ended, but its status could not be learned";
      break;
  }
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(wall_time);
  text += concat({" in ", seconds_text(wall), " s; ", std::to_string(out_counts.total_bytes),
                  " bytes on stdout, ", std::to_string(err_counts.total_bytes), " on stderr"});
  if (out_counts.dropped_bytes + err_counts.dropped_bytes > 0) text += " (shortened)";
  return text;
}

namespace {

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

// What the audit log and the result of the tool tell alike, where it applies.
void set_sandbox_fields(Json& object, const Result& r) {
  if (r.sandbox && r.sandbox->mode != SandboxMode::off) {
    Json sandbox = Json::object();
    sandbox.set("mode", name(r.sandbox->mode));
    sandbox.set("network", name(r.sandbox->network));
    if (!r.sandbox->missing.empty()) sandbox.set("missing", list_of(r.sandbox->missing));
    object.set("sandbox", std::move(sandbox));
  }
  if (!r.limits_reached.empty()) object.set("limits_reached", list_of(r.limits_reached));
  if (!r.changed_files.empty()) object.set("changed_files", list_of(r.changed_files));
  const std::uint64_t redactions = r.out_counts.redactions + r.err_counts.redactions;
  if (redactions > 0) object.set("redactions", redactions);
}

}  // namespace

Json AuditRecord::to_json() const {
  const Result& r = *result;
  const auto milliseconds = [](std::chrono::microseconds span) {
    return static_cast<double>(span.count()) / 1000.0;
  };
  Json record = Json::object();
  record.set("time", time);
  if (!agent_id.empty()) record.set("agent_id", agent_id);
  record.set("tool", tool);
  const auto set_cut = [&record](std::string field, const std::string& text) {
    record.set(field, std::string(utf8_prefix(text, longest_audited_text)));
    if (text.size() > longest_audited_text) record.set(field + "_bytes", text.size());
  };
  set_cut("command", r.command);
  if (!code.empty()) set_cut("code", code);
  record.set("work_dir", r.work_dir);
  record.set("allowed", r.outcome != Outcome::refused);
  if (!r.rule.empty()) record.set("rule", r.rule);
  if (r.rule_end > r.rule_begin) {
    record.set("rule_begin", r.rule_begin);
    record.set("rule_end", r.rule_end);
  }
  if (!r.message.empty()) record.set("message", r.message);
  record.set("outcome", name(r.outcome));
  record.set("exit_code", r.exit_code);
  if (r.signal != 0) record.set("signal", r.signal);
  record.set("duration_ms", milliseconds(r.wall_time));
  record.set("cpu_ms", milliseconds(r.cpu_time));
  record.set("stdout_bytes", static_cast<std::int64_t>(r.out_counts.total_bytes));
  record.set("stderr_bytes", static_cast<std::int64_t>(r.err_counts.total_bytes));
  set_sandbox_fields(record, r);
  return record;
}

namespace {

// The home directory of a user, as /etc/passwd has it: getpwnam() may load code and ask servers.
std::string home_of_user(std::string_view user) {
  constexpr std::size_t longest_user_list = std::size_t{1} << 20;
  const auto list = read_whole_file("/etc/passwd", longest_user_list, "list of users");
  if (!list) return {};
  std::string_view rest = *list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!starts_with(line, user) || line.substr(user.size(), 1) != ":") continue;
    for (int field = 0; field < 5; ++field) {
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) return {};
      line.remove_prefix(colon + 1);
    }
    return std::string(line.substr(0, line.find(':')));
  }
  return {};
}

// The path of an access as the shell will have it: absolute, with `~` replaced.
Expected<std::string> spelled_out(const FileAccess& access, std::string_view work_dir,
                                  FunctionRef<std::string()> own_home) {
  const std::string_view path = access.path;
  if (starts_with(path, "/")) return access.path;
  if (!starts_with(path, "~")) return concat({work_dir == "/" ? "" : work_dir, "/", path});
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view user = path.substr(1, end - 1);
  const std::string home = user.empty() ? own_home() : home_of_user(user);
  if (starts_with(home, "/")) return concat({home, path.substr(end)});
  return make_error(ErrorCode::not_found, "that home directory is not known here");
}

// What an access of a command comes to on the disk as it is now.
struct Target {
  const FileAccess* access = nullptr;
  std::vector<std::string> files = {};  // canonical: one, or those that a pattern stands for
  std::string directory = {};           // of a pattern: where all it can ever stand for lies
};

// Links are followed here and not by the policy, which looks at no disk. What is removed is the
// entry of a directory, not what it links to.
Expected<Target> find_target(const FileAccess& access, std::string_view work_dir,
                             FunctionRef<std::string()> own_home, WalkBudget& budget) {
  auto path = spelled_out(access, work_dir, own_home);
  if (!path) return path.error();
  Target target;
  target.access = &access;
  std::vector<std::string> files;
  if (access.glob && is_file_pattern(*path)) {
    auto directory =
        canonical_path(path->substr(0, path->rfind('/', path->find_first_of("*?[")) + 1));
    if (!directory) return directory.error();
    target.directory = std::move(*directory);
    auto found = expand_glob(*path, budget);
    if (!found) return found.error();
    files = std::move(*found);
  }
  // A pattern without a match means itself.
  if (files.empty()) files.push_back(std::move(*path));
  for (const std::string& file : files) {
    auto resolved =
        access.kind == FileAccess::Kind::remove ? canonical_entry(file) : canonical_path(file);
    if (!resolved) return resolved.error();
    target.files.push_back(std::move(*resolved));
  }
  return target;
}

// What a change to a canonical path would change in a root that is not writable: the path, or such
// a root below it. Empty when nothing. `around`: what lies below goes with it.
std::string protected_place(const PathRules& paths, const std::string& path, bool around) {
  const Root* root = paths.deepest_root(path);
  if (root && root->permission != Permission::write) return path;
  if (!around) return {};
  for (const Root& below : paths.roots())
    if (below.permission != Permission::write && codeexec::is_within(below.path, path))
      return below.path;
  return {};
}

// Files that the user's own tools run or obey later, outside of any sandbox, as they are at one
// moment: in each of some directories, those that LocalOptions::watch_files names. What the kernel
// keeps of a file tells a change: no command can set back st_ctime.
class WatchedFiles {
 public:
  static constexpr std::size_t max_directories = 64;
  static constexpr std::size_t max_entries = 256;  // of one directory
  static constexpr std::size_t max_changes = 100;

  // Nothing.
  WatchedFiles() = default;
  explicit WatchedFiles(std::vector<std::string> directories)
      : directories_(std::move(directories)) {
    for (const std::string& directory : directories_) look_at(directory);
  }

  // Paths of those that are others now than they were then, are new, or have gone.
  std::vector<std::string> changes() const {
    std::vector<std::string> changed;
    if (directories_.empty()) return changed;
    const WatchedFiles now(directories_);
    auto before = prints_.begin();
    auto after = now.prints_.begin();
    while (changed.size() < max_changes &&
           (before != prints_.end() || after != now.prints_.end())) {
      const bool gone =
          after == now.prints_.end() || (before != prints_.end() && before->first < after->first);
      const bool added = !gone && (before == prints_.end() || after->first < before->first);
      if (gone || added || before->second != after->second)
        changed.push_back(gone ? before->first : after->first);
      if (!added) ++before;
      if (!gone) ++after;
    }
    return changed;
  }

 private:
  using Print = std::array<std::uint64_t, 9>;

  // Of a directory only which one it is: its times change with every file in it.
  static Print print_of(const struct stat& status) {
    const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
    Print print = {number(status.st_dev), number(status.st_ino), number(status.st_mode & S_IFMT)};
    if (S_ISDIR(status.st_mode)) return print;
#if defined(__APPLE__)
    const timespec& modified = status.st_mtimespec;
    const timespec& changed = status.st_ctimespec;
#else
    const timespec& modified = status.st_mtim;
    const timespec& changed = status.st_ctim;
#endif
    print[3] = number(status.st_mode);
    print[4] = number(status.st_size);
    print[5] = number(modified.tv_sec);
    print[6] = number(modified.tv_nsec);
    print[7] = number(changed.tv_sec);
    print[8] = number(changed.tv_nsec);
    return print;
  }

  // True when it is a directory (and not a link to one). Most of what is looked for is not there,
  // so a path is only made of what is.
  bool look_at_one(int root, const std::string& start, const char* file) {
    struct stat status {};
    if (::fstatat(root, file, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    prints_[start + file] = print_of(status);
    return S_ISDIR(status.st_mode);
  }

  void look_at_entries(int root, const std::string& start, const char* path) {
    if (!look_at_one(root, start, path)) return;
    DIR* const directory = ::opendir((start + path).c_str());
    if (!directory) return;
    std::size_t left = max_entries;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string_view file = entry->d_name;
      // git leaves samples alone, and makes a dozen of them.
      if (file == "." || file == ".." || ends_with(file, ".sample")) continue;
      if (left-- == 0) break;
      look_at_one(root, start, concat({path, "/", file}).c_str());
    }
    ::closedir(directory);
  }

  void look_at(const std::string& directory) {
    const UniqueFd opened(above_standard_streams(
        ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK)));
    if (!opened) return;
    const int root = opened.get();
    const std::string start = directory == "/" ? directory : directory + "/";
    if (look_at_one(root, start, ".git")) {
      for (const char* file : {".git/config", ".git/config.worktree", ".git/commondir"})
        look_at_one(root, start, file);
      look_at_entries(root, start, ".git/hooks");
    }
    for (const char* path : {".husky", ".vscode", ".idea", ".ssh"})
      look_at_entries(root, start, path);
    for (const char* file :
         {".envrc",        ".gitconfig", ".npmrc",        ".yarnrc",     ".yarnrc.yml",
          ".profile",      ".bashrc",    ".bash_profile", ".bash_login", ".bash_logout",
          ".bash_aliases", ".zshenv",    ".zprofile",     ".zshrc",      ".zlogin",
          ".zlogout",      ".kshrc",     ".cshrc",        ".tcshrc",     ".login"})
      look_at_one(root, start, file);
    struct stat status {};
    if (::fstatat(root, ".config", &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    for (const char* file : {".config/git/config", ".config/fish/config.fish"})
      look_at_one(root, start, file);
  }

  std::vector<std::string> directories_ = {};
  std::map<std::string, Print> prints_ = {};
};

// What programs print that could not reach the network, or that the variables of such a command
// (see offline_variables) kept from trying.
bool tells_of_no_network(std::string_view output, Network network) {
  constexpr std::size_t most = std::size_t{64} << 10;  // the reason stands at the end
  std::string text(output.substr(output.size() - std::min(output.size(), most)));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* words :
       {"could not resolve host", "name resolution", "eai_again", "network is unreachable",
        "failed to connect to", "socket: permission denied", "enotcached", "offline mode",
        "--offline was specified", "network was disabled", "goproxy=off",
        "no matching distribution found"})
    if (text.find(words) != std::string::npos) return true;
  return network == Network::loopback && text.find("connection refused") != std::string::npos;
}

std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  std::string result;
  for (const std::string& text : texts) result += concat({result.empty() ? "" : separator, text});
  return result;
}

}  // namespace

struct Executor::Ending {
  // Canonical paths of what the command uses, for the delete guard, once it has run.
  std::vector<std::string> read_files = {};
  std::vector<std::string> created_files = {};
  // The files of LocalOptions::watch_files that changed since it began.
  Function<std::vector<std::string>()> changed_files = {};
};

// What all copies of an executor share. Immutable after set_up(), but for what the delete guard
// remembers and the kernel's own state of the audit file, to which every record is one write() of
// O_APPEND.
struct Executor::Gate {
  ExecutorOptions options = {};
  Policy policy;
  PathRules paths;
  std::optional<DeleteGuard> delete_guard = {};
  bool has_read_only_roots = false;
  // With such a guard and a policy that lets pass what it cannot read: objects to just that.
  std::optional<Policy> reader = {};
  UniqueFd audit = {};
  Redactor redactor = {};

  Gate(Policy judged_by, PathRules confined_by)
      : policy(std::move(judged_by)), paths(std::move(confined_by)) {}
  bool recording() const { return audit || options.on_audit; }
  bool guards_files() const { return has_read_only_roots || delete_guard; }
  // Each of these refuses the first target that it objects to.
  void guard_read_only(const std::vector<Target>& targets, Admission& admission) const;
  void guard_deletions(const std::vector<Target>& targets, Admission& admission) const;
  // Tells the delete guard what a command that has run read and made.
  void remember(const std::vector<std::string>& read,
                const std::vector<std::string>& created) const {
    if (!delete_guard) return;
    const auto is_file = [](const std::string& path) {
      struct stat status {};
      return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    };
    for (const std::string& path : read)
      if (is_file(path)) delete_guard->mark_read(path);
    for (const std::string& path : created)
      if (is_file(path)) delete_guard->mark_created(path);
  }
  // Tells in `told` what is to be seen when a command has ended. `ended` may be part of it.
  void conclude(const Ending& ending, const ProcessResult& ended, Result& told) const;
  // Masks secrets in what is told of a command, once.
  void mask(Result& result) const;
  struct Asked {
    const std::string& tool;
    const std::string& code;
    const std::string& time;
  };
  // Tells the audit log; a failure to do so goes into the notes of the result.
  void record(Result& result, const Asked& asked) const;
};

struct Executor::Admission {
  Result result = {};                     // of a refusal, or what is known before the start
  ProcessOptions process = {};            // filled by place()
  OpenDirectory directory = {};           // pins the work_dir until the child is in it
  UniqueFd script = {};                   // a script too long for an argument
  std::shared_ptr<const void> home = {};  // removed when it goes away
  std::string time = {};
  Ending ending = {};

  bool admitted() const { return result.rule.empty() && result.message.empty(); }
  void fail(const Error& error, const char* step) {
    result.outcome = Outcome::not_started;
    result.system_error = error.system_error;
    result.step = step;
    result.message = error.message;
  }
  void refuse(std::string rule, std::string message, std::size_t begin = 0, std::size_t end = 0) {
    result.outcome = Outcome::refused;
    result.rule = std::move(rule);
    result.message = std::move(message);
    result.rule_begin = begin;
    result.rule_end = end;
  }
};

void Executor::Gate::guard_read_only(const std::vector<Target>& targets,
                                     Admission& admission) const {
  for (const Target& target : targets) {
    const FileAccess& access = *target.access;
    if (access.kind == FileAccess::Kind::read) continue;
    const bool around = access.kind == FileAccess::Kind::remove || access.recursive;
    std::string place;
    if (!target.directory.empty()) place = protected_place(paths, target.directory, false);
    for (std::size_t i = 0; i < target.files.size() && place.empty(); ++i)
      place = protected_place(paths, target.files[i], around);
    if (place.empty()) continue;
    return admission.refuse(
        "read-only", concat({"Command would modify read-only context path: ", printable(place)}),
        access.begin, access.end);
  }
}

void Executor::Gate::guard_deletions(const std::vector<Target>& targets,
                                     Admission& admission) const {
  std::vector<std::string> files;
  // With a slash at the end, so that what lies in a directory comes right after it and need not be
  // walked again.
  std::set<std::string> trees;
  std::size_t begin = std::string::npos;
  std::size_t end = 0;
  for (const Target& target : targets) {
    const FileAccess& access = *target.access;
    if (access.kind != FileAccess::Kind::remove) continue;
    begin = std::min(begin, access.begin);
    end = std::max(end, access.end);
    for (const std::string& file : target.files) {
      struct stat status {};
      if (::lstat(file.c_str(), &status) != 0) continue;
      if (!S_ISDIR(status.st_mode))
        files.push_back(file);
      else if (access.recursive)  // an empty directory at most, otherwise
        trees.insert(file == "/" ? file : file + "/");
    }
  }
  Expected<void> allowed = delete_guard->can_delete_files(files);
  std::string_view walked;
  for (auto tree = trees.begin(); tree != trees.end() && allowed; ++tree) {
    if (!walked.empty() && starts_with(*tree, walked)) continue;
    walked = *tree;
    allowed = delete_guard->can_delete_directory(
        tree->substr(0, std::max<std::size_t>(tree->size() - 1, 1)));
  }
  if (!allowed) admission.refuse("delete-guard", allowed.error().message, begin, end);
}

Executor::~Executor() = default;

std::string Executor::describe_place() const { return {}; }

Expected<void> Executor::set_up(const ExecutorOptions& options,
                                const std::vector<std::string>& secrets) {
  const auto positive = [](std::chrono::milliseconds time, const char* field) -> Expected<void> {
    if (time.count() > 0) return {};
    return make_error(ErrorCode::invalid_argument,
                      concat({field, " must be greater than 0, and not ", seconds_text(time)}));
  };
  if (auto ok = positive(options.timeout, "timeout"); !ok) return ok.error();
  if (auto ok = positive(options.max_timeout, "max_timeout"); !ok) return ok.error();
  if (auto ok = positive(options.kill_grace, "kill_grace"); !ok) return ok.error();
  if (options.timeout > options.max_timeout)
    return make_error(
        ErrorCode::invalid_argument,
        concat({"timeout (", seconds_text(options.timeout), " s) is longer than max_timeout (",
                seconds_text(options.max_timeout), " s)"}));
  if (options.max_output < 1024)
    return make_error(ErrorCode::invalid_argument,
                      concat({"max_output must be at least 1024 bytes, and not ",
                              std::to_string(options.max_output)}));

  auto policy = Policy::create(options.policy);
  if (!policy) return policy.error();
  PathOptions path_options;
  path_options.roots = options.roots;
  auto paths = PathRules::create(path_options);
  if (!paths) return paths.error();

  auto gate = std::make_shared<Gate>(std::move(*policy), std::move(*paths));
  gate->options = options;
  gate->redactor = Redactor(secrets);
  for (const Root& root : gate->paths.roots())
    if (root.permission != Permission::write) gate->has_read_only_roots = true;
  auto unrestricted = PathRules::create({});
  if (!unrestricted) return unrestricted.error();
  auto workspace =
      unrestricted->open_work_dir(options.workspace.empty() ? "." : options.workspace, ".");
  if (!workspace) {
    Error error = workspace.error();
    error.message = concat({"workspace: ", error.message});
    return error;
  }
  gate->options.workspace = workspace->path;
  if (options.delete_guard) {
    std::vector<std::string> roots = {workspace->path};
    for (const Root& root : gate->paths.roots()) roots.push_back(root.path);
    gate->delete_guard.emplace(std::move(roots));
  }
  if (gate->guards_files() && options.policy.mode == PolicyOptions::Mode::compat) {
    PolicyOptions nothing_but_syntax;
    for (const RuleInfo& rule : Policy::rules())
      nothing_but_syntax.disabled_rules.push_back(rule.name);
    auto reader = Policy::create(nothing_but_syntax);
    if (!reader) return reader.error();
    gate->reader.emplace(std::move(*reader));
  }
  auto spill_dir = usable_directory("spill_dir", options.spill_dir, W_OK | X_OK);
  if (!spill_dir) return spill_dir.error();
  gate->options.spill_dir = std::move(*spill_dir);
  if (!options.audit_file.empty()) {
    auto audit = open_audit_file(options.audit_file);
    if (!audit) return audit.error();
    gate->audit = std::move(*audit);
  }
  gate_ = std::move(gate);
  return {};
}

const std::string& Executor::workspace() const noexcept { return gate_->options.workspace; }
std::chrono::milliseconds Executor::timeout() const noexcept { return gate_->options.timeout; }
std::chrono::milliseconds Executor::max_timeout() const noexcept {
  return gate_->options.max_timeout;
}

const PathRules& Executor::paths() const noexcept { return gate_->paths; }

const DeleteGuard* Executor::delete_guard() const noexcept {
  return gate_->delete_guard ? &*gate_->delete_guard : nullptr;
}

std::string Executor::home(const Command&, std::string_view) const { return {}; }

PathRules Executor::file_rules() const { return paths(); }

// Everything that may refuse a command; nothing is changed by it. `judgement` is filled `in_full`
// when that is asked for or needed, and has nothing but the policy's verdict otherwise.
Executor::Admission Executor::screen(const Command& command, Judgement& judgement,
                                     bool in_full) const {
  const ExecutorOptions& options = gate_->options;
  Admission admission;
  Result& result = admission.result;
  admission.time = utc_timestamp();
  result.command = command.argv.empty() ? command.script : script_of_argv(command.argv);
  result.work_dir = command.work_dir.empty() ? options.workspace : command.work_dir;

  if (!command.argv.empty() && !command.script.empty()) {
    admission.refuse("command", "a command has either a script or an argv, not both");
    return admission;
  }
  // What is relative in the script is judged for what it is where the script will run; a work_dir
  // that is none is refused below.
  const auto place = command.work_dir.empty() ? options.workspace
                                              : canonical_path(command.work_dir, options.workspace);
  const std::string& work_dir = place ? *place : options.workspace;
  const Policy& policy = gate_->policy;
  if (in_full || gate_->guards_files())
    judgement = command.argv.empty() ? policy.judge(command.script, work_dir)
                                     : policy.judge(command.argv, work_dir);
  else
    judgement.verdict = command.argv.empty() ? policy.check(command.script, work_dir)
                                             : policy.check(command.argv, work_dir);
  const Verdict& verdict = judgement.verdict;
  if (!verdict) {
    admission.refuse(verdict.rule, verdict.message, verdict.begin, verdict.end);
    return admission;
  }

  result.timeout = command.timeout.value_or(command.background ? no_limit : options.timeout);
  if (result.timeout.count() <= 0) {
    admission.refuse("timeout", concat({"timeout must be greater than 0 seconds, and not ",
                                        seconds_text(result.timeout)}));
    return admission;
  }
  if (result.timeout > options.max_timeout && !command.background) {
    result.notes.push_back(
        concat({"timeout reduced from ", seconds_text(result.timeout), " to ",
                seconds_text(options.max_timeout), " seconds, the longest that is allowed here"}));
    result.timeout = options.max_timeout;
  }

  auto directory = gate_->paths.open_work_dir(command.work_dir, options.workspace);
  if (!directory && is_shortage(directory.error().system_error)) {
    admission.fail(directory.error(), "work_dir");
    return admission;
  }
  if (!directory) {
    admission.refuse("work_dir", directory.error().message);
    // What lies within the roots may be shown as it was understood; it helps against typing errors.
    const auto path = canonical_path(result.work_dir, options.workspace);
    if (path && gate_->paths.permission(*path) != Permission::none) result.work_dir = *path;
    return admission;
  }
  admission.directory = std::move(*directory);
  result.work_dir = admission.directory.path;
  if (gate_->guards_files()) guard_files(command, judgement, admission);
  return admission;
}

void Executor::guard_files(const Command& command, const Judgement& judgement,
                           Admission& admission) const {
  const std::string& work_dir = admission.directory.path;
  const char* const strictest = gate_->has_read_only_roots ? "read-only" : "delete-guard";
  const bool unread = !judgement.complete && gate_->reader &&
                      !gate_->reader->check(admission.result.command, work_dir);
  if (unread)
    return admission.refuse(strictest,
                            "Command was not understood, so which files it changes is not known", 0,
                            admission.result.command.size());
  WalkBudget budget;
  std::vector<Target> targets;
  for (const FileAccess& access : judgement.files) {
    const bool reads = access.kind == FileAccess::Kind::read;
    if (reads && !gate_->delete_guard) continue;
    const auto own_home = [&] { return home(command, work_dir); };
    auto target = find_target(access, work_dir, own_home, budget);
    if (!target && !reads)
      return admission.refuse(
          strictest,
          concat({"Command would change ", quoted(access.path), ": ", target.error().message}),
          access.begin, access.end);
    if (target) targets.push_back(std::move(*target));
  }
  if (gate_->has_read_only_roots) gate_->guard_read_only(targets, admission);
  if (!admission.admitted() || !gate_->delete_guard) return;
  gate_->guard_deletions(targets, admission);
  for (Target& target : targets) {
    if (target.access->kind == FileAccess::Kind::remove) continue;
    const bool reads = target.access->kind == FileAccess::Kind::read;
    Ending& ending = admission.ending;
    std::vector<std::string>& used = reads ? ending.read_files : ending.created_files;
    for (std::string& file : target.files) used.push_back(std::move(file));
  }
}

Executor::Admission Executor::admit(const Command& command) const {
  const ExecutorOptions& options = gate_->options;
  Judgement judgement;
  Admission admission = screen(command, judgement, false);
  if (!admission.admitted()) return admission;
  Result& result = admission.result;
  ProcessOptions& process = admission.process;
  process.work_dir = admission.directory.path;
  process.work_dir_fd = admission.directory.fd.get();
  process.input = command.input;
  process.keep_input_open = command.keep_input_open;
  process.merge_streams = command.merge_streams;
  process.max_output = options.max_output;
  process.keep_end_only = command.keep_end_only;
  process.supervised = command.background;
  process.spill_dir = options.spill_dir;
  process.timeout = result.timeout;
  process.kill_grace = options.kill_grace;
  process.cancel = command.cancel;
  process.on_output = command.on_output;
  process.heartbeat = command.heartbeat;
  process.on_heartbeat = command.on_heartbeat;
  if (auto placed = place(command, admission); !placed) admission.fail(placed.error(), "setup");
  return admission;
}

void Executor::Gate::conclude(const Ending& ending, const ProcessResult& ended,
                              Result& told) const {
  remember(ending.read_files, ending.created_files);
  for (std::string limit : ended.limits_reached) {
    std::replace(limit.begin(), limit.end(), '_', ' ');
    told.notes.push_back(concat({"the command reached its limit of ", limit}));
  }
  const Network network = told.sandbox ? told.sandbox->network : Network::host;
  if (network != Network::host && !ended.succeeded() &&
      (tells_of_no_network(ended.err, network) || tells_of_no_network(ended.out, network)))
    told.notes.push_back(
        concat({"The network is switched off for commands here (network: ", name(network), ")"}));
  told.changed_files = ending.changed_files();
  if (!told.changed_files.empty())
    told.notes.push_back(concat({"changed during the command, and used outside of the sandbox by ",
                                 "the user's own tools: ", joined(told.changed_files, ", ")}));
}

void Executor::Gate::mask(Result& result) const {
  if (redactor.empty()) return;
  // The offending bytes are those of the masked command from here on.
  const std::string_view command = result.command;
  const std::size_t begin = redactor.redact(command.substr(0, result.rule_begin)).size();
  const std::size_t end = redactor.redact(command.substr(0, result.rule_end)).size();
  for (std::string* text : {&result.command, &result.work_dir, &result.message})
    *text = redactor.redact(*text);
  for (std::string& note : result.notes) note = redactor.redact(note);
  for (std::string& path : result.changed_files) path = redactor.redact(path);
  result.rule_begin = std::min(begin, result.command.size());
  result.rule_end = std::min(end, result.command.size());
}

void Executor::Gate::record(Result& result, const Asked& asked) const {
  if (!recording()) return;
  AuditRecord record;
  record.time = asked.time;
  record.agent_id = options.agent_id;
  record.tool = asked.tool;
  if (!asked.code.empty()) record.code = redactor.redact(asked.code);
  record.result = &result;
  if (options.on_audit) options.on_audit(record);
  if (!audit) return;
  const std::string line = record.to_json().dump() + "\n";
  ssize_t written = -1;
  do written = ::write(audit.get(), line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  const std::string reason = written < 0 ? errno_text(errno) : "it was written only in part";
  result.notes.push_back(concat(
      {"the audit record could not be written to ", quoted(options.audit_file), ": ", reason}));
}

Result Executor::run(const Command& command) const {
  Admission admission = admit(command);
  Result& result = admission.result;
  admission.process.keep_input_open = false;  // nobody could write to it
  if (admission.admitted()) {
    static_cast<ProcessResult&>(result) = run_process(admission.process);
    if (result.outcome != Outcome::not_started) gate_->conclude(admission.ending, result, result);
  }
  gate_->mask(result);
  gate_->record(result, {command.tool, command.code, admission.time});
  return std::move(result);
}

void Executor::record(Result& result, const std::string& tool) const {
  gate_->mask(result);
  gate_->record(result, {tool, {}, utc_timestamp()});
}

std::string Executor::redact(std::string_view text) const { return gate_->redactor.redact(text); }

Result Executor::run(std::string_view script) const {
  return run(Command::shell(std::string(script)));
}

Result Executor::check(const Command& command) const {
  Judgement judgement;
  Admission admission = screen(command, judgement, false);
  gate_->mask(admission.result);
  return std::move(admission.result);
}

Judgement Executor::judge(const Command& command) const {
  Judgement judgement;
  const Admission admission = screen(command, judgement, true);
  const Result& result = admission.result;
  judgement.verdict.message = gate_->redactor.redact(judgement.verdict.message);
  if (admission.admitted() || !judgement.verdict) return judgement;
  judgement.verdict.allowed = false;
  judgement.verdict.rule = result.rule.empty() ? result.step : result.rule;
  judgement.verdict.message = gate_->redactor.redact(result.message);
  judgement.verdict.begin = result.rule_begin;
  judgement.verdict.end = result.rule_end;
  return judgement;
}

// `known` is shared with the callback that records the end. That callback lives in the process, so
// it must not own the process, or neither would ever go away. It writes `known` before the process
// is done(), and everybody else reads it after.
struct Execution::State {
  std::shared_ptr<Result> known = std::make_shared<Result>();
  Result asked = {};
  Redactor redactor = {};
  std::shared_ptr<const void> home = {};  // removed when it goes away: after the process
  std::optional<Process> process = {};
};

Execution Executor::start(const Command& command) const {
  Admission admission = admit(command);
  Execution execution;
  execution.state_ = std::make_shared<Execution::State>();
  Execution::State& state = *execution.state_;
  *state.known = std::move(admission.result);
  state.home = std::move(admission.home);
  if (state.known->rule.empty() && state.known->message.empty()) {
    state.redactor = gate_->redactor;
    auto on_end = [gate = gate_, known = state.known, tool = command.tool, time = admission.time,
                   code = gate_->recording() ? command.code : std::string(), told = command.on_end,
                   ending = std::move(admission.ending)](const ProcessResult& ended) {
      gate->conclude(ending, ended, *known);
      gate->mask(*known);
      if (gate->recording()) {
        Result result = *known;
        static_cast<ProcessResult&>(result) = ended;
        result.message = gate->redactor.redact(result.message);
        gate->record(result, {tool, code, time});
        known->notes = std::move(result.notes);
      }
      told();
    };
    state.asked = *state.known;
    gate_->mask(state.asked);
    ProcessResult failure;
    auto process = Process::start(std::move(admission.process), std::move(on_end), &failure);
    if (process) {
      state.process.emplace(std::move(*process));
      return execution;
    }
    static_cast<ProcessResult&>(*state.known) = std::move(failure);
  }
  gate_->mask(*state.known);
  gate_->record(*state.known, {command.tool, command.code, admission.time});
  state.asked = *state.known;
  return execution;
}

bool Execution::done() const { return !state_->process || state_->process->done(); }

bool Execution::wait_for(std::chrono::milliseconds time) const {
  return !state_->process || state_->process->wait_for(time);
}

Result Execution::wait() const {
  if (!state_->process) return *state_->known;
  const ProcessResult& ended = state_->process->wait();
  Result result = *state_->known;
  static_cast<ProcessResult&>(result) = ended;
  result.message = state_->redactor.redact(result.message);
  return result;
}

void Execution::cancel() const {
  if (state_->process) state_->process->cancel();
}

const Result& Execution::asked() const noexcept { return state_->asked; }

int Execution::pid() const { return state_->process ? state_->process->pid() : -1; }

Expected<void> Execution::write(std::string_view bytes) const {
  if (state_->process) return state_->process->write(bytes);
  return make_error(ErrorCode::io, "the command is not running, so it reads no input");
}

void Execution::close_input() const {
  if (state_->process) state_->process->close_input();
}

Capture::Chunk Execution::read(Stream stream, std::uint64_t cursor) const {
  if (state_->process) return state_->process->read(stream, cursor);
  Capture::Chunk nothing;
  nothing.next = cursor;
  return nothing;
}

// on this host ------------------------------------------------------------------------------------

namespace {

// Removing trees. What a command leaves is hostile: links, mounts, directories without rights or
// ten thousand deep, names of any bytes. Nothing here follows a link or a path of more than one
// name, and the state is a handful of descriptors: directories within directories are moved up to
// the root of the tree, one at a time, instead of being descended into.

constexpr int listed_directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Opens a directory within a directory, unless something is mounted on it.
UniqueFd open_subdirectory(int parent, const char* entry, int flags) {
#if CODEEXEC_HAVE_OPENAT2
  struct {
    std::uint64_t flags;
    std::uint64_t mode;
    std::uint64_t resolve;
  } how = {static_cast<std::uint64_t>(flags), 0, 0x01 | 0x04};  // RESOLVE_NO_XDEV, NO_SYMLINKS
  const auto at_once = static_cast<int>(::syscall(SYS_openat2, parent, entry, &how, sizeof how));
  // Old kernels do not have it, and old filters forbid it.
  if (at_once >= 0 || (errno != ENOSYS && errno != EPERM))
    return UniqueFd(above_standard_streams(at_once));
#endif
  UniqueFd fd(above_standard_streams(::openat(parent, entry, flags)));
  struct stat above {};
  struct stat below {};
  if (!fd || ::fstat(parent, &above) != 0 || ::fstat(fd.get(), &below) != 0) return UniqueFd();
  if (above.st_dev == below.st_dev) return fd;
  errno = EXDEV;
  return UniqueFd();
}

// Gives its owner all rights to a directory within a directory.
bool make_usable(int parent, const char* entry) {
#if defined(__linux__)
  // fchmod() takes no descriptor of this kind, and fchmodat() cannot be told to follow no link.
  const UniqueFd itself =
      open_subdirectory(parent, entry, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return itself &&
         ::chmod(concat({"/proc/self/fd/", std::to_string(itself.get())}).c_str(), 0700) == 0;
#else
  return ::fchmodat(parent, entry, 0700, AT_SYMLINK_NOFOLLOW) == 0;
#endif
}

// To be listed; a directory without the rights for that is given them.
UniqueFd open_for_removal(int parent, const char* entry) {
  UniqueFd fd = open_subdirectory(parent, entry, listed_directory_flags);
  if (fd || errno != EACCES || !make_usable(parent, entry)) return fd;
  return open_subdirectory(parent, entry, listed_directory_flags);
}

// Calls `use` with the names in a directory, as long as it returns true.
void for_each_entry(int directory, FunctionRef<bool(const char*)> use) {
  UniqueFd own(
      above_standard_streams(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  const std::unique_ptr<DIR, CloseDirectory> listing(own ? ::fdopendir(own.get()) : nullptr);
  if (!listing) return;
  (void)own.release();  // closed by closedir() from here on
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view text = entry->d_name;
    if (text != "." && text != ".." && !use(entry->d_name)) return;
  }
}

class TreeRemoval {
 public:
  // Of all that is in a directory, but not the directory.
  explicit TreeRemoval(int root) : root_(root) {}

  // False when something could not be removed.
  bool run() {
    // Each round takes away a level of the tree. The bound is for a process that goes on adding.
    constexpr int most_rounds = 1 << 17;
    ::fchmod(root_, 0700);
    for (int round = 0; round < most_rounds; ++round) {
      const std::uint64_t before = done_;
      bool any = false;
      for_each_entry(root_, [&](const char* entry) {
        any = true;
        empty_and_remove(entry);
        return true;
      });
      if (!any) return true;
      if (done_ == before) return false;
    }
    return false;
  }

 private:
  // A file or an empty directory. True when it is gone.
  bool remove(int parent, const char* entry) {
    const bool gone = ::unlinkat(parent, entry, 0) == 0 || errno == ENOENT ||
                      ::unlinkat(parent, entry, AT_REMOVEDIR) == 0 || errno == ENOENT;
    if (gone) ++done_;
    return gone;
  }

  void empty_and_remove(const char* entry) {
    if (remove(root_, entry)) return;
    const UniqueFd directory = open_for_removal(root_, entry);
    if (!directory) return;
    ::fchmod(directory.get(), 0700);
    for_each_entry(directory.get(), [&](const char* inner) {
      if (!remove(directory.get(), inner)) move_up(directory.get(), inner);
      return true;
    });
    remove(root_, entry);
  }

  void move_up(int parent, const char* entry) {
    bool may_change = true;
    for (;;) {
      const std::string target = concat({"removed-", std::to_string(names_++)});
      if (::renameat(parent, entry, root_, target.c_str()) == 0) {
        ++done_;
        return;
      }
      const bool taken = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR;
      if (taken) continue;
      // Moving a directory takes the right to write to it.
      if (errno != EACCES || !may_change || !make_usable(parent, entry)) return;
      may_change = false;
    }
  }

  int root_;
  std::uint64_t names_ = 0;
  std::uint64_t done_ = 0;
};

constexpr std::string_view home_prefix = "codeexec-home-";

// Removes homes in a directory that nobody uses any more: a few, as the caller waits for it.
void remove_left_homes(const std::string& parent) {
  constexpr int most = 16;
  constexpr std::size_t random_size = 6;
  const UniqueFd directory(
      above_standard_streams(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!directory) return;
  int removed = 0;
  for_each_entry(directory.get(), [&](const char* entry) {
    const std::string_view text = entry;
    if (!starts_with(text, home_prefix) || text.size() != home_prefix.size() + random_size)
      return true;
    const auto is_own = [](const struct stat& status) {
      return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
    };
    struct stat status {};
    if (::fstatat(directory.get(), entry, &status, AT_SYMLINK_NOFOLLOW) != 0 || !is_own(status))
      return true;
    const UniqueFd home = open_for_removal(directory.get(), entry);
    if (!home || ::fstat(home.get(), &status) != 0 || !is_own(status)) return true;
    if (::flock(home.get(), LOCK_EX | LOCK_NB) != 0) return true;
    TreeRemoval(home.get()).run();
    ::unlinkat(directory.get(), entry, AT_REMOVEDIR);
    return ++removed < most;
  });
}

// The value that a list of NAME=value has for a name; null when it has none.
const char* value_of(const std::vector<std::string>& variables, std::string_view wanted) {
  for (const std::string& variable : variables)
    if (starts_with(variable, wanted) && variable.size() > wanted.size() &&
        variable[wanted.size()] == '=')
      return variable.c_str() + wanted.size() + 1;
  return nullptr;
}

// Without a network, package managers try for a minute or more unless they are told not to.
std::vector<std::string> offline_variables(Network network) {
  if (network == Network::host) return {};
  std::vector<std::string> variables = {concat({"CODEEXEC_NETWORK=", name(network)})};
  if (network == Network::none)
    variables.insert(variables.end(),
                     {"npm_config_offline=true", "npm_config_fetch_retries=0", "PIP_NO_INDEX=1",
                      "CARGO_NET_OFFLINE=true", "UV_OFFLINE=1", "GOPROXY=off", "HF_HUB_OFFLINE=1"});
  return variables;
}

// With a home of their own commands do not find the toolchains that rustup keeps in the user's.
// Those may be read, as they go with the ~/.cargo/bin of a PATH.
void add_toolchains(const Environment& environment, std::vector<std::string>& variables) {
  const auto resolved = environment.resolve({});
  const char* const home = resolved ? value_of(resolved->variables, "HOME") : nullptr;
  if (!home) return;
  const std::string toolchains = concat({home, "/.rustup"});
  if (is_directory(toolchains)) variables.push_back(concat({"RUSTUP_HOME=", toolchains}));
}

// What can only be had with a sandbox must not be missed in silence.
Expected<void> check_without_sandbox(const SandboxOptions& options) {
  if (options.network != Network::host)
    return make_error(ErrorCode::invalid_argument,
                      concat({"network: ", quoted(name(options.network)),
                              " needs a sandbox: set sandbox to best_effort or strict"}));
  if (options.pid_namespace)
    return make_error(ErrorCode::invalid_argument,
                      "pid_namespace: it needs a sandbox: set sandbox to best_effort or strict");
  return {};
}

// Roots of one kind that lie in a root which allows more. Grants only add up in the kernel, so
// commands have there what the outer root allows.
std::string roots_out_of_reach(const std::vector<Root>& roots, Permission permission) {
  std::vector<std::string> paths;
  for (const Root& root : roots) {
    const auto allows_more = [&](const Root& other) {
      return other.permission > root.permission && codeexec::is_within(root.path, other.path);
    };
    if (root.permission == permission && std::any_of(roots.begin(), roots.end(), allows_more))
      paths.push_back(quoted(root.path));
  }
  return joined(paths, ", ");
}

std::string absolute_path(const std::string& path) {
  if (starts_with(path, "/")) return path;
  const auto here = canonical_path(".");
  return here ? concat({*here, "/", path}) : path;
}

// What lies in a writable directory is readable already, and so is the system. The sandbox gets
// the path as it was given: it refuses links which a command could have put there.
void grant_reading(SandboxOptions& sandbox, const std::string& canonical,
                   const std::string& given) {
  const auto holds_it = [&](const std::string& other) {
    return codeexec::is_within(canonical, other);
  };
  if (!is_readable_system(canonical) &&
      std::none_of(sandbox.writable.begin(), sandbox.writable.end(), holds_it))
    sandbox.readable.push_back(given);
}

// The absolute path that the operator gave for a canonical one. The sandbox must see it: it refuses
// links which a command could have put there, and canonical paths have none.
std::string path_as_given(const std::string& canonical, const LocalOptions& options) {
  for (const Root& root : options.roots) {
    const auto path = canonical_path(root.path);
    if (path && *path == canonical) return absolute_path(root.path);
  }
  const auto workspace = canonical_path(options.workspace);
  return workspace && *workspace == canonical ? absolute_path(options.workspace) : canonical;
}

// What commands need besides the roots, by the names of its options.
struct NeededPath {
  const char* option;
  const std::string& path;
};
std::array<NeededPath, 3> needed_paths(const LocalOptions& options) {
  return {{{"venv_path", options.environment.venv_path},
           {"skills_dir", options.skills_dir},
           {"shell", options.shell}}};
}

Expected<void> grant_needed(const LocalOptions& options, SandboxOptions& sandbox) {
  for (const NeededPath& needed : needed_paths(options)) {
    if (needed.path.empty()) continue;
    auto canonical = canonical_path(needed.path);
    if (!canonical) return canonical.error();
    const std::size_t before = sandbox.readable.size();
    grant_reading(sandbox, *canonical, absolute_path(needed.path));
    if (sandbox.readable.size() != before && is_home_directory(*canonical))
      return make_error(ErrorCode::invalid_argument,
                        concat({needed.option, ": ", quoted(needed.path),
                                " is a home directory or above one, which commands would be "
                                "shown all of; name the directory that they need"}));
  }
  return {};
}

// What the roots allow as grants of the sandbox. What it cannot hold goes into `missing`.
Expected<void> grant_roots(const LocalOptions& options, const std::vector<Root>& roots,
                           const std::string& workspace, SandboxOptions& sandbox,
                           std::vector<std::string>& missing) {
  const auto check = [](const char* option, const std::string& path) -> Expected<void> {
    if (path != "/") return {};
    return make_error(ErrorCode::invalid_argument,
                      concat({option,
                              ": a sandbox cannot be given '/': name the directories that "
                              "commands need, or set sandbox to off"}));
  };
  if (roots.empty()) {
    if (auto ok = check("workspace", workspace); !ok) return ok;
    sandbox.writable.push_back(workspace);
  }
  for (const Root& root : roots) {
    if (root.permission == Permission::none) continue;
    const bool write = root.permission == Permission::write;
    if (auto ok = check(write ? "allowed_paths" : "read_only", root.path); !ok) return ok;
    if (write) sandbox.writable.push_back(root.path);
  }
  for (const Root& root : roots)
    if (root.permission == Permission::read)
      grant_reading(sandbox, root.path, path_as_given(root.path, options));
  for (const Permission permission : {Permission::none, Permission::read}) {
    const std::string paths = roots_out_of_reach(roots, permission);
    if (paths.empty()) continue;
    const bool none = permission == Permission::none;
    std::string reason = concat({paths,
                                 none ? " in a directory that commands may use"
                                      : " in a directory that commands may change",
                                 ": the kernel cannot take it back there"});
    if (sandbox.mode == SandboxMode::strict)
      return make_error(ErrorCode::unsupported,
                        concat({none ? "allowed_paths" : "read_only", ": sandbox strict: ", reason,
                                "; move it out, or set sandbox to best_effort"}));
    missing.push_back(concat({none ? "forbidden_roots: " : "read_only_roots: ", reason}));
  }
  return {};
}

// The sandbox calls grants what are roots here, or the workspace.
Error in_words_of_roots(Error error, const LocalOptions& options) {
  constexpr std::string_view theirs = "grants: ";
  for (const char* own : {"limits: ", "sandbox: "})
    if (starts_with(error.message, own)) return error;
  std::vector<std::pair<const char*, std::string>> others;
  for (const Root& root : options.roots)
    if (root.permission == Permission::read)
      others.emplace_back("read_only", absolute_path(root.path));
  for (const NeededPath& needed : needed_paths(options))
    if (!needed.path.empty()) others.emplace_back(needed.option, absolute_path(needed.path));
  for (const auto& other : others) {
    if (!starts_with(error.message, concat({theirs, quoted(other.second), " "}))) continue;
    error.message.replace(0, theirs.size(), concat({other.first, ": "}));
    return error;
  }
  if (!starts_with(error.message, theirs) || !options.sandbox.writable.empty() ||
      !options.sandbox.readable.empty())
    return with_prefix("sandbox: ", std::move(error));
  error.message.replace(0, theirs.size(),
                        options.roots.empty() ? "workspace: " : "allowed_paths: ");
  return error;
}

// The options of the sandbox with all that the executor's options imply.
Expected<SandboxOptions> complete_sandbox(const LocalOptions& options,
                                          const std::vector<Root>& roots,
                                          const std::string& workspace,
                                          std::vector<std::string>& missing) {
  SandboxOptions sandbox = options.sandbox;
  if (sandbox.mode == SandboxMode::off) {
    if (auto ok = check_without_sandbox(sandbox); !ok) return ok.error();
    return sandbox;
  }
  if (auto ok = grant_roots(options, roots, workspace, sandbox, missing); !ok) return ok.error();
  if (auto ok = grant_needed(options, sandbox); !ok) return ok.error();
  // Of the commands' PATH, but without a venv: that has a grant of its own, and what the links lead
  // to in one that a command may have made would be granted as well.
  EnvironmentOptions variables = options.environment;
  variables.auto_venv = false;
  variables.venv_path.clear();
  const auto environment = Environment::create(variables);
  if (!environment) return environment.error();
  const auto resolved = environment->resolve({});
  if (!resolved) return resolved.error();
  const char* const path = value_of(resolved->variables, "PATH");
  if (path && !sandbox.search_path.empty()) sandbox.search_path += ':';
  if (path) sandbox.search_path += path;
  return sandbox;
}

}  // namespace

const char* name(PrivateHome home) noexcept {
  switch (home) {
    case PrivateHome::off:
      return "off";
    case PrivateHome::command:
      return "command";
    case PrivateHome::executor:
      break;
  }
  return "executor";
}

struct LocalExecutor::Place {
  class Home;

  Environment environment;
  std::string shell;
  std::string skills_dir;
  Sandbox sandbox = {};
  std::shared_ptr<const SandboxReport> report = {};
  std::vector<std::string> writable = {};        // what the sandbox was told to grant
  std::vector<std::string> weak_variables = {};  // that any other setting of them replaces
  bool watch_files = false;
  mutable std::once_flag skills_linked = {};
  // The directory that all private homes are, or lie in. Null: there are none.
  std::shared_ptr<const Home> homes = {};
  bool home_per_command = false;
  bool gives_home = true;
  bool gives_temporary = true;
  bool supervised = true;
  PathRules file_rules = {};

  bool sandboxed() const { return report->mode != SandboxMode::off; }
  // What is watched while a command runs in that directory.
  std::vector<std::string> watched(const std::string& work_dir) const {
    if (!watch_files) return {};
    std::vector<std::string> directories = writable;
    directories.resize(std::min(directories.size(), WatchedFiles::max_directories));
    if (std::find(directories.begin(), directories.end(), work_dir) == directories.end())
      directories.push_back(work_dir);
    return directories;
  }

  Place(Environment variables, std::string shell_path, std::string skills)
      : environment(std::move(variables)),
        shell(std::move(shell_path)),
        skills_dir(std::move(skills)) {}

  Expected<void> make_homes(const LocalOptions& options);
  Expected<PathRules> make_file_rules(const PathRules& paths,
                                      const std::vector<std::string>& readable) const;
  Expected<std::shared_ptr<const Home>> next_home() const;
  Expected<CommandEnvironment> resolve(const Command& command, std::string_view work_dir,
                                       const Home* home) const;
};

// A directory for HOME and TMPDIR to lead to, which is removed with all that is in it. It is locked
// as long as it is in use: one that is not belonged to a program that was killed.
class LocalExecutor::Place::Home {
 public:
  // `parent` is a canonical path.
  static Expected<std::shared_ptr<const Home>> create(const std::string& parent,
                                                      std::string_view prefix) {
    constexpr int most_tries = 10;
    int error = EWOULDBLOCK;
    for (int tries = 0; tries < most_tries && error == EWOULDBLOCK; ++tries) {
      std::string path = concat({parent, "/", prefix, "XXXXXX"});
      if (!::mkdtemp(&path[0])) {
        error = errno;
        break;
      }
      UniqueFd fd(above_standard_streams(::open(path.c_str(), listed_directory_flags)));
      error = fd ? prepare(fd.get()) : errno;
      if (error == 0) return std::make_shared<const Home>(std::move(path), std::move(fd));
      ::rmdir(path.c_str());
    }
    return system_error(error,
                        concat({"private_home: cannot make a directory in ", quoted(parent)}));
  }

  Home(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  ~Home() {
    // A fork of the program has a copy of this object, and no part in the directory.
    if (owner_ != ::getpid()) return;
    TreeRemoval(fd_.get()).run();
    ::rmdir(path_.c_str());
  }

  const std::string& path() const noexcept { return path_; }
  std::string temporary() const { return path_ + "/tmp"; }

 private:
  // An errno, or 0. EWOULDBLOCK: another program, looking for what was left, was faster.
  static int prepare(int fd) {
    // On a file system without locks nobody removes what was left.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return EWOULDBLOCK;
    if (::mkdirat(fd, "tmp", 0700) == 0) return 0;
    return errno == ENOENT ? EWOULDBLOCK : errno;
  }

  std::string path_;
  UniqueFd fd_;
  pid_t owner_ = ::getpid();
};

Expected<void> LocalExecutor::Place::make_homes(const LocalOptions& options) {
  if (options.sandbox.mode == SandboxMode::off || options.private_home == PrivateHome::off)
    return {};
  const char* const given = std::getenv("TMPDIR");
  auto parent = canonical_path(given && *given == '/' ? given : "/tmp");
  if (!parent) return with_prefix("private_home: ", parent.error());
  remove_left_homes(*parent);
  auto made = Home::create(*parent, home_prefix);
  if (!made) return made.error();
  homes = std::move(*made);
  home_per_command = options.private_home == PrivateHome::command;
  for (const auto& variable : options.environment.set) {
    if (variable.first == "HOME") gives_home = false;
    if (variable.first == "TMPDIR") gives_temporary = false;
  }
  return {};
}

// The home of one more command, or null.
Expected<std::shared_ptr<const LocalExecutor::Place::Home>> LocalExecutor::Place::next_home()
    const {
  if (!home_per_command) return homes;
  return Home::create(homes->path(), "command-");
}

// The variables of a command in a work_dir; `home` is its private one, or null.
Expected<CommandEnvironment> LocalExecutor::Place::resolve(const Command& command,
                                                           std::string_view work_dir,
                                                           const Home* home) const {
  if (!home) return environment.resolve(work_dir, command.environment);
  std::vector<std::pair<std::string, std::string>> extra;
  if (gives_home) extra.emplace_back("HOME", home->path());
  if (gives_temporary) extra.emplace_back("TMPDIR", home->temporary());
  extra.insert(extra.end(), command.environment.begin(), command.environment.end());
  return environment.resolve(work_dir, extra);
}

Expected<LocalExecutor> LocalExecutor::create(const LocalOptions& options) {
  LocalExecutor executor;
  EnvironmentOptions variables = options.environment;
  variables.workspace = options.workspace.empty() ? "." : options.workspace;
  auto environment = Environment::create(variables);
  if (!environment) return environment.error();
  ExecutorOptions general = options;
  general.policy.enable_sudo = false;
  if (auto ok = executor.set_up(general, environment->secrets()); !ok) return ok.error();
  if (options.shell.find('\0') != std::string::npos || !is_program(options.shell))
    return make_error(
        ErrorCode::invalid_argument,
        concat({"shell must be the path of a program, and ", quoted(options.shell), " is not"}));
  auto skills_dir = usable_directory("skills_dir", options.skills_dir, R_OK | X_OK);
  if (!skills_dir) return skills_dir.error();
  auto place =
      std::make_shared<Place>(std::move(*environment), options.shell, std::move(*skills_dir));
  if (auto ok = place->make_homes(options); !ok) return ok.error();
  if (auto ok = set_up_sandbox(options, executor.paths().roots(), executor.workspace(), *place);
      !ok)
    return ok.error();
  place->supervised = options.supervised;
  auto file_rules = place->make_file_rules(executor.paths(), options.sandbox.readable);
  if (!file_rules) return file_rules.error();
  place->file_rules = std::move(*file_rules);
  executor.place_ = std::move(place);
  return executor;
}

Expected<void> LocalExecutor::set_up_sandbox(const LocalOptions& options,
                                             const std::vector<Root>& roots,
                                             const std::string& workspace, Place& place) {
  std::vector<std::string> missing;
  auto wanted = complete_sandbox(options, roots, workspace, missing);
  if (!wanted) return wanted.error();
  const bool on = wanted->mode != SandboxMode::off;
  if (on) {
    place.writable = wanted->writable;
    for (std::string& path : wanted->writable) path = path_as_given(path, options);
    place.watch_files = options.watch_files;
    if (place.homes) wanted->writable.push_back(place.homes->path());
  }
  auto sandbox = Sandbox::create(*wanted);
  if (!sandbox) return in_words_of_roots(sandbox.error(), options);
  place.sandbox = std::move(*sandbox);
  SandboxReport report = place.sandbox.report();
  report.missing.insert(report.missing.end(), missing.begin(), missing.end());
  place.weak_variables = offline_variables(report.network);
  if (place.homes) add_toolchains(place.environment, place.weak_variables);
  place.report = std::make_shared<const SandboxReport>(std::move(report));
  return {};
}

const SandboxReport& LocalExecutor::sandbox_report() const noexcept { return *place_->report; }

std::string LocalExecutor::describe_place() const {
  const SandboxReport& report = *place_->report;
  if (!place_->sandboxed()) return {};
  std::vector<std::string> sentences;
  const auto& enforced = report.enforced;
  if (std::find(enforced.begin(), enforced.end(), "filesystem") != enforced.end()) {
    std::vector<std::string> readable;
    for (const Root& root : paths().roots())
      if (root.permission == Permission::read) readable.push_back(root.path);
    sentences.push_back(
        concat({"Commands run in a sandbox. They can change files only below ",
                to_utf8(joined(place_->writable, ", ")),
                place_->homes ? " and their own HOME and TMPDIR (use $TMPDIR, not /tmp)" : "",
                "; besides, they can read the system, its tools",
                readable.empty() ? "" : concat({", ", to_utf8(joined(readable, ", "))}),
                " and nothing else of the user's."}));
  }
  if (report.network == Network::none)
    sentences.push_back("The network is switched off: nothing can be downloaded.");
  if (report.network == Network::loopback)
    sentences.push_back("The network is switched off, but for 127.0.0.1 within one command.");
  return joined(sentences, " ");
}

// A sandbox without roots still has places where its commands may read and write.
Expected<PathRules> LocalExecutor::Place::make_file_rules(
    const PathRules& paths, const std::vector<std::string>& readable) const {
  if (!sandboxed()) return paths;
  PathOptions options;
  options.roots = paths.roots();
  const auto add = [&options](const std::string& path, Permission permission) {
    PathOptions more = options;
    more.roots.push_back({path, permission});
    // One that is gone, or that is a root already, adds nothing.
    if (PathRules::create(more)) options = std::move(more);
  };
  for (const std::string& path : writable) add(path, Permission::write);
  if (homes) add(homes->path(), Permission::write);
  for (const std::string& path : readable) add(path, Permission::read);
  // Without any root everything would be allowed.
  if (options.roots.empty()) options.roots.push_back({"/", Permission::none});
  return PathRules::create(options);
}

PathRules LocalExecutor::file_rules() const { return place_->file_rules; }

std::string LocalExecutor::home(const Command& command, std::string_view work_dir) const {
  // The home of a command that has not started is not there yet, but this is where it will be.
  const auto environment = place_->resolve(command, work_dir, place_->homes.get());
  if (!environment) return {};
  const char* const home = value_of(environment->variables, "HOME");
  return home ? home : std::string();
}

// Hands the command over to the sandbox.
void LocalExecutor::confine(Admission& admission) const {
  ProcessOptions& process = admission.process;
  Result& result = admission.result;
  result.sandbox = place_->report;
  process.sandbox = place_->sandbox;
  process.secrets = place_->environment.secrets();
  process.supervised = process.supervised || place_->supervised;
  for (const std::string& variable : place_->weak_variables)
    if (!value_of(process.environment, std::string_view(variable).substr(0, variable.find('='))))
      process.environment.push_back(variable);
  if (!place_->sandboxed()) return;
  if (auto same = place_->sandbox.check_grants(); !same) {
    const Error error = with_prefix("sandbox: ", same.error());
    if (place_->report->mode == SandboxMode::strict) return admission.fail(error, "sandbox");
    result.notes.push_back(error.message);
  }
  admission.ending.changed_files = [watched =
                                        WatchedFiles(place_->watched(admission.directory.path))] {
    return watched.changes();
  };
}

// A prefix goes before the command line as a whole, never before its first simple command only: the
// shell that reads the prefix gets the rest as arguments.
Expected<void> LocalExecutor::place(const Command& command, Admission& admission) const {
  auto home = place_->next_home();
  if (!home) return home.error();
  admission.home = *home;
  auto environment = place_->resolve(command, admission.directory.path, home->get());
  if (!environment) return environment.error();
  if (!place_->skills_dir.empty()) {
    std::call_once(place_->skills_linked, [&] {
      if (auto ok = link_skills(workspace(), place_->skills_dir); !ok)
        admission.result.notes.push_back(ok.error().message);
    });
  }
  ProcessOptions& process = admission.process;
  process.environment = std::move(environment->variables);
  admission.result.venv = environment->venv;
  confine(admission);
  if (!admission.admitted()) return {};

  std::vector<std::string> words = command.argv;
  if (words.empty()) {
    words.push_back(command.interpreter.empty() ? place_->shell : command.interpreter);
    if (command.script.size() < longest_inline_script) {
      // The blank keeps a script like "-x" from being read as an option of the shell.
      const bool like_option = starts_with(command.script, "-") || starts_with(command.script, "+");
      words.insert(words.end(), {"-c", concat({like_option ? " " : "", command.script})});
    } else {
      auto script = anonymous_file(command.script);
      if (!script) return script.error();
      admission.script = std::move(*script);
      process.pass_fd = admission.script.get();
      words.push_back("/dev/fd/3");
    }
  }
  if (environment->prefix.empty()) {
    process.argv = std::move(words);
    return {};
  }
  process.argv = {place_->shell, "-c", concat({environment->prefix, " \"$@\""}), "sh"};
  process.argv.insert(process.argv.end(), words.begin(), words.end());
  return {};
}

// =================================================================================================
// >>shells (definitions)
//
// An event of the process section's thread only marks a shell and wakes those who wait for it.
// =================================================================================================

const char* name(ShellState state) noexcept {
  switch (state) {
    case ShellState::running:
      return "running";
    case ShellState::stopped:
      return "stopped";
    case ShellState::failed:
      return "failed";
    case ShellState::killed:
      break;
  }
  return "killed";
}

const char* name(ShellWaitEnd end) noexcept {
  switch (end) {
    case ShellWaitEnd::matched:
      return "matched";
    case ShellWaitEnd::ended:
      return "ended";
    case ShellWaitEnd::timed_out:
      return "timed_out";
    case ShellWaitEnd::cancelled:
      break;
  }
  return "cancelled";
}

struct BackgroundShells::State {};
BackgroundShells::BackgroundShells(const Executor&, ShellOptions) {}
BackgroundShells::~BackgroundShells() = default;
Expected<ShellStatus> BackgroundShells::start(const Command&, Result*) {
  return make_error(ErrorCode::unsupported, "not built yet");
}
ForegroundRun BackgroundShells::run(const Command&, std::chrono::milliseconds) { return {}; }
Expected<ShellStatus> BackgroundShells::status(std::string_view) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}
std::vector<ShellStatus> BackgroundShells::list() const { return {}; }
Expected<ShellOutput> BackgroundShells::read(std::string_view, ShellCursor) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}
Expected<ShellWaitEnd> BackgroundShells::wait(std::string_view, const ShellWait&) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}
Expected<void> BackgroundShells::write(std::string_view, std::string_view) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}
Expected<void> BackgroundShells::close_input(std::string_view) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}
Expected<bool> BackgroundShells::kill(std::string_view) const {
  return make_error(ErrorCode::unsupported, "not built yet");
}

// =================================================================================================
// >>code (definitions)
//
// Blocks become files and command lines; the executor does the rest.
// =================================================================================================

std::vector<CodeBlock> extract_code(std::string_view) { return {}; }
std::string infer_language(std::string_view) { return {}; }
const std::vector<CodeLanguage>& default_languages() {
  static const std::vector<CodeLanguage> languages = {};
  return languages;
}
CodeResult run_code(const Executor&, const std::vector<CodeBlock>&, const CodeOptions&) {
  return {};
}
CodeResult run_code(const Executor& executor, std::string_view language, std::string_view code,
                    const CodeOptions& options) {
  return run_code(executor, {{std::string(language), std::string(code)}}, options);
}

// =================================================================================================
// >>mcp (definitions)
// =================================================================================================
//
// Threads take turns (leader and followers). One of them, the leader, reads. It answers by itself
// what takes no time; when it has read a tools/call it wakes a follower to go on reading and runs
// the handler itself. Waking costs more than a short call (17 us instead of 7 for a round trip), so
// nobody is woken for a tool whose last call took microseconds: the leader reads on afterwards.
// Against the call that takes longer this time, one idle thread keeps watch for as long as such
// calls come in, and takes over the reading from one that has not ended within a millisecond or
// two. When nothing comes in no thread wakes up.
//
// Replies are whole lines. Who has one writes it, as long as the client takes it at once; while
// somebody is writing, others only add to the queue. What the client does not take at once goes to
// the writer thread, the only one that ever waits for the client. A queue that is full holds up the
// handlers and then the leader, hence the client: memory stays bounded.
//
// Nothing is sent for a call once it is `done`, which is set, under the call's mutex, when its
// answer is taken for sending or when the client cancels it. A call leaves the table of open
// requests before its answer is sent, because the client may use the id again at once.
//
// serve() itself only waits: for the end of input, `stop`, or a reader who went away. It can thus
// return in time even if a handler does not.

namespace mcp {
namespace {

constexpr std::string_view modern_version = "2026-07-28";
constexpr std::string_view newest_legacy_version = "2025-11-25";
constexpr std::string_view batching_version = "2025-03-26";
constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view capabilities_key = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view log_level_key = "io.modelcontextprotocol/logLevel";
constexpr std::string_view server_info_key = "io.modelcontextprotocol/serverInfo";
constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";

constexpr int parse_error = -32700;
constexpr int invalid_request = -32600;
constexpr int method_not_found = -32601;
constexpr int invalid_params = -32602;
constexpr int internal_error = -32603;
constexpr int unsupported_version = -32022;

constexpr const char* server_ends = "The server is ending; the tool was not called.";
constexpr std::size_t longest_id = 1024;        // bytes as JSON; it is echoed in every answer
constexpr std::size_t longest_batch = 100;      // messages; each needs a share of max_reply
constexpr std::size_t most_subscriptions = 64;  // open ones
constexpr std::size_t most_values = 1000000;    // in one message: 100 MB at the worst
constexpr std::size_t longest_notice = 4096;    // bytes of a progress message
constexpr std::size_t deepest_output = 60;      // clients give up at 64 levels and more
constexpr std::size_t longest_envelope = 160;   // bytes around id, result and serverInfo
constexpr std::size_t smallest_reply = 4096;    // lower bound of ServerOptions::max_reply
constexpr unsigned answered_bad_lines = 8;      // in a row; later ones could be an echo of ours
// More than a short call takes when the thread it has woken gets its processor for a while; else
// such a call would never count as short again. Less than what a client notices.
constexpr std::chrono::microseconds quick_time{200};
constexpr std::chrono::milliseconds watch_time{1};
constexpr std::chrono::milliseconds finish_time{300};
constexpr std::chrono::milliseconds cancel_time{600};
constexpr std::chrono::milliseconds flush_time{250};

bool served_legacy_version(std::string_view version) {
  return version == "2025-11-25" || version == "2025-06-18" || version == "2025-03-26" ||
         version == "2024-11-05";
}

// The writer of Json repairs what is not UTF-8.
void append_string(std::string& out, std::string_view text) { Json(text).dump_to(out); }

void append_member(std::string& out, std::string_view name, std::string_view text) {
  append_string(out, name);
  out += ':';
  append_string(out, text);
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Deepest nesting of arrays and objects, counted no further than one above `limit`.
std::size_t depth_of(const Json& value, std::size_t limit) {
  std::vector<std::pair<const Json*, std::size_t>> open;
  std::size_t deepest = 0;
  const auto visit = [&](const Json& child, std::size_t depth) {
    if (!child.is_array() && !child.is_object()) return;
    deepest = std::max(deepest, depth);
    open.emplace_back(&child, depth);
  };
  visit(value, 1);
  while (!open.empty() && deepest <= limit) {
    const auto [container, depth] = open.back();
    open.pop_back();
    for (const Json& item : container->items()) visit(item, depth + 1);
    for (const Json::Member& member : container->members()) visit(member.value, depth + 1);
  }
  return deepest;
}

// Bytes that a value takes in memory, about.
std::size_t weight_of(const Json& value) {
  constexpr std::size_t of_value = 48;
  std::size_t weight = of_value;
  std::vector<const Json*> open = {&value};
  while (!open.empty()) {
    const Json& container = *open.back();
    open.pop_back();
    weight += container.as_string().size();
    weight += container.size() * of_value;
    for (const Json& item : container.items()) open.push_back(&item);
    for (const Json::Member& member : container.members()) {
      weight += sizeof(std::string) + member.name.size();
      open.push_back(&member.value);
    }
  }
  return weight;
}

// ids ---------------------------------------------------------------------------------------------

// A request's id as it is echoed, and as it is looked up: 1 and "1" differ, 1 and 1.0 do not.
struct Id {
  std::string spelling = {};  // JSON; empty: not a valid id
  std::string key = {};
};

bool is_whole(const Json& value) {
  if (value.is_integer()) return true;
  if (!value.is_number()) return false;
  const double number = value.as_number();
  return std::floor(number) == number;
}

Id id_of(const Json& value) {
  Id id;
  const bool text = value.is_string() && !value.has_lone_surrogate();
  if (!text && !is_whole(value)) return id;
  id.spelling = value.dump();
  if (id.spelling.size() > longest_id) return Id();
  if (text) {
    id.key = concat({"s", value.as_string()});
  } else {
    id.key = concat({"n", value.is_integer() ? std::to_string(value.as_integer()) : id.spelling});
  }
  return id;
}

// Finds the top-level "id" in a message that cannot be parsed or kept, in pieces of any size. It
// looks only as far as the message still has the shape of an object.
class IdScanner {
 public:
  void feed(std::string_view bytes) {
    for (const char c : bytes) step(c);
  }

  // The id, or an empty one.
  Id id() const {
    if (found_.empty()) return Id();
    const Expected<Json> value = Json::parse(found_);
    return value ? id_of(*value) : Id();
  }

 private:
  enum class Expect { object, name, colon, value, nothing };

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void step(char c) {
    if (broken_) return;
    if (in_string_) return step_in_string(c);
    if (in_number_) {
      if (!is_space(c) && c != ',' && c != '}') return keep(c);
      in_number_ = false;
      found_ = token_;
    }
    if (is_space(c)) return;
    if (expect_ == Expect::object) return begin(c);
    if (c == '"') return begin_string();
    step_structure(c);
  }

  // A byte order mark may precede the object.
  void begin(char c) {
    if (c == '\xef' || c == '\xbb' || c == '\xbf') return;
    broken_ = c != '{';
    depth_ = 1;
    expect_ = Expect::name;
  }

  void begin_string() {
    in_string_ = true;
    token_ = "\"";
    // Only what is compared or returned is kept.
    keeping_ = depth_ == 1 && (expect_ == Expect::name || (expect_ == Expect::value && is_id_));
  }

  void step_in_string(char c) {
    if (keeping_) keep(c);
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      end_string();
    }
  }

  void end_string() {
    if (depth_ != 1) return;
    if (expect_ == Expect::name) {
      is_id_ = token_ == "\"id\"";
      expect_ = Expect::colon;
    } else if (expect_ == Expect::value) {
      if (is_id_) found_ = token_;
      expect_ = Expect::nothing;
    }
  }

  void step_structure(char c) {
    if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      broken_ = --depth_ == 0;
    } else if (depth_ != 1) {
      return;
    } else if (c == ',') {
      expect_ = Expect::name;
    } else if (c == ':') {
      expect_ = Expect::value;
    } else if (expect_ == Expect::value && is_id_) {
      expect_ = Expect::nothing;
      in_number_ = true;
      token_.clear();
      keep(c);
    }
  }

  void keep(char c) {
    if (token_.size() <= longest_id) token_ += c;
  }

  Expect expect_ = Expect::object;
  std::size_t depth_ = 0;
  bool broken_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_number_ = false;
  bool keeping_ = false;
  bool is_id_ = false;
  std::string token_ = {};
  std::string found_ = {};
};

// input -------------------------------------------------------------------------------------------

// Splits a descriptor's bytes into lines. The buffer grows to hold the longest line and shrinks
// afterwards; every byte is looked at once. One thread at a time.
class LineReader {
 public:
  enum class Event { line, too_long, end, interrupted, failed };

  // Reading stops when `wake` becomes readable.
  LineReader(int fd, int wake, std::size_t longest) : fd_(fd), wake_(wake), longest_(longest) {}

  // The next line, without its newline, is valid until the next call.
  Event next(std::string_view& line) {
    for (;;) {
      if (find_newline(line)) {
        if (!skipping_ && line.size() <= longest_) return Event::line;
        skip(line);
        skipping_ = false;
        return Event::too_long;
      }
      if (skipping_ || end_ - begin_ > longest_) {
        skip(std::string_view(buffer_.get() + begin_, end_ - begin_));
        begin_ = scanned_ = end_;
      }
      if (ended_) return last_line(line);
      const Event event = fill();
      if (event == Event::end) {
        ended_ = true;
      } else if (event != Event::line) {
        return event;
      }
    }
  }

  // Whether next() would have a line without reading.
  bool has_line() const {
    return scanned_ != end_ && std::memchr(buffer_.get() + scanned_, '\n', end_ - scanned_);
  }

  // After too_long: the id of the line that was skipped.
  Id skipped_id() const { return scanner_.id(); }
  int error() const { return error_; }

 private:
  static constexpr std::size_t small_buffer = 65536;
  static constexpr std::size_t big_buffer = 4 * small_buffer;

  bool find_newline(std::string_view& line) {
    if (scanned_ == end_) return false;
    const char* from = buffer_.get() + scanned_;
    const void* newline = std::memchr(from, '\n', end_ - scanned_);
    if (!newline) {
      scanned_ = end_;
      return false;
    }
    const auto stop = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.get());
    line = std::string_view(buffer_.get() + begin_, stop - begin_);
    begin_ = scanned_ = stop + 1;
    strip_byte_order_mark(line);
    return true;
  }

  // A last line without newline counts.
  Event last_line(std::string_view& line) {
    if (skipping_) {
      skipping_ = false;
      return Event::too_long;
    }
    if (begin_ == end_) return Event::end;
    line = std::string_view(buffer_.get() + begin_, end_ - begin_);
    begin_ = scanned_ = end_;
    strip_byte_order_mark(line);
    return Event::line;
  }

  void strip_byte_order_mark(std::string_view& line) {
    if (first_ && starts_with(line, "\xef\xbb\xbf")) line.remove_prefix(3);
    first_ = false;
  }

  void skip(std::string_view bytes) {
    if (!skipping_) scanner_ = IdScanner();
    skipping_ = true;
    scanner_.feed(bytes);
  }

  Event fill() {
    make_room();
    for (;;) {
      pollfd fds[2] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
      if (::poll(fds, 2, -1) < 0 && errno != EINTR) return fail();
      if (fds[1].revents != 0) return Event::interrupted;
      if (fds[0].revents == 0) continue;
      const ssize_t size = ::read(fd_, buffer_.get() + end_, capacity_ - end_);
      if (size > 0) {
        end_ += static_cast<std::size_t>(size);
        return Event::line;
      }
      // A terminal or a connection that went away is the end of input as well.
      if (size == 0 || errno == EIO || errno == ECONNRESET) return Event::end;
      if (errno != EINTR && errno != EAGAIN) return fail();
    }
  }

  Event fail() {
    error_ = errno;
    return Event::failed;
  }

  // Moves or copies the rest only after at least as much was consumed or read: linear in all.
  void make_room() {
    const std::size_t rest = end_ - begin_;
    if (rest == 0) begin_ = scanned_ = end_ = 0;
    if (rest == 0 && capacity_ > big_buffer) capacity_ = 0;
    if (end_ < capacity_) return;
    if (rest <= capacity_ / 2 && capacity_ > 0) {
      std::memmove(buffer_.get(), buffer_.get() + begin_, rest);
    } else {
      capacity_ = std::max(small_buffer, 2 * capacity_);
      std::unique_ptr<char[]> bigger(new char[capacity_]);
      if (rest > 0) std::memcpy(bigger.get(), buffer_.get() + begin_, rest);
      buffer_ = std::move(bigger);
    }
    scanned_ -= begin_;
    begin_ = 0;
    end_ = rest;
  }

  int fd_;
  int wake_;
  std::size_t longest_;
  std::unique_ptr<char[]> buffer_ = {};
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;    // of the line being collected
  std::size_t scanned_ = 0;  // no newline before this
  std::size_t end_ = 0;
  bool first_ = true;
  bool ended_ = false;
  bool skipping_ = false;
  IdScanner scanner_ = {};
  int error_ = 0;
};

// output ------------------------------------------------------------------------------------------

// A thread that can be made without exceptions. `run` must not throw.
template <class F>
int start_thread(pthread_t& thread, F run) {
  auto boxed = std::make_unique<F>(std::move(run));
  const auto body = [](void* argument) -> void* {
    const std::unique_ptr<F> mine(static_cast<F*>(argument));
    (*mine)();
    return nullptr;
  };
  const int error = pthread_create(&thread, nullptr, body, boxed.get());
  if (error == 0) boxed.release();
  return error;
}

// Whole lines to one descriptor from many threads; see the head of this section.
class Outbox {
 public:
  // `broken` is cancelled when nobody reads any more.
  Outbox(int fd, std::size_t limit, CancelToken broken)
      : fd_(fd), limit_(limit), broken_(std::move(broken)) {}

  // Starts the writer thread; 0 or an errno.
  int start() {
    if (quit_.descriptor() < 0) return EMFILE;
    // The host's signal handlers are not to run here.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = start_thread(writer_, [this] { write_what_is_left(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    started_ = error == 0;
    return error;
  }

  // Queues a line and writes what can be written at once. Waits while the queue is full.
  void send(std::string line) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    room_.wait(lock, [&] { return closed_ || !patient_ || fits(line.size(), limit_); });
    --waiting_;
    if (closed_ || !fits(line.size(), limit_)) return;
    add(std::move(line));
    drain(lock);
  }

  // Queues a line for a write that comes soon: of the next send() or of push().
  void send_later(std::string line) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_) return;
    const bool much = held_ + line.size() > step || !fits(line.size(), limit_);
    if (!much) return add(std::move(line));
    lock.unlock();
    send(std::move(line));
  }

  // Writes what can be written at once.
  void push() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (held_ > 0 && !closed_) drain(lock);
  }

  // Never waits: drops the line instead when the client is behind.
  void offer(std::string line) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_ || !fits(line.size(), limit_ / 2)) return;
    add(std::move(line));
    drain(lock);
  }

  // True when somebody waits for room and nothing was written since the last question.
  bool stuck() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_ > 0 && std::exchange(written_asked_, written_) == written_;
  }

  // From now on a full queue drops instead of waiting.
  void stop_waiting() {
    const std::lock_guard<std::mutex> lock(mutex_);
    patient_ = false;
    room_.notify_all();
  }

  // Waits until everything is written or the time is over.
  void flush(std::chrono::milliseconds time) {
    std::unique_lock<std::mutex> lock(mutex_);
    room_.wait_for(lock, time, [&] { return closed_ || held_ == 0; });
  }

  // Drops what is left. Afterwards the descriptor is not touched any more.
  void close() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      discard();
    }
    quit_.cancel();
    if (started_) pthread_join(writer_, nullptr);
    started_ = false;
    std::unique_lock<std::mutex> lock(mutex_);
    room_.wait(lock, [&] { return !writing_; });
  }

 private:
  // After poll() says so, a pipe or socket takes this much without blocking.
  static constexpr std::size_t step = 4096;

  bool fits(std::size_t size, std::size_t limit) const {
    return held_ == 0 || held_ + size <= limit;
  }

  void add(std::string line) {
    held_ += line.size();
    if (queue_.empty()) {
      queue_ = std::move(line);
    } else {
      queue_ += line;
    }
  }

  void discard() {
    closed_ = true;
    held_ = 0;
    queue_ = std::string();
    room_.notify_all();
    handed_over_.notify_all();
  }

  // Writes the queue unless somebody does already, who then takes the new line along.
  void drain(std::unique_lock<std::mutex>& lock) {
    if (writing_) return;
    writing_ = true;
    while (!queue_.empty()) {
      if (write_part(lock, false)) continue;
      if (closed_) break;
      handed_ = true;
      handed_over_.notify_one();
      return;
    }
    writing_ = false;
    if (closed_) room_.notify_all();
  }

  // Writes what is queued; false when the client does not take it all at once, or is gone.
  bool write_part(std::unique_lock<std::mutex>& lock, bool wait) {
    std::string part = std::exchange(queue_, std::string());
    lock.unlock();
    std::size_t done = 0;
    const int error = write_bytes(part, done, wait);
    lock.lock();
    if (closed_) return false;
    held_ -= done;
    written_ += done;
    if (error != 0) {
      discard();
      broken_.cancel();
      return false;
    }
    room_.notify_all();
    if (done == part.size()) return true;
    part.erase(0, done);
    part += queue_;
    queue_ = std::move(part);
    return false;
  }

  // 0, or the errno that ends it all. `done` tells how far it came.
  int write_bytes(std::string_view bytes, std::size_t& done, bool wait) {
    NoSigpipe guard;
    while (done < bytes.size() && !quit_.cancelled()) {
      pollfd fds[2] = {{fd_, POLLOUT, 0}, {wait ? quit_.descriptor() : -1, POLLIN, 0}};
      const int ready = ::poll(fds, 2, wait ? -1 : 0);
      if (ready == 0) return 0;
      if (ready < 0 || fds[0].revents == 0) continue;
      const ssize_t size = ::write(fd_, bytes.data() + done, std::min(step, bytes.size() - done));
      if (size >= 0) {
        done += static_cast<std::size_t>(size);
      } else if (errno != EINTR && errno != EAGAIN) {
        const int error = errno;
        if (error == EPIPE) guard.take_back();
        return error;
      }
    }
    return 0;
  }

  // The writer thread.
  void write_what_is_left() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      handed_over_.wait(lock, [&] { return handed_ || closed_; });
      if (handed_) {
        while (!queue_.empty() && !closed_) write_part(lock, true);
        handed_ = false;
        writing_ = false;
        room_.notify_all();
      }
      if (closed_) return;
    }
  }

  const int fd_;
  const std::size_t limit_;
  const CancelToken broken_;
  const CancelToken quit_ = {};
  pthread_t writer_ = {};
  bool started_ = false;
  std::mutex mutex_;
  std::condition_variable room_;         // something was written, or the end has come
  std::condition_variable handed_over_;  // the writer thread has to go on
  std::string queue_ = {};
  std::size_t held_ = 0;             // bytes queued or being written
  std::size_t waiting_ = 0;          // threads in send() for want of room
  std::uint64_t written_ = 0;        // bytes so far
  std::uint64_t written_asked_ = 0;  // of them, when stuck() was last asked
  bool writing_ = false;             // somebody takes what is queued
  bool handed_ = false;              // and that is the writer thread
  bool patient_ = true;
  bool closed_ = false;
};

// The replies to one batch, sent together when the last is there.
struct Batch {
  std::mutex mutex = {};
  std::size_t open = 1;   // requests not answered yet, and one for the reading of the batch itself
  std::size_t share = 0;  // bytes of each reply
  std::string replies = {};
};

// parameters --------------------------------------------------------------------------------------

const char* type_name(ParameterType type) {
  switch (type) {
    case ParameterType::string:
      return "string";
    case ParameterType::integer:
      return "integer";
    case ParameterType::number:
      return "number";
    case ParameterType::boolean:
      return "boolean";
    case ParameterType::array:
      return "array";
    case ParameterType::object:
      break;
  }
  return "object";
}

const char* kind_name(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "a boolean";
    case Json::Kind::integer:
    case Json::Kind::number:
      return "a number";
    case Json::Kind::string:
      return "a string";
    case Json::Kind::array:
      return "an array";
    case Json::Kind::object:
      break;
  }
  return "an object";
}

bool is_of(const Json& value, ParameterType type) {
  switch (type) {
    case ParameterType::string:
      return value.is_string();
    case ParameterType::integer:
      return value.is_integer();
    case ParameterType::number:
      return value.is_number();
    case ParameterType::boolean:
      return value.is_bool();
    case ParameterType::array:
      return value.is_array();
    case ParameterType::object:
      break;
  }
  return value.is_object();
}

bool is_numeric(ParameterType type) {
  return type == ParameterType::integer || type == ParameterType::number;
}

std::string with_article(const char* noun) {
  const bool vowel = noun[0] == 'a' || noun[0] == 'i' || noun[0] == 'o';
  return concat({vowel ? "an " : "a ", noun});
}

// A bound as a person writes it: 3600, not 3600.0.
std::string number_text(double number) {
  if (std::floor(number) == number && std::fabs(number) < 1e15)
    return std::to_string(static_cast<long long>(number));
  return Json(number).dump();
}

Json number_value(double number) {
  if (std::floor(number) == number && std::fabs(number) < 1e15)
    return Json(static_cast<long long>(number));
  return Json(number);
}

Json schema_of(const Parameter& parameter) {
  Json schema = Json::object();
  if (parameter.nullable) {
    schema.set("type", Json::array({type_name(parameter.type), "null"}));
  } else {
    schema.set("type", type_name(parameter.type));
  }
  if (!parameter.description.empty()) schema.set("description", parameter.description);
  if (parameter.items) schema.set("items", Json::object({{"type", type_name(*parameter.items)}}));
  if (!parameter.choices.empty()) {
    Json choices = Json::array();
    for (const std::string& choice : parameter.choices) choices.push_back(choice);
    if (parameter.nullable) choices.push_back(nullptr);
    schema.set("enum", std::move(choices));
  }
  if (parameter.minimum) schema.set("minimum", number_value(*parameter.minimum));
  if (parameter.greater_than) schema.set("exclusiveMinimum", number_value(*parameter.greater_than));
  if (parameter.maximum) schema.set("maximum", number_value(*parameter.maximum));
  if (!parameter.default_value.is_null()) schema.set("default", parameter.default_value);
  return schema;
}

Json schema_of(const std::vector<Parameter>& parameters) {
  Json schema = Json::object({{"type", "object"}});
  Json properties = Json::object();
  Json required = Json::array();
  for (const Parameter& parameter : parameters) {
    properties.set(parameter.name, schema_of(parameter));
    if (parameter.required) required.push_back(parameter.name);
  }
  if (!parameters.empty()) schema.set("properties", std::move(properties));
  if (required.size() > 0) schema.set("required", std::move(required));
  schema.set("additionalProperties", false);
  return schema;
}

// "command (string, required), timeout (number)"
std::string signature_of(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    if (!text.empty()) text += ", ";
    text += concat({parameter.name, " (", type_name(parameter.type),
                    parameter.required ? ", required)" : ")"});
  }
  return text.empty() ? "none" : text;
}

std::string list_of_choices(const std::vector<std::string>& choices) {
  std::string text;
  for (const std::string& choice : choices) {
    if (!text.empty()) text += ", ";
    text += quoted(choice);
  }
  return text;
}

// What is wrong with a number's size, or an empty text.
std::string range_problem(const Parameter& parameter, double number) {
  if (parameter.minimum && number < *parameter.minimum)
    return concat({"must be at least ", number_text(*parameter.minimum)});
  if (parameter.greater_than && number <= *parameter.greater_than)
    return concat({"must be greater than ", number_text(*parameter.greater_than)});
  if (parameter.maximum && number > *parameter.maximum)
    return concat({"must be at most ", number_text(*parameter.maximum)});
  return {};
}

// What is wrong with an argument, or an empty text.
std::string problem_of(const Parameter& parameter, const Json& value) {
  if (value.is_null() && parameter.nullable) return {};
  if (!is_of(value, parameter.type)) {
    const bool fraction = parameter.type == ParameterType::integer && value.is_number();
    return concat({"must be ", with_article(type_name(parameter.type)), ", not ",
                   fraction ? "a fraction" : kind_name(value)});
  }
  if (value.has_lone_surrogate())
    return "holds an unpaired surrogate, which cannot be encoded as UTF-8";
  if (is_numeric(parameter.type)) return range_problem(parameter, value.as_number());
  if (!parameter.choices.empty()) {
    const auto& choices = parameter.choices;
    if (std::find(choices.begin(), choices.end(), value.as_string()) == choices.end())
      return concat({"must be one of ", list_of_choices(choices)});
  }
  if (parameter.items) {
    for (const Json& item : value.items())
      if (!is_of(item, *parameter.items))
        return concat({"must hold only items of type ", type_name(*parameter.items), ", not ",
                       kind_name(item)});
  }
  return {};
}

const Parameter* find_parameter(const std::vector<Parameter>& parameters, std::string_view name) {
  for (const Parameter& parameter : parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

// The first few problems are enough to mend a call; hostile input could have a million.
class Problems {
 public:
  void add(std::string_view name, std::string_view problem) {
    if (++count_ > 8) return;
    if (!text_.empty()) text_ += "; ";
    text_ += concat({"argument ", quoted(name), " ", problem});
  }
  std::size_t count() const { return count_; }
  const std::string& text() const { return text_; }

 private:
  std::size_t count_ = 0;
  std::string text_ = {};
};

// The reason why a call cannot be made with these arguments, or an empty text.
std::string check_arguments(const Tool& tool, const Json& arguments) {
  Problems problems;
  const bool raw_schema = !tool.input_schema.is_null();
  for (const Json::Member& member : arguments.members()) {
    const Parameter* parameter = find_parameter(tool.parameters, member.name);
    if (parameter) {
      const std::string problem = problem_of(*parameter, member.value);
      if (!problem.empty()) problems.add(member.name, problem);
    } else if (!raw_schema) {
      problems.add(member.name, "is unknown");
    } else if (member.value.has_lone_surrogate()) {
      problems.add(member.name, "holds an unpaired surrogate, which cannot be encoded as UTF-8");
    }
  }
  for (const Parameter& parameter : tool.parameters)
    if (parameter.required && !arguments.find(parameter.name))
      problems.add(parameter.name, "is missing");
  if (problems.count() == 0) return {};
  std::string text = concat({"Invalid arguments for ", tool.name, ": ", problems.text(), "."});
  if (!raw_schema) text += concat({" Arguments: ", signature_of(tool.parameters), "."});
  return text;
}

// tools -------------------------------------------------------------------------------------------

bool is_tool_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

// What is wrong with a schema, or an empty text.
std::string schema_problem(const Json& schema) {
  if (schema.is_null()) return {};
  if (schema["type"].as_string() != "object") return "must have \"type\":\"object\"";
  if (depth_of(schema, deepest_output - 8) > deepest_output - 8) return "is nested too deeply";
  return {};
}

std::string parameter_problem(const Parameter& parameter) {
  if (parameter.name.empty() || !is_utf8(parameter.name)) return "must have a name in UTF-8";
  if (!is_numeric(parameter.type) &&
      (parameter.minimum || parameter.greater_than || parameter.maximum))
    return "has bounds but is not a number";
  if (parameter.type != ParameterType::string && !parameter.choices.empty())
    return "has choices but is not a string";
  if (parameter.type != ParameterType::array && parameter.items)
    return "has an item type but is not an array";
  if (parameter.default_value.is_null()) return {};
  if (parameter.required) return "is required and has a default";
  const std::string problem = problem_of(parameter, parameter.default_value);
  return problem.empty() ? problem : concat({"has a default that ", problem});
}

// What is wrong with a tool, or an empty text.
std::string tool_problem(const Tool& tool) {
  if (!is_tool_name(tool.name)) return "name must be 1 to 64 of A-Z a-z 0-9 _ - .";
  if (!tool.handler) return "handler is empty";
  if (!tool.parameters.empty() && !tool.input_schema.is_null())
    return "parameters and input_schema exclude each other";
  std::string problem = schema_problem(tool.input_schema);
  if (!problem.empty()) return concat({"input_schema ", problem});
  problem = schema_problem(tool.output_schema);
  if (!problem.empty()) return concat({"output_schema ", problem});
  for (const Parameter& parameter : tool.parameters) {
    problem = parameter_problem(parameter);
    if (problem.empty() && find_parameter(tool.parameters, parameter.name) != &parameter)
      problem = "is there twice";
    if (!problem.empty()) return concat({"parameter ", quoted(parameter.name), " ", problem});
  }
  return {};
}

Json annotations_of(const Tool& tool) {
  Json annotations = Json::object();
  if (!tool.title.empty()) annotations.set("title", tool.title);
  const auto add = [&](const char* name, const std::optional<bool>& hint) {
    if (hint) annotations.set(name, *hint);
  };
  add("readOnlyHint", tool.annotations.read_only);
  add("destructiveHint", tool.annotations.destructive);
  add("idempotentHint", tool.annotations.idempotent);
  add("openWorldHint", tool.annotations.open_world);
  return annotations;
}

// The tool as tools/list shows it.
std::string listing_of(const Tool& tool) {
  Json listing = Json::object({{"name", tool.name}});
  if (!tool.title.empty()) listing.set("title", tool.title);
  if (!tool.description.empty()) listing.set("description", tool.description);
  listing.set("inputSchema",
              tool.input_schema.is_null() ? schema_of(tool.parameters) : tool.input_schema);
  if (!tool.output_schema.is_null()) listing.set("outputSchema", tool.output_schema);
  Json annotations = annotations_of(tool);
  if (annotations.size() > 0) listing.set("annotations", std::move(annotations));
  return listing.dump();
}

using Tools = std::vector<std::shared_ptr<const Tool>>;

// messages ----------------------------------------------------------------------------------------

std::string reply_text(std::string_view id, std::string_view result) {
  return concat({"{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", result, "}"});
}

// An empty id is left out: JSON-RPC's null does not fit the protocol's schema.
std::string error_text(std::string_view id, const RpcError& error) {
  std::string text = "{\"jsonrpc\":\"2.0\",";
  if (!id.empty()) text += concat({"\"id\":", id, ","});
  text += concat({"\"error\":{\"code\":", std::to_string(error.code), ","});
  append_member(text, "message", error.message);
  if (error.data) {
    text += ",\"data\":";
    error.data->dump_to(text);
  }
  text += "}}";
  return text;
}

RpcError rpc_error(int code, std::string message) {
  RpcError error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

// {"name":...,"version":...}
std::string server_info_of(const ServerOptions& options) {
  std::string text = "{";
  append_member(text, "name", options.name);
  text += ',';
  append_member(text, "version", options.version);
  if (!options.title.empty()) {
    text += ',';
    append_member(text, "title", options.title);
  }
  if (!options.website.empty()) {
    text += ',';
    append_member(text, "websiteUrl", options.website);
  }
  text += '}';
  return text;
}

// What of a result cannot be sent, or an empty text.
std::string result_problem(const ToolResult& result) {
  constexpr std::size_t limit = deepest_output - 4;
  bool deep = result.structured && depth_of(*result.structured, limit) > limit;
  deep = deep || depth_of(result.meta, limit) > limit;
  for (const Content& content : result.content) {
    if (!content.block.is_object()) return "held a content block that is not an object";
    deep = deep || depth_of(content.block, limit) > limit;
  }
  return deep ? "was nested too deeply to be sent" : "";
}

ToolResult failure_of(std::string_view tool, std::string_view what) {
  return ToolResult::error(concat({"The result of ", tool, " ", what, "."}));
}

void append_content(std::string& out, const ToolResult& result) {
  out += "\"content\":[";
  bool first = true;
  for (const Content& content : result.content) {
    if (!std::exchange(first, false)) out += ',';
    content.block.dump_to(out);
  }
  if (result.content.empty()) {
    out += "{\"type\":\"text\",";
    append_member(out, "text", result.structured ? result.structured->dump() : std::string());
    out += '}';
  }
  out += ']';
}

// `server_info` is empty in the legacy era, whose results carry neither it nor a resultType.
std::string result_text(const ToolResult& result, std::string_view server_info) {
  std::string text = "{";
  if (!server_info.empty()) text += "\"resultType\":\"complete\",";
  append_content(text, result);
  // Legacy clients know objects only; others read the text.
  if (result.structured && (!server_info.empty() || result.structured->is_object())) {
    text += ",\"structuredContent\":";
    result.structured->dump_to(text);
  }
  if (result.is_error) text += ",\"isError\":true";
  std::string meta;
  if (!server_info.empty()) meta = concat({"\"", server_info_key, "\":", server_info});
  for (const Json::Member& member : result.meta.members()) {
    if (!server_info.empty() && member.name == server_info_key) continue;
    if (!meta.empty()) meta += ',';
    append_string(meta, member.name);
    meta += ':';
    member.value.dump_to(meta);
  }
  if (!meta.empty()) text += concat({",\"_meta\":{", meta, "}"});
  text += '}';
  return text;
}

bool is_log_level(const Json& value) {
  constexpr std::string_view levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
  return std::find(std::begin(levels), std::end(levels), value.as_string()) != std::end(levels);
}

// What is wrong with the envelope of a request in the modern era.
std::optional<RpcError> envelope_error(const Json& meta) {
  const Json& version = meta[version_key];
  if (!version.is_string())
    return rpc_error(invalid_params, concat({"params._meta needs ", version_key, ", a string"}));
  if (version.as_string() != modern_version) {
    RpcError error = rpc_error(unsupported_version, "Unsupported protocol version");
    error.data = Json::object({{"supported", Json::array({std::string(modern_version)})},
                               {"requested", std::string(utf8_prefix(version.as_string(), 64))}});
    return error;
  }
  if (!meta[capabilities_key].is_object())
    return rpc_error(invalid_params,
                     concat({"params._meta needs ", capabilities_key, ", an object"}));
  const Json* level = meta.find(log_level_key);
  if (level && !is_log_level(*level))
    return rpc_error(invalid_params, concat({"Unknown ", log_level_key}));
  return std::nullopt;
}

// A line on descriptor 2, unless that would block.
void log_to_standard_error(std::string_view text) {
  pollfd fd = {2, POLLOUT, 0};
  if (::poll(&fd, 1, 0) != 1) return;
  const std::string line = concat({"mcp: ", text.substr(0, 1000), "\n"});
  NoSigpipe guard;
  if (::write(2, line.data(), line.size()) < 0 && errno == EPIPE) guard.take_back();
}

// Moves descriptors 0 and 1 away while the server speaks through them, and back again.
class MovedStreams {
 public:
  MovedStreams() = default;
  MovedStreams(const MovedStreams&) = delete;
  MovedStreams& operator=(const MovedStreams&) = delete;
  ~MovedStreams() {
    for (int fd = 0; fd < 2; ++fd)
      if (moved_[fd]) ::dup2(moved_[fd].get(), fd);
  }

  // The descriptor to use instead of `fd`, or -1 and errno.
  int take(int fd) {
    if (fd != 0 && fd != 1) return ::fcntl(fd, F_GETFD) < 0 ? -1 : fd;
    if (moved_[fd]) return moved_[fd].get();
    UniqueFd away(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!away) return -1;
    UniqueFd null(above_standard_streams(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    if (!null) return -1;
    if ((fd == 0 || ::dup2(2, 1) < 0) && ::dup2(null.get(), fd) < 0) return -1;
    moved_[fd] = std::move(away);
    return moved_[fd].get();
  }

 private:
  UniqueFd moved_[2] = {};
};

}  // namespace

// calls -------------------------------------------------------------------------------------------

// What a handler may know of its call.
struct Call::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;
  virtual void notify(double progress, std::optional<double> total, std::string_view text) = 0;

  std::shared_ptr<const Tool> tool = {};
  Json message = {};  // owns what the next two point to
  const Json* arguments = nullptr;
  const Json* meta = nullptr;
  std::size_t max_result = 0;
  std::string progress_token = {};  // JSON; empty: no progress wanted
  CancelToken cancel = {};
};

namespace {

class Session;

// A tool as a session knows it.
struct ToolEntry {
  std::shared_ptr<const Tool> tool = {};
  bool quick = false;  // its last call was; needs the session's mutex
};

// A call of a session.
struct OpenCall : Call::State {
  void notify(double progress, std::optional<double> total, std::string_view text) override;

  std::shared_ptr<Session> session = {};
  std::shared_ptr<Batch> batch = {};  // null: answered by a line of its own
  bool more_follow = false;           // the client has sent more already
  ToolEntry* entry = nullptr;
  Id id = {};
  bool modern = false;
  std::size_t max_reply = 0;
  std::atomic<std::size_t> weight{0};  // bytes that its message takes, about; until it is answered

  ~OpenCall() override;

  std::mutex mutex = {};
  bool done = false;  // answered, or cancelled by the client: nothing more may be sent
  std::optional<double> last_progress = {};
  double notices_left = 32;
  Clock::time_point notices_counted = {};

  // True for the one who may end this call.
  bool finish() {
    const std::lock_guard<std::mutex> lock(mutex);
    return !std::exchange(done, true);
  }

  // A bucket of 32 notices that fills with 20 in a second. Needs the mutex.
  bool may_notify() {
    const Clock::time_point now = Clock::now();
    if (last_progress) {
      const std::chrono::duration<double> passed = now - notices_counted;
      notices_left = std::min(32.0, notices_left + 20 * passed.count());
    }
    notices_counted = now;
    if (notices_left < 1) return false;
    notices_left -= 1;
    return true;
  }
};

std::string progress_text(std::string_view token, double progress, std::optional<double> total,
                          std::string_view message) {
  std::string text =
      concat({"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
              "\"params\":{\"progressToken\":",
              token, ",\"progress\":", number_value(progress).dump()});
  if (total && std::isfinite(*total)) text += concat({",\"total\":", number_value(*total).dump()});
  if (!message.empty()) {
    text += ',';
    append_member(text, "message", utf8_prefix(message, longest_notice));
  }
  text += "}}\n";
  return text;
}

// session -----------------------------------------------------------------------------------------

using CallPtr = std::shared_ptr<OpenCall>;

// One serve(): the protocol's state, the threads and the descriptors.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const ServerOptions& options, const Tools& tools, int in_fd, int out_fd)
      : options_(options),
        server_info_(server_info_of(options)),
        reader_(in_fd, wake_.descriptor(), options.max_line),
        in_fd_(in_fd),
        out_fd_(out_fd),
        outbox_(out_fd, options.max_queued, ended_) {
    for (const auto& tool : tools) tools_.push_back({tool});
  }

  Expected<void> run(const CancelToken& stop);

  void release(OpenCall& call) { open_weight_.fetch_sub(call.weight.exchange(0)); }
  void send_progress(OpenCall& call, double progress, std::optional<double> total,
                     std::string_view message);

 private:
  // One of the threads that take turns.
  struct Worker {
    pthread_t thread = {};
    bool ended = false;
  };

  // threads
  int add_worker();
  void work(Worker& self);
  void rest(std::unique_lock<std::mutex>& lock);
  void run_call(std::unique_lock<std::mutex>& lock, const CallPtr& call);
  bool call_a_thread();
  CallPtr lead();
  CallPtr take_waiting();
  void wait_for_the_end(const CancelToken& stop);
  void wait_until_quiet(std::chrono::milliseconds time);
  void cancel_everything();
  bool join_workers();

  // messages; only the leader comes here
  CallPtr on_line(std::string_view line);
  void on_unreadable(std::string_view line, const Error& error);
  void on_too_long(const Id& id);
  void on_batch(Json messages);
  CallPtr on_message(Json message, const std::shared_ptr<Batch>& batch);
  void on_notification(const Json& message);
  CallPtr on_request(Json message, Id id, const std::shared_ptr<Batch>& batch);
  CallPtr on_modern_request(Json message, Id id, const std::shared_ptr<Batch>& batch);
  CallPtr on_legacy_request(Json message, Id id, const std::shared_ptr<Batch>& batch);
  void on_initialize(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch);
  void on_list(const Json& params, const Id& id, bool modern, const std::shared_ptr<Batch>& batch);
  void on_listen(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch);
  CallPtr on_call(Json message, Id id, bool modern, const std::shared_ptr<Batch>& batch);
  CallPtr dispatch(CallPtr call);
  void cancel(const std::string& key);
  void refuse_line(const Id& id, int code, std::string message);

  // replies
  std::string discover_result() const;
  std::string list_result(bool modern) const;
  void reply(const std::shared_ptr<Batch>& batch, std::string_view id, std::string_view result);
  void fail(const std::shared_ptr<Batch>& batch, std::string_view id, const RpcError& error);
  void deliver(const std::shared_ptr<Batch>& batch, std::string text);
  static void count_up(const std::shared_ptr<Batch>& batch);
  void count_down(Batch& batch);
  void answer(const CallPtr& call, const ToolReply& reply);
  std::string answer_text(const OpenCall& call, const ToolReply& reply) const;
  ToolReply invoke(const CallPtr& call);
  void forget(const CallPtr& call);
  void log(std::string_view text);

  const ServerOptions options_;
  std::vector<ToolEntry> tools_ = {};
  const std::string server_info_;
  const CancelToken wake_ = {};   // ends the reading
  const CancelToken ended_ = {};  // the input has ended or the output is broken
  LineReader reader_;
  const int in_fd_;
  const int out_fd_;
  Outbox outbox_;
  std::mutex log_mutex_;

  // Of the leader alone.
  std::string negotiated_ = {};  // by initialize; empty: not seen yet
  unsigned bad_lines_ = 0;       // in a row

  std::mutex mutex_;
  std::condition_variable work_;   // a thread is called
  std::condition_variable quiet_;  // a thread has ended, or no handler is running any more
  std::deque<Worker> workers_ = {};
  std::size_t idle_ = 0;
  std::size_t called_ = 0;  // idle ones that have been called and are not here yet
  std::size_t running_ = 0;
  bool leading_ = false;
  bool watched_ = false;           // an idle thread keeps watch
  std::uint64_t quick_calls_ = 0;  // run in the hope that they are short
  std::uint64_t calls_seen_ = 0;   // of them, by the watch
  bool input_ended_ = false;
  bool closing_ = false;
  int read_error_ = 0;
  std::atomic<std::size_t> open_weight_{0};  // of all calls that are not answered
  std::deque<CallPtr> waiting_ = {};
  std::map<std::string, CallPtr> open_ = {};               // calls by id
  std::map<std::string, std::string> subscriptions_ = {};  // spellings by id
};

// threads ----

// Needs the mutex. 0 or an errno.
int Session::add_worker() {
  workers_.emplace_back();
  Worker& self = workers_.back();
  const int error =
      start_thread(self.thread, [session = shared_from_this(), &self] { session->work(self); });
  if (error != 0) workers_.pop_back();
  return error;
}

void Session::work(Worker& self) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (CallPtr call = take_waiting()) {
      run_call(lock, call);
    } else if (closing_) {
      break;
    } else if (!leading_ && !input_ended_) {
      leading_ = true;
      lock.unlock();
      call = lead();
      lock.lock();
      leading_ = false;
      if (call) run_call(lock, call);
    } else {
      ++idle_;
      rest(lock);
      --idle_;
      if (called_ > 0) --called_;
    }
  }
  self.ended = true;
  quiet_.notify_all();
}

// Waits to be called, or as the one on watch until a short call turns out to be a long one.
void Session::rest(std::unique_lock<std::mutex>& lock) {
  if (watched_ || quick_calls_ == calls_seen_) return work_.wait(lock);
  watched_ = true;
  bool called = false;
  while (!called && quick_calls_ != calls_seen_) {
    calls_seen_ = quick_calls_;
    called = work_.wait_for(lock, watch_time) == std::cv_status::no_timeout;
  }
  watched_ = false;
}

// Needs the mutex. The next waiting call, with a place to run.
CallPtr Session::take_waiting() {
  if (waiting_.empty() || running_ == options_.max_concurrent) return nullptr;
  CallPtr call = std::move(waiting_.front());
  waiting_.pop_front();
  ++running_;
  return call;
}

// Needs the mutex. Sees to it that one more thread comes. Without one the present threads do what
// is to be done, later.
bool Session::call_a_thread() {
  if (idle_ > called_) {
    ++called_;
    work_.notify_one();
    return true;
  }
  return workers_.size() <= options_.max_concurrent && add_worker() == 0;
}

// Runs a call that has its place in running_, while somebody else reads.
void Session::run_call(std::unique_lock<std::mutex>& lock, const CallPtr& call) {
  const bool comes_back = call->entry->quick && watched_;
  if (comes_back) {
    ++quick_calls_;
  } else if (!leading_ && !input_ended_ && !closing_ && called_ == 0) {
    if (call->entry->quick) ++quick_calls_;
    call_a_thread();
  }
  lock.unlock();
  // With a client that asks much at once, answers go out together, once for all that were read.
  // Nothing waits for a call that may take long: nor for one that does, for who then takes over the
  // reading writes them.
  call->more_follow = call->more_follow && comes_back;
  if (!comes_back) outbox_.push();
  const Clock::time_point start = Clock::now();
  ToolReply reply = invoke(call);
  const bool quick = Clock::now() - start < quick_time;
  answer(call, reply);
  lock.lock();
  call->entry->quick = quick;
  --running_;
  if (running_ == 0 && (input_ended_ || closing_)) quiet_.notify_all();
}

// Reads and answers messages until there is a call to run here, or none will come.
CallPtr Session::lead() {
  std::string_view line;
  for (;;) {
    if (!reader_.has_line()) outbox_.push();
    // What was read already is not served any more, either, once the server ends.
    const LineReader::Event event =
        wake_.cancelled() ? LineReader::Event::interrupted : reader_.next(line);
    if (event == LineReader::Event::line) {
      if (CallPtr call = on_line(line)) {
        call->more_follow = reader_.has_line();
        return call;
      }
    } else if (event == LineReader::Event::too_long) {
      on_too_long(reader_.skipped_id());
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      input_ended_ = true;
      if (event == LineReader::Event::failed) read_error_ = reader_.error();
      ended_.cancel();
      return nullptr;
    }
  }
}

// The leader tells when the input has ended. It cannot when it waits for a client that does not
// read its answers; then it is the end, too, if that client has closed the input and takes nothing
// more.
void Session::wait_for_the_end(const CancelToken& stop) {
  // A pipe that nobody reads, or that nobody writes to, reports that without being asked.
  pollfd fds[4] = {{stop.descriptor(), POLLIN, 0},
                   {ended_.descriptor(), POLLIN, 0},
                   {out_fd_, 0, 0},
                   {in_fd_, 0, 0}};
  int patience = -1;
  for (;;) {
    const int ready = ::poll(fds, 4, patience);
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && (fds[0].revents | fds[1].revents | fds[2].revents) != 0) return;
    if (ready > 0 && fds[3].revents != 0) {
      fds[3].fd = -1;  // known from now on
      patience = static_cast<int>(finish_time.count());
      (void)outbox_.stuck();
    } else if (ready == 0 && outbox_.stuck()) {
      return;
    }
  }
}

void Session::wait_until_quiet(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  quiet_.wait_for(lock, time, [&] { return running_ == 0 && waiting_.empty(); });
}

// Calls that are cancelled because the server ends are still answered, with what they have.
void Session::cancel_everything() {
  std::deque<CallPtr> waiting;
  std::map<std::string, CallPtr> running;
  std::map<std::string, std::string> subscriptions;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    waiting.swap(waiting_);
    running = open_;
    subscriptions.swap(subscriptions_);
    work_.notify_all();
  }
  wake_.cancel();
  outbox_.stop_waiting();
  for (const auto& [key, call] : running) call->cancel.cancel();
  for (const CallPtr& call : waiting) answer(call, ToolResult::error(server_ends));
  for (const auto& [key, id] : subscriptions)
    reply(nullptr, id,
          concat({"{\"resultType\":\"complete\",\"_meta\":{\"", subscription_key, "\":", id, ",\"",
                  server_info_key, "\":", server_info_, "}}"}));
}

// False when a thread is still in a handler; it is left to itself.
bool Session::join_workers() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ended = [&] {
    return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.ended; });
  };
  const bool all = quiet_.wait_for(lock, std::chrono::milliseconds(100), ended);
  for (const Worker& worker : workers_) {
    if (worker.ended) {
      pthread_join(worker.thread, nullptr);
    } else {
      pthread_detach(worker.thread);
    }
  }
  open_.clear();
  return all;
}

Expected<void> Session::run(const CancelToken& stop) {
  if (stop.descriptor() < 0 || ended_.descriptor() < 0 || wake_.descriptor() < 0)
    return system_error(EMFILE, "serve: descriptors");
  int error = outbox_.start();
  // Two from the start: there must always be one to read while the other works.
  for (int i = 0; i < 2 && error == 0; ++i) {
    const std::lock_guard<std::mutex> lock(mutex_);
    error = add_worker();
  }
  if (error == 0) wait_for_the_end(stop);
  bool input_ended = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    input_ended = input_ended_;
  }
  if (input_ended && !stop.cancelled()) wait_until_quiet(finish_time);
  cancel_everything();
  wait_until_quiet(cancel_time);
  outbox_.push();
  outbox_.flush(flush_time);
  outbox_.close();
  const bool all = join_workers();
  if (error != 0) return system_error(error, "serve: thread");
  if (read_error_ != 0) return system_error(read_error_, "serve: reading in_fd");
  if (!all) return make_error(ErrorCode::limit, "serve: a tool's handler did not return");
  return {};
}

// messages ----

CallPtr Session::on_line(std::string_view line) {
  if (is_blank(line)) return nullptr;
  JsonLimits limits;
  limits.max_values = most_values;
  Expected<Json> message = Json::parse(line, limits);
  if (!message) {
    on_unreadable(line, message.error());
    return nullptr;
  }
  if (!message->is_array()) return on_message(std::move(*message), nullptr);
  if (negotiated_ == batching_version && message->size() > 0) {
    on_batch(std::move(*message));
  } else {
    refuse_line(Id(), invalid_request,
                "Invalid request: an array of messages is served only in protocol version "
                "2025-03-26, and never an empty one");
  }
  return nullptr;
}

void Session::on_unreadable(std::string_view line, const Error& error) {
  const std::size_t bad = find_invalid_utf8(line);
  if (bad == std::string_view::npos) {
    IdScanner scanner;
    scanner.feed(line);
    return refuse_line(scanner.id(), parse_error, concat({"Parse error: ", error.message}));
  }
  JsonLimits lenient;
  lenient.max_values = most_values;
  lenient.accept_invalid_utf8 = true;
  const Expected<Json> readable = Json::parse(line, lenient);
  Id id;
  if (readable && readable->is_object()) {
    const Json* id_value = readable->find("id");
    const bool request = (*readable)["method"].is_string();
    const bool response = !request && (readable->find("result") || readable->find("error"));
    if (response || (request && !id_value)) {
      ++bad_lines_;
      return log("ignored a message that is not UTF-8");
    }
    if (id_value) id = id_of(*id_value);
  } else if (!readable) {
    IdScanner scanner;
    scanner.feed(line);
    id = scanner.id();
  }
  refuse_line(id, parse_error,
              concat({"Parse error: invalid UTF-8 at byte ", std::to_string(bad)}));
}

void Session::on_too_long(const Id& id) {
  refuse_line(id, parse_error,
              concat({"Parse error: the message is longer than ", std::to_string(options_.max_line),
                      " bytes"}));
}

// Answers a line that is no message. After a few in a row that is only logged: what comes in could
// be the echo of our own answers.
void Session::refuse_line(const Id& id, int code, std::string message) {
  if (bad_lines_ < answered_bad_lines) {
    ++bad_lines_;
    log(message);
    fail(nullptr, id.spelling, rpc_error(code, std::move(message)));
  } else {
    log(concat({"not answered: ", message}));
  }
}

void Session::on_batch(Json messages) {
  const std::size_t most = std::min(longest_batch, options_.max_reply / smallest_reply);
  if (messages.size() > most)
    return refuse_line(
        Id(), invalid_request,
        concat({"Invalid request: more than ", std::to_string(most), " messages in a batch"}));
  const auto batch = std::make_shared<Batch>();
  batch->share = options_.max_reply / messages.size() - 2;
  for (const Json& message : messages.items()) {
    CallPtr call = on_message(message, batch);
    if (!call) continue;
    // Only one call can run here, and more messages are to come: others take them.
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    waiting_.push_back(std::move(call));
    call_a_thread();
  }
  count_down(*batch);
}

CallPtr Session::on_message(Json message, const std::shared_ptr<Batch>& batch) {
  const auto refuse = [&](const Id& id, std::string text) -> CallPtr {
    text.insert(0, "Invalid request: ");
    if (batch || !id.spelling.empty()) {
      count_up(batch);
      fail(batch, id.spelling, rpc_error(invalid_request, std::move(text)));
    } else {
      refuse_line(id, invalid_request, std::move(text));
    }
    return nullptr;
  };
  if (!message.is_object()) return refuse(Id(), "not an object");
  const Json* method = message.find("method");
  const Json* id_value = message.find("id");
  if (!method && (message.find("result") || message.find("error"))) {
    bad_lines_ = 0;
    return nullptr;  // we ask for nothing, so it answers nothing
  }
  Id id;
  if (id_value) {
    id = id_of(*id_value);
    if (id.spelling.empty())
      return refuse(Id(), "id must be a string or an integer, of at most 1024 bytes");
  }
  if (!method || !method->is_string()) return refuse(id, "method must be a string");
  const bool version_two = message["jsonrpc"].as_string() == "2.0";
  if (!version_two && id_value) return refuse(id, "jsonrpc must be \"2.0\"");
  bad_lines_ = 0;
  if (!id_value) {
    if (version_two) on_notification(message);
    return nullptr;
  }
  count_up(batch);
  return on_request(std::move(message), std::move(id), batch);
}

void Session::on_notification(const Json& message) {
  if (message["method"].as_string() != "notifications/cancelled") return;
  const Id id = id_of(message["params"]["requestId"]);
  if (!id.spelling.empty()) cancel(id.key);
}

void Session::cancel(const std::string& key) {
  CallPtr call;
  bool was_waiting = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    subscriptions_.erase(key);
    const auto found = open_.find(key);
    if (found == open_.end()) return;
    call = found->second;
    open_.erase(found);
    const auto place = std::find(waiting_.begin(), waiting_.end(), call);
    was_waiting = place != waiting_.end();
    if (was_waiting) waiting_.erase(place);
  }
  if (!call->finish()) return;
  call->cancel.cancel();
  if (was_waiting && call->batch) count_down(*call->batch);
}

CallPtr Session::on_request(Json message, Id id, const std::shared_ptr<Batch>& batch) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (open_.count(id.key) > 0 || subscriptions_.count(id.key) > 0) {
      lock.unlock();
      fail(batch, id.spelling,
           rpc_error(invalid_request, "Invalid request: the id is that of a running request"));
      return nullptr;
    }
  }
  const Json* params = message.find("params");
  if (params && !params->is_object()) {
    fail(batch, id.spelling, rpc_error(invalid_params, "Invalid params: must be an object"));
    return nullptr;
  }
  const std::string& method = message["method"].as_string();
  if (message["params"]["_meta"].find(version_key) || method == "server/discover" ||
      method == "subscriptions/listen")
    return on_modern_request(std::move(message), std::move(id), batch);
  return on_legacy_request(std::move(message), std::move(id), batch);
}

CallPtr Session::on_modern_request(Json message, Id id, const std::shared_ptr<Batch>& batch) {
  const Json& params = message["params"];
  const std::string& method = message["method"].as_string();
  if (const std::optional<RpcError> error = envelope_error(params["_meta"])) {
    fail(batch, id.spelling, *error);
  } else if (method == "tools/call") {
    return on_call(std::move(message), std::move(id), true, batch);
  } else if (method == "tools/list") {
    on_list(params, id, true, batch);
  } else if (method == "server/discover") {
    reply(batch, id.spelling, discover_result());
  } else if (method == "subscriptions/listen") {
    on_listen(params, id, batch);
  } else {
    fail(batch, id.spelling,
         rpc_error(method_not_found, concat({"Method not found: ", quoted(method)})));
  }
  return nullptr;
}

CallPtr Session::on_legacy_request(Json message, Id id, const std::shared_ptr<Batch>& batch) {
  const Json& params = message["params"];
  const std::string& method = message["method"].as_string();
  if (method == "ping") {
    reply(batch, id.spelling, "{}");
  } else if (method == "initialize") {
    on_initialize(params, id, batch);
  } else if (method != "tools/call" && method != "tools/list") {
    fail(batch, id.spelling,
         rpc_error(method_not_found, concat({"Method not found: ", quoted(method)})));
  } else if (negotiated_.empty()) {
    fail(batch, id.spelling,
         rpc_error(invalid_params,
                   "Not initialized: send initialize first, or per-request _meta (2026-07-28)"));
  } else if (method == "tools/call") {
    return on_call(std::move(message), std::move(id), false, batch);
  } else {
    on_list(params, id, false, batch);
  }
  return nullptr;
}

void Session::on_initialize(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch) {
  if (batch)
    return fail(batch, id.spelling,
                rpc_error(invalid_request, "Invalid request: initialize in a batch"));
  const Json& wanted = params["protocolVersion"];
  if (!wanted.is_string())
    return fail(batch, id.spelling,
                rpc_error(invalid_params, "Invalid params: protocolVersion must be a string"));
  const std::string& version = wanted.as_string();
  negotiated_ = served_legacy_version(version) ? version : std::string(newest_legacy_version);
  std::string result = "{";
  append_member(result, "protocolVersion", negotiated_);
  result += concat({",\"capabilities\":{\"tools\":{}},\"serverInfo\":", server_info_});
  if (!options_.instructions.empty()) {
    result += ',';
    append_member(result, "instructions", options_.instructions);
  }
  result += '}';
  reply(batch, id.spelling, result);
}

std::string Session::discover_result() const {
  std::string result = concat({"{\"resultType\":\"complete\",\"supportedVersions\":[\"",
                               modern_version, "\"],\"capabilities\":{\"tools\":{}},"});
  if (!options_.instructions.empty()) {
    append_member(result, "instructions", options_.instructions);
    result += ',';
  }
  result += concat({"\"ttlMs\":3600000,\"cacheScope\":\"public\",\"_meta\":{\"", server_info_key,
                    "\":", server_info_, "}}"});
  return result;
}

std::string Session::list_result(bool modern) const {
  std::string result = "{\"tools\":[";
  bool first = true;
  for (const ToolEntry& entry : tools_) {
    if (!std::exchange(first, false)) result += ',';
    result += listing_of(*entry.tool);
  }
  result += ']';
  if (modern)
    result +=
        concat({",\"resultType\":\"complete\",\"ttlMs\":3600000,\"cacheScope\":\"public\","
                "\"_meta\":{\"",
                server_info_key, "\":", server_info_, "}"});
  result += '}';
  return result;
}

void Session::on_list(const Json& params, const Id& id, bool modern,
                      const std::shared_ptr<Batch>& batch) {
  // There is one page only, so no cursor can be ours.
  if (params.find("cursor"))
    return fail(batch, id.spelling, rpc_error(invalid_params, "Invalid cursor"));
  reply(batch, id.spelling, list_result(modern));
}

// No notification that could be subscribed to exists here, so the honoured subset is empty.
void Session::on_listen(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch) {
  if (!params["notifications"].is_object())
    return fail(batch, id.spelling,
                rpc_error(invalid_params, "Invalid params: notifications must be an object"));
  if (batch)
    return fail(batch, id.spelling,
                rpc_error(invalid_request, "Invalid request: subscriptions/listen in a batch"));
  bool full = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    full = subscriptions_.size() >= most_subscriptions;
    if (!full) subscriptions_.emplace(id.key, id.spelling);
  }
  if (full)
    return fail(batch, id.spelling,
                rpc_error(internal_error, concat({"Too many subscriptions: at most ",
                                                  std::to_string(most_subscriptions)})));
  outbox_.send(
      concat({"{\"jsonrpc\":\"2.0\","
              "\"method\":\"notifications/subscriptions/acknowledged\","
              "\"params\":{\"_meta\":{\"",
              subscription_key, "\":", id.spelling, "},\"notifications\":{}}}\n"}));
}

CallPtr Session::on_call(Json message, Id id, bool modern, const std::shared_ptr<Batch>& batch) {
  const auto call = std::make_shared<OpenCall>();
  call->message = std::move(message);
  const Json& params = call->message["params"];
  const Json& name = params["name"];
  const auto refuse = [&](std::string text) -> CallPtr {
    fail(batch, id.spelling, rpc_error(invalid_params, std::move(text)));
    return nullptr;
  };
  if (!name.is_string()) return refuse("Invalid params: name must be a string");
  for (ToolEntry& entry : tools_)
    if (entry.tool->name == name.as_string()) call->entry = &entry;
  if (!call->entry) return refuse(concat({"Unknown tool: ", quoted(name.as_string())}));
  static const Json none = Json::object();
  const Json* arguments = params.find("arguments");
  if (arguments && !arguments->is_object())
    return refuse("Invalid params: arguments must be an object");
  call->tool = call->entry->tool;
  call->arguments = arguments ? arguments : &none;
  call->meta = &params["_meta"];
  const Id token = id_of((*call->meta)["progressToken"]);
  call->progress_token = token.spelling;
  call->session = shared_from_this();
  const std::size_t weight = weight_of(call->message);
  call->weight = weight;
  const std::size_t others = open_weight_.fetch_add(weight);
  call->batch = batch;
  call->id = std::move(id);
  call->modern = modern;
  call->max_reply = batch ? std::min(batch->share, options_.max_reply) : options_.max_reply;
  const std::size_t around = longest_envelope + call->id.spelling.size() + server_info_.size();
  call->max_result = call->max_reply - std::min(call->max_reply, around);
  std::string problem = check_arguments(*call->tool, *call->arguments);
  if (problem.empty() && others > 0 && others + weight > options_.max_open_bytes)
    problem =
        "The server is busy: the messages of its open calls take too much memory. Try again "
        "when some have ended.";
  if (problem.empty()) return dispatch(call);
  answer(call, ToolResult::error(problem));
  return nullptr;
}

// The call, when it can run at once; otherwise it waits, or is refused.
CallPtr Session::dispatch(CallPtr call) {
  bool ending = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending = closing_;
    if (!ending && running_ < options_.max_concurrent) {
      ++running_;
      open_.emplace(call->id.key, call);
      return call;
    }
    if (!ending && waiting_.size() < options_.max_waiting) {
      open_.emplace(call->id.key, call);
      waiting_.push_back(std::move(call));
      return nullptr;
    }
  }
  answer(call, ToolResult::error(
                   ending ? server_ends
                          : concat({"The server is busy: ", std::to_string(options_.max_concurrent),
                                    " calls are running and ", std::to_string(options_.max_waiting),
                                    " are waiting. Try again when some have ended."})));
  return nullptr;
}

// replies ----

void Session::reply(const std::shared_ptr<Batch>& batch, std::string_view id,
                    std::string_view result) {
  const std::size_t limit = batch ? batch->share : options_.max_reply;
  std::string text = reply_text(id, result);
  if (text.size() >= limit)
    text = error_text(id, rpc_error(internal_error, "The result is too long to be sent"));
  deliver(batch, std::move(text));
}

void Session::fail(const std::shared_ptr<Batch>& batch, std::string_view id,
                   const RpcError& error) {
  deliver(batch, error_text(id, error));
}

void Session::deliver(const std::shared_ptr<Batch>& batch, std::string text) {
  if (!batch) {
    text += '\n';
    return outbox_.send(std::move(text));
  }
  {
    const std::lock_guard<std::mutex> lock(batch->mutex);
    batch->replies += batch->replies.empty() ? '[' : ',';
    batch->replies += text;
  }
  count_down(*batch);
}

// One more reply is to come, if it is for a batch at all.
void Session::count_up(const std::shared_ptr<Batch>& batch) {
  if (!batch) return;
  const std::lock_guard<std::mutex> lock(batch->mutex);
  ++batch->open;
}

// Sends a batch's replies when there are no more to come; a batch of notifications has none.
void Session::count_down(Batch& batch) {
  std::string replies;
  {
    const std::lock_guard<std::mutex> lock(batch.mutex);
    if (--batch.open > 0 || batch.replies.empty()) return;
    replies.swap(batch.replies);
  }
  replies += "]\n";
  outbox_.send(std::move(replies));
}

ToolReply Session::invoke(const CallPtr& call) {
#if defined(__cpp_exceptions)
  try {
    return call->tool->handler(Call(call));
  } catch (const std::exception& error) {
    const std::string_view what = std::string_view(error.what()).substr(0, 500);
    return ToolResult::error(concat({"The tool ", call->tool->name, " failed: ", what}));
  } catch (...) {
    return ToolResult::error(concat({"The tool ", call->tool->name, " failed."}));
  }
#else
  return call->tool->handler(Call(call));
#endif
}

void Session::answer(const CallPtr& call, const ToolReply& reply) {
  release(*call);  // before the client can ask again
  const bool cancelled = [&] {
    const std::lock_guard<std::mutex> lock(call->mutex);
    return call->done;
  }();
  // Only a saving: finish() decides.
  std::string text = cancelled ? std::string() : answer_text(*call, reply);
  if (call->finish()) {
    forget(call);
    if (call->more_follow && !call->batch)
      outbox_.send_later(std::move(text) + '\n');
    else
      deliver(call->batch, std::move(text));
  } else if (call->batch) {
    count_down(*call->batch);
  }
}

// Takes the call out of the open ones, unless the id has been taken by another since.
void Session::forget(const CallPtr& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = open_.find(call->id.key);
  if (found != open_.end() && found->second == call) open_.erase(found);
}

std::string Session::answer_text(const OpenCall& call, const ToolReply& reply) const {
  const std::string& tool = call.tool->name;
  const std::string_view info = call.modern ? std::string_view(server_info_) : std::string_view();
  const auto of_result = [&](const ToolResult& result) {
    return reply_text(call.id.spelling, result_text(result, info));
  };
  if (const RpcError* error = reply.rpc_error()) {
    std::string text = error_text(call.id.spelling, *error);
    if (text.size() < call.max_reply) return text;
    return error_text(call.id.spelling,
                      rpc_error(error->code, concat({"The error of ", tool, " was too long"})));
  }
  const ToolResult& result = reply.result();
  if (!call.tool->output_schema.is_null() && !result.is_error && !result.structured)
    return error_text(call.id.spelling,
                      rpc_error(internal_error,
                                concat({"Internal error: ", tool, " gave no structured content"})));
  const std::string problem = result_problem(result);
  if (!problem.empty()) return of_result(failure_of(tool, problem));
  std::string text = of_result(result);
  if (text.size() < call.max_reply) return text;
  return of_result(
      failure_of(tool, concat({"was dropped, because it is ", std::to_string(text.size()),
                               " bytes long as JSON and at most ", std::to_string(call.max_reply),
                               " can be sent; ask for less"})));
}

void Session::send_progress(OpenCall& call, double progress, std::optional<double> total,
                            std::string_view message) {
  if (call.progress_token.empty() || !std::isfinite(progress)) return;
  const std::lock_guard<std::mutex> lock(call.mutex);
  if (call.done || (call.last_progress && progress <= *call.last_progress)) return;
  if (!call.may_notify()) return;
  call.last_progress = progress;
  // Under the call's mutex, so that it cannot be overtaken by the answer; it never waits.
  outbox_.offer(progress_text(call.progress_token, progress, total, message));
}

OpenCall::~OpenCall() {
  if (session) session->release(*this);
}

void OpenCall::notify(double progress, std::optional<double> total, std::string_view text) {
  session->send_progress(*this, progress, total, text);
}

void Session::log(std::string_view text) {
  const std::lock_guard<std::mutex> lock(log_mutex_);
  if (options_.log) {
    options_.log(text);
  } else {
    log_to_standard_error(text);
  }
}

}  // namespace

// public ------------------------------------------------------------------------------------------

Content Content::raw(Json block) {
  Content content;
  content.block = std::move(block);
  return content;
}

Content Content::text(std::string text) {
  return raw(Json::object({{"type", "text"}, {"text", std::move(text)}}));
}

Content Content::image(std::string_view bytes, std::string mime_type) {
  return raw(Json::object(
      {{"type", "image"}, {"data", to_base64(bytes)}, {"mimeType", std::move(mime_type)}}));
}

Content Content::audio(std::string_view bytes, std::string mime_type) {
  return raw(Json::object(
      {{"type", "audio"}, {"data", to_base64(bytes)}, {"mimeType", std::move(mime_type)}}));
}

Content Content::resource_text(std::string uri, std::string mime_type, std::string text) {
  return raw(Json::object({{"type", "resource"},
                           {"resource", Json::object({{"uri", std::move(uri)},
                                                      {"mimeType", std::move(mime_type)},
                                                      {"text", std::move(text)}})}}));
}

Content Content::resource_blob(std::string uri, std::string mime_type, std::string_view bytes) {
  return raw(Json::object({{"type", "resource"},
                           {"resource", Json::object({{"uri", std::move(uri)},
                                                      {"mimeType", std::move(mime_type)},
                                                      {"blob", to_base64(bytes)}})}}));
}

Content Content::resource_link(std::string uri, std::string name, std::string mime_type,
                               std::string description) {
  Json block =
      Json::object({{"type", "resource_link"}, {"uri", std::move(uri)}, {"name", std::move(name)}});
  if (!mime_type.empty()) block.set("mimeType", std::move(mime_type));
  if (!description.empty()) block.set("description", std::move(description));
  return raw(std::move(block));
}

ToolResult ToolResult::text(std::string text) {
  ToolResult result;
  result.content.push_back(Content::text(std::move(text)));
  return result;
}

ToolResult ToolResult::error(std::string message) {
  ToolResult result = text(std::move(message));
  result.is_error = true;
  return result;
}

ToolResult ToolResult::with_structured(Json value) {
  ToolResult result = text(value.dump());
  result.structured = std::move(value);
  return result;
}

Call::Call(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

const std::string& Call::tool() const noexcept { return state_->tool->name; }

const Json& Call::arguments() const noexcept { return *state_->arguments; }

const Json& Call::argument(std::string_view name) const noexcept {
  const Json& sent = arguments()[name];
  if (!sent.is_null()) return sent;
  const Parameter* parameter = find_parameter(state_->tool->parameters, name);
  return parameter ? parameter->default_value : sent;
}

const Json& Call::meta() const noexcept { return *state_->meta; }

const CancelToken& Call::cancel_token() const noexcept { return state_->cancel; }

bool Call::wants_progress() const noexcept { return !state_->progress_token.empty(); }

void Call::progress(double progress, std::optional<double> total, std::string_view message) const {
  state_->notify(progress, total, message);
}

std::size_t Call::max_result_bytes() const noexcept { return state_->max_result; }

struct Server::State {
  ServerOptions options = {};
  Tools tools = {};
  std::atomic<bool> serving{false};
};

Server::Server(ServerOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}

Server::~Server() = default;

Expected<void> Server::add(Tool tool) {
  const auto refuse = [&](std::string_view problem) {
    return make_error(ErrorCode::invalid_argument,
                      concat({"tool ", quoted(tool.name), ": ", problem}));
  };
  if (state_->serving.load()) return refuse("cannot be added while serving");
  const std::string problem = tool_problem(tool);
  if (!problem.empty()) return refuse(problem);
  for (const auto& other : state_->tools)
    if (other->name == tool.name) return refuse("is there already");
  state_->tools.push_back(std::make_shared<const Tool>(std::move(tool)));
  return {};
}

Expected<void> Server::serve(const CancelToken& stop) {
  const ServerOptions& options = state_->options;
  const auto refuse = [](const char* what) {
    return make_error(ErrorCode::invalid_argument, concat({"ServerOptions::", what}));
  };
  if (options.name.empty()) return refuse("name must not be empty");
  if (options.max_line == 0) return refuse("max_line must be greater than 0");
  if (options.max_reply < smallest_reply) return refuse("max_reply must be at least 4096");
  if (options.max_concurrent == 0) return refuse("max_concurrent must be greater than 0");
  if (state_->serving.exchange(true))
    return make_error(ErrorCode::invalid_argument, "serve: the server is serving already");
  const Expected<void> result = [&]() -> Expected<void> {
    MovedStreams streams;
    const int in_fd = streams.take(options.in_fd);
    if (in_fd < 0) return system_error(errno, "ServerOptions::in_fd");
    const int out_fd = streams.take(options.out_fd);
    if (out_fd < 0) return system_error(errno, "ServerOptions::out_fd");
    return std::make_shared<Session>(options, state_->tools, in_fd, out_fd)->run(stop);
  }();
  state_->serving.store(false);
  return result;
}

}  // namespace mcp

// =================================================================================================
// >>tools (definitions)
//
// One table lists every option: its name, its kind, its help and where its value goes. The command
// line, the configuration file and --help are all read off that table.
// =================================================================================================

namespace {

// A sign of life for a client that asked for progress; the official TypeScript client gives up
// after 60 s without one.
constexpr std::chrono::milliseconds heartbeat_interval = std::chrono::seconds(2);

// A configuration file is read whole; nobody needs a longer one.
constexpr std::size_t longest_config = std::size_t{1} << 20;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// execute_command ---------------------------------------------------------------------------------

int json_exit_code(const Result& result) {
  if (result.outcome == Outcome::exited) return result.exit_code;
  if (result.outcome == Outcome::signaled) return -result.signal;
  return -1;
}

// What the caller must read besides the program's own words, or nothing.
std::string closing_message(const Result& result) {
  switch (result.outcome) {
    case Outcome::timed_out:
      return concat({"Command timed out after ", seconds_text(result.timeout), " seconds"});
    case Outcome::cancelled:
      return "Command was cancelled";
    case Outcome::refused:
      return result.message;
    case Outcome::not_started:
      return concat({"Execution error: ", result.message});
    case Outcome::unknown:
      return "Execution error: the command ended, but its exit status could not be learned";
    case Outcome::exited:
    case Outcome::signaled:
      break;
  }
  return {};
}

Json execution_schema() {
  const auto type = [](const char* type_name, const char* description) {
    return Json::object({{"type", type_name}, {"description", description}});
  };
  Json properties = Json::object();
  properties.set("success", type("boolean", "The command left with exit code 0, in time."));
  properties.set("exit_code",
                 type("integer",
                      "Exit code; minus the signal's number when a signal killed it; -1 when it "
                      "timed out, was refused or did not start."));
  properties.set("stdout",
                 type("string", "What it printed; the middle is left out when too long."));
  properties.set("stderr", type("string", "The same for standard error, and why it did not run."));
  properties.set("execution_time", type("number", "Seconds."));
  properties.set("command", type("string", "The command as it was given."));
  properties.set("work_dir", type("string", "The directory it ran in."));
  properties.set("outcome", type("string", "How it ended."));
  properties.set("timed_out", type("boolean", "It was stopped at its deadline."));
  properties.set("stdout_bytes", type("integer", "Bytes it wrote in all."));
  properties.set("stderr_bytes", type("integer", "Bytes it wrote in all."));
  properties.set("stdout_truncated", type("boolean", "stdout leaves something out."));
  properties.set("stderr_truncated", type("boolean", "stderr leaves something out."));
  Json required = Json::array();
  for (const Json::Member& member : properties.members()) required.push_back(member.name);
  Json schema = Json::object();
  schema.set("type", "object");
  schema.set("properties", std::move(properties));
  schema.set("required", std::move(required));
  return schema;
}

// Bytes that a text takes in a reply, which holds it twice: in the object, escaped once, and in the
// text block, escaped once more. Follows the escapes of Json::dump().
std::size_t bytes_in_reply(std::string_view text) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::string_view rest = text.substr(i, 3);
    if (c == '"' || c == '\\')
      bytes += 2 + 4;
    else if (c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f')
      bytes += 2 + 3;
    else if (c < 0x20 || c == 0x7f || starts_with(rest, "\xc2\x85") ||
             starts_with(rest, "\xe2\x80\xa8") || starts_with(rest, "\xe2\x80\xa9"))
      bytes += 6 + 7;
    else
      bytes += 1 + 1;
  }
  return bytes;
}

// Shortens the longest text until the reply fits. Each step halves the text it shortens, hence all
// of them together cost no more than a few times the first.
mcp::ToolResult fitting_reply(Result result, std::size_t max_bytes) {
  constexpr std::size_t for_the_rest = 16384;
  const std::size_t room = max_bytes - std::min(max_bytes, for_the_rest);
  std::string* const texts[] = {&result.out, &result.err, &result.command, &result.work_dir,
                                &result.message};
  const auto size_of_all = [&] {
    std::size_t size = 0;
    for (const std::string* text : texts) size += bytes_in_reply(*text);
    return size;
  };
  while (size_of_all() > room) {
    std::string& longest = **std::max_element(
        std::begin(texts), std::end(texts),
        [](const std::string* a, const std::string* b) { return a->size() < b->size(); });
    const std::string_view head = utf8_prefix(longest, longest.size() / 4);
    const std::string_view tail = utf8_suffix(longest, longest.size() / 4);
    const std::size_t omitted = longest.size() - head.size() - tail.size();
    if (&longest == &result.out) result.out_counts.dropped_bytes += omitted;
    if (&longest == &result.err) result.err_counts.dropped_bytes += omitted;
    longest = concat({head, "\n... (truncated to fit one reply: ", std::to_string(omitted),
                      " bytes omitted) ...\n", tail});
  }
  return mcp::ToolResult::with_structured(to_json(result));
}

// The end of what a command printed, for progress messages.
class LastLine {
 public:
  void add(std::string_view bytes) {
    if (bytes.size() > longest) bytes.remove_prefix(bytes.size() - longest);
    text_.append(bytes);
    if (text_.size() > longest) text_.erase(0, text_.size() - longest);
  }
  std::string text() const {
    const std::string_view all = trimmed(text_);
    return to_utf8(all.substr(all.find_last_of("\r\n") + 1));
  }

 private:
  static constexpr std::size_t longest = 200;
  std::string text_ = {};
};

// Progress counts the seconds since the start; the message is the last line that was printed.
void report_progress(Command& command, const mcp::Call& call) {
  const auto begin = Clock::now();
  auto last_line = std::make_shared<LastLine>();
  const auto report = [call, begin, last_line] {
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    const std::string line = last_line->text();
    call.progress(static_cast<double>(elapsed.count()) / 1000.0, {},
                  line.empty() ? "running" : line);
  };
  report();
  command.on_output = [last_line](Stream, std::string_view bytes) { last_line->add(bytes); };
  command.heartbeat = heartbeat_interval;
  command.on_heartbeat = report;
}

mcp::ToolReply execute_command(const Executor& executor, const mcp::Call& call) {
  Command command = Command::shell(call.argument("command").as_string());
  command.tool = call.tool();
  command.work_dir = call.argument("work_dir").as_string();
  command.cancel = call.cancel_token();
  if (const Json& seconds = call.argument("timeout"); seconds.is_number()) {
    // Anything above a thousand years is as good as that, and still fits the clock.
    const double bounded = std::min(seconds.as_number(), 3.2e10);
    const double milliseconds = std::ceil(bounded * 1000.0);
    command.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds));
  }
  if (call.wants_progress()) report_progress(command, call);
  return fitting_reply(executor.run(command), call.max_result_bytes());
}

// options -----------------------------------------------------------------------------------------

struct ServerConfig {
  ServerConfig() {
    local.kill_grace = std::chrono::milliseconds(300);
    local.timeout = std::chrono::milliseconds(0);  // not given: the default, or max_timeout if less
  }

  // When the client goes away, commands that ignore SIGTERM must be gone before serve() returns.
  LocalOptions local = {};
  std::uint64_t max_output = LocalOptions().max_output;
  std::uint64_t max_concurrent = mcp::ServerOptions{}.max_concurrent;
  std::string policy_mode = "strict";
  std::vector<std::string> read_only = {};
  std::string sandbox = {};  // not given: best_effort when the paths are, else off
  std::string network = "host";
  std::string private_home = name(LocalOptions().private_home);
  bool no_watch_files = false;
  std::string execution_mode = "local";
  std::string instance_id = {};
  bool enable_sudo = false;
  bool no_auto_venv = false;
};

// Where the value of an option goes decides its kind.
struct Option {
  using Variables = std::vector<std::pair<std::string, std::string>>;
  using Target = std::variant<std::string*, std::vector<std::string>*, std::chrono::milliseconds*,
                              std::uint64_t*, bool*, std::vector<Root>*, Variables*>;
  const char* name;   // of the command line; the configuration's key has `_` for `-`
  const char* value;  // what --help calls it
  const char* help;
  Target target;
  const char* other_key = "";  // another key that means the same
};

std::vector<Option> option_table(ServerConfig& config) {
  LocalOptions& local = config.local;
  SandboxOptions& sandbox = local.sandbox;
  Limits& limits = sandbox.limits;
  return {
      {"allowed-paths", "DIR...", "where commands may work; none: anywhere", &local.roots},
      {"read-only", "DIR...", "where they may work, but not change anything", &config.read_only},
      {"workspace", "DIR", "where commands start (default: the current directory)",
       &local.workspace},
      {"timeout", "SECONDS", "for commands that give none (default: 60)", &local.timeout},
      {"max-timeout", "SECONDS", "the most a command may ask for (default: 3600)",
       &local.max_timeout},
      {"max-output-size", "BYTES", "kept per stream: its head and its tail (default: 1048576)",
       &config.max_output},
      {"policy", "MODE", "strict: understands the shell (default); compat: as MassGen judges",
       &config.policy_mode},
      {"allowed-commands", "PATTERN...", "every command of a script must match one of these",
       &local.policy.allowed, "whitelist_patterns"},
      {"blocked-commands", "PATTERN...", "no command of a script may match one of these",
       &local.policy.blocked, "blacklist_patterns"},
      {"disable-rule", "NAME...", "switch rules off; --list-rules tells what there are",
       &local.policy.disabled_rules},
      {"delete-guard", nullptr, "refuse to delete files that no command has read or made",
       &local.delete_guard},
      {"sandbox", "MODE", "off, best-effort, strict; default: best-effort with allowed paths",
       &config.sandbox},
      {"network", "MODE", "what a sandbox lets them reach: host (default), none, loopback",
       &config.network},
      {"private-home", "MODE", "HOME and TMPDIR in a sandbox: executor (default), command, off",
       &config.private_home},
      {"unix-sockets", nullptr, "let them reach sockets with a path, where the network is off",
       &sandbox.unix_sockets},
      {"shared-memory", nullptr, "let them use /dev/shm, as Python's multiprocessing does",
       &sandbox.shared_memory},
      {"terminals", nullptr, "let them make pseudo-terminals; they reach the user's others, too",
       &sandbox.terminals},
      {"pid-namespace", nullptr, "a process table of their own", &sandbox.pid_namespace},
      {"no-watch-files", nullptr, "do not look for changes of .git/hooks, .vscode and the like",
       &config.no_watch_files},
      {"limit-cpu", "SECONDS", "whole ones, of each process of a command", &limits.cpu_time},
      {"limit-memory", "BYTES", "of a command, where there are cgroups; else of each process",
       &limits.memory},
      {"limit-address-space", "BYTES", "of each process; better --limit-memory",
       &limits.address_space},
      {"limit-processes", "N", "and threads of a command; without cgroups of the whole user",
       &limits.processes},
      {"limit-open-files", "N", "descriptors of each process", &limits.open_files},
      {"limit-file-size", "BYTES", "of each file that is written", &limits.file_size},
      {"limit-disk", "BYTES", "by which the disk may fill up during a command", &limits.disk},
      {"execution-mode", "MODE", "local: on this host (the only mode of this version)",
       &config.execution_mode},
      {"agent-id", "ID", "for the audit log", &local.agent_id},
      {"instance-id", "ID", "for containers; has no effect in local mode", &config.instance_id},
      {"enable-sudo", nullptr, "counts in containers only; has no effect in local mode",
       &config.enable_sudo},
      {"local-skills-directory", "DIR", "linked as .agent/skills in the workspace, if not there",
       &local.skills_dir},
      {"command-prefix", "WORDS", "put before every command line, for instance \"uv run\"",
       &local.environment.command_prefix, "command_execution_prefix"},
      {"venv-path", "DIR", "Python virtual environment for every command",
       &local.environment.venv_path, "command_execution_venv_path"},
      {"no-auto-venv", nullptr, "do not use the .venv of the work_dir or workspace",
       &config.no_auto_venv},
      {"keep-env", "NAME...", "variables of the server that commands see, too",
       &local.environment.keep},
      {"set-env", "NAME=VALUE...", "variables for all commands", &local.environment.set},
      {"secret-env", "NAME...", "the same, but their values are masked in what commands print",
       &local.environment.secret},
      {"shell", "PATH", "runs the commands (default: /bin/sh)", &local.shell},
      {"audit-file", "FILE", "append a line of JSON for every command", &local.audit_file},
      {"spill-dir", "DIR", "outputs over the limit go whole to files here", &local.spill_dir},
      {"max-concurrent", "N", "commands at a time; others wait (default: 16)",
       &config.max_concurrent},
  };
}

template <class T>
bool is_list(const std::vector<T>&) {
  return true;
}
template <class T>
bool is_list(const T&) {
  return false;
}

std::string key_of(const Option& option) {
  std::string key = option.name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Error bad_value(std::string_view option, std::string_view value, std::string_view expected) {
  return make_error(ErrorCode::invalid_argument,
                    concat({option, ": ", quoted(value), " is not ", expected}));
}

// A plain decimal number such as 60, 0.5 or 1e3; independent of the locale.
std::optional<double> parse_number(std::string_view text) {
  const auto value = Json::parse(text);
  const bool blanks = text != trimmed(text);
  if (blanks || !value || !value->is_number()) return {};
  return value->as_number();
}

// Puts the words that follow an option on the command line, or stand in the configuration, where
// they belong. `label` is how the user wrote the option.
class OptionSetter {
 public:
  OptionSetter(std::string label, const std::vector<std::string>& words)
      : label_(std::move(label)), words_(words) {}

  Expected<void> operator()(std::string* target) const {
    if (auto ok = single(); !ok) return ok;
    *target = words_[0];
    return {};
  }
  Expected<void> operator()(std::vector<std::string>* target) const {
    if (auto ok = some(); !ok) return ok;
    target->insert(target->end(), words_.begin(), words_.end());
    return {};
  }
  Expected<void> operator()(std::vector<Root>* target) const {
    if (auto ok = some(); !ok) return ok;
    for (const std::string& path : words_) target->push_back({path, Permission::write});
    return {};
  }
  Expected<void> operator()(std::vector<std::pair<std::string, std::string>>* target) const {
    if (auto ok = some(); !ok) return ok;
    for (const std::string& word : words_) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0)
        return bad_value(label_, word, "of the form NAME=VALUE");
      target->emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    return {};
  }
  Expected<void> operator()(std::chrono::milliseconds* target) const {
    if (auto ok = single(); !ok) return ok;
    constexpr const char* expected = "a number of seconds greater than 0 and at most 31536000";
    const std::optional<double> seconds = parse_number(words_[0]);
    if (!seconds || !(*seconds > 0) || *seconds > 31536000.0)
      return bad_value(label_, words_[0], expected);
    *target = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000.0)));
    return {};
  }
  Expected<void> operator()(std::uint64_t* target) const {
    if (auto ok = single(); !ok) return ok;
    const std::optional<double> number = parse_number(words_[0]);
    if (!number || *number < 1 || *number > 1e15 || *number != std::floor(*number))
      return bad_value(label_, words_[0], "a whole number greater than 0");
    *target = static_cast<std::uint64_t>(*number);
    return {};
  }
  Expected<void> operator()(bool* target) const {
    if (!words_.empty() && words_[0] != "true" && words_[0] != "false")
      return bad_value(label_, words_[0], "true or false");
    if (words_.size() > 1) return bad_value(label_, words_[1], "wanted: it takes no value");
    *target = words_.empty() || words_[0] == "true";
    return {};
  }

 private:
  Expected<void> single() const {
    if (words_.size() == 1) return no_blanks();
    return make_error(
        ErrorCode::invalid_argument,
        concat({label_, " needs exactly one value, and not ", std::to_string(words_.size())}));
  }
  // An empty list must not quietly mean "no restriction".
  Expected<void> some() const {
    if (!words_.empty()) return no_blanks();
    return make_error(ErrorCode::invalid_argument,
                      concat({label_, " needs at least one value; leave it out for no limit"}));
  }
  // An empty word is what an unset variable of a script leaves, and would mean "no limit" as well.
  Expected<void> no_blanks() const {
    for (const std::string& word : words_) {
      if (word.empty())
        return make_error(ErrorCode::invalid_argument,
                          concat({label_, " must not be empty; leave it out for no limit"}));
      if (word.find('\0') != std::string::npos) return bad_value(label_, word, "free of NUL bytes");
    }
    return {};
  }
  std::string label_;
  const std::vector<std::string>& words_;
};

// A value of the configuration file as the words that the command line would have.
Expected<std::vector<std::string>> config_words(const std::string& label, const Json& value) {
  const auto word = [](const Json& item) {
    return item.is_string() ? item.as_string() : item.dump();
  };
  const auto is_scalar = [](const Json& item) {
    return !item.is_null() && !item.is_array() && !item.is_object() && !item.has_lone_surrogate();
  };
  std::vector<std::string> words;
  if (value.is_array()) {
    for (const Json& item : value.items()) {
      if (!item.is_string() || item.has_lone_surrogate())
        return make_error(
            ErrorCode::invalid_argument,
            concat({label, ": every item must be a string, and ", quoted(item.dump()), " is not"}));
      words.push_back(item.as_string());
    }
    return words;
  }
  if (value.is_object()) {  // {"set_env": {"NAME": "value"}}
    for (const Json::Member& member : value.members()) {
      if (!is_scalar(member.value))
        return bad_value(label, member.value.dump(), "a string, number or boolean");
      if (member.name.find('=') != std::string::npos)
        return bad_value(label, member.name, "the name of a variable");
      words.push_back(concat({member.name, "=", word(member.value)}));
    }
    return words;
  }
  if (!is_scalar(value)) return bad_value(label, value.dump(), "a value this key can have");
  words.push_back(word(value));
  return words;
}

// Lists must be written as lists and single values as single values, so that a typing error is not
// taken for something else.
Expected<void> check_shape(const std::string& label, const Option& option, const Json& value) {
  const auto fail = [&](const char* expected) -> Expected<void> {
    return bad_value(label, value.dump(), expected);
  };
  if (std::holds_alternative<std::string*>(option.target))
    return value.is_string() ? Expected<void>() : fail("a string");
  if (std::holds_alternative<bool*>(option.target))
    return value.is_bool() ? Expected<void>() : fail("true or false");
  if (std::holds_alternative<std::uint64_t*>(option.target) ||
      std::holds_alternative<std::chrono::milliseconds*>(option.target))
    return value.is_number() ? Expected<void>() : fail("a number");
  if (std::holds_alternative<Option::Variables*>(option.target))
    return value.is_object() || value.is_array() ? Expected<void>() : fail("an object");
  return value.is_array() ? Expected<void>() : fail("a list of strings");
}

// Options named in `skipped` are set already.
Expected<void> read_config(const std::string& path, const std::vector<Option>& table,
                           const std::vector<const char*>& skipped) {
  auto text = read_whole_file(path, longest_config, "--config:");
  if (!text) return text.error();
  JsonLimits limits;
  limits.unique_names = true;
  auto config = Json::parse(*text, limits);
  if (!config) return with_prefix(concat({"--config: ", quoted(path), ": "}), config.error());
  if (!config->is_object())
    return make_error(ErrorCode::parse, concat({"--config: ", quoted(path), ": not an object"}));
  std::vector<const char*> seen;  // under whichever of its names
  for (const Json::Member& member : config->members()) {
    std::string_view key = member.name;
    constexpr std::string_view reference_prefix = "command_line_";
    if (starts_with(key, reference_prefix)) key.remove_prefix(reference_prefix.size());
    const auto option = std::find_if(table.begin(), table.end(), [&](const Option& candidate) {
      return key == key_of(candidate) || (*candidate.other_key && key == candidate.other_key);
    });
    const std::string label = concat({quoted(path), ": ", printable(member.name)});
    if (option == table.end())
      return make_error(ErrorCode::invalid_argument, concat({label, ": unknown key"}));
    if (std::find(seen.begin(), seen.end(), option->name) != seen.end())
      return make_error(ErrorCode::invalid_argument,
                        concat({label, ": another key sets ", key_of(*option), " already"}));
    seen.push_back(option->name);
    if (std::find(skipped.begin(), skipped.end(), option->name) != skipped.end()) continue;
    if (auto ok = check_shape(label, *option, member.value); !ok) return ok;
    auto words = config_words(label, member.value);
    if (!words) return words.error();
    if (auto ok = std::visit(OptionSetter(label, *words), option->target); !ok) return ok;
  }
  return {};
}

// The words of the command line that are not options of the table.
struct Invocation {
  bool help = false;
  bool version = false;
  std::optional<std::string> config = {};
  bool list_rules = false;
  bool sandbox_report = false;
  std::optional<std::string> run = {};
  std::optional<std::string> check = {};
};

// One option of the command line and the words that follow it, up to the next option.
struct Argument {
  std::string name;  // with its dashes
  std::vector<std::string> words;
};

// Every option takes the words up to the next option; --run and --check take the next word whatever
// it is.
Expected<std::vector<Argument>> split_arguments(int argc, char** argv) {
  std::vector<Argument> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-h") {
      arguments.push_back({"--help", {}});
      continue;
    }
    if (!starts_with(word, "--")) {
      if (arguments.empty())
        return make_error(ErrorCode::invalid_argument,
                          concat({"unexpected argument ", quoted(word), "; see --help"}));
      arguments.back().words.emplace_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    arguments.push_back({std::string(word.substr(0, equals)), {}});
    if (equals != std::string_view::npos)
      arguments.back().words.emplace_back(word.substr(equals + 1));
    else if ((word == "--run" || word == "--check") && i + 1 < argc)
      arguments.back().words.emplace_back(argv[++i]);
  }
  return arguments;
}

Error given_twice(std::string_view option) {
  return make_error(ErrorCode::invalid_argument, concat({option, " is given twice"}));
}

// Takes the options that are not settings of the server; true when `argument` was one.
Expected<bool> take_special(const Argument& argument, Invocation& invocation) {
  const OptionSetter set(argument.name, argument.words);
  const auto set_text = [&](std::optional<std::string>& target) -> Expected<void> {
    if (target) return given_twice(argument.name);
    return set(&target.emplace());
  };
  // To run nothing is allowed.
  const auto set_command = [&](std::optional<std::string>& target) -> Expected<void> {
    const bool empty = !target && argument.words == std::vector<std::string>{""};
    if (!empty) return set_text(target);
    target.emplace();
    return {};
  };
  Expected<void> ok;
  if (argument.name == "--help")
    ok = set(&invocation.help);
  else if (argument.name == "--version")
    ok = set(&invocation.version);
  else if (argument.name == "--config")
    ok = set_text(invocation.config);
  else if (argument.name == "--list-rules")
    ok = set(&invocation.list_rules);
  else if (argument.name == "--sandbox-report")
    ok = set(&invocation.sandbox_report);
  else if (argument.name == "--run")
    ok = set_command(invocation.run);
  else if (argument.name == "--check")
    ok = set_command(invocation.check);
  else
    return false;
  if (!ok) return ok.error();
  return true;
}

// The command line wins: what it sets, the configuration file does not.
Expected<Invocation> read_arguments(int argc, char** argv, ServerConfig& config) {
  auto arguments = split_arguments(argc, argv);
  if (!arguments) return arguments.error();
  Invocation invocation;
  const std::vector<Option> table = option_table(config);
  std::vector<const char*> set_here;
  for (const Argument& argument : *arguments) {
    const auto special = take_special(argument, invocation);
    if (!special) return special.error();
    if (*special) continue;
    const auto option = std::find_if(table.begin(), table.end(), [&](const Option& candidate) {
      return argument.name == concat({"--", candidate.name});
    });
    if (option == table.end())
      return make_error(ErrorCode::invalid_argument,
                        concat({"unknown option ", quoted(argument.name), "; see --help"}));
    // Of a single value the second would silently win; lists add up.
    const bool single = !std::visit([](auto* target) { return is_list(*target); }, option->target);
    if (single && std::find(set_here.begin(), set_here.end(), option->name) != set_here.end())
      return given_twice(argument.name);
    if (auto ok = std::visit(OptionSetter(argument.name, argument.words), option->target); !ok)
      return ok.error();
    set_here.push_back(option->name);
  }
  if (invocation.run && invocation.check)
    return make_error(ErrorCode::invalid_argument, "--run and --check exclude each other");
  if (invocation.config) {
    if (auto ok = read_config(*invocation.config, table, set_here); !ok) return ok.error();
  }
  return invocation;
}

// The words of a text in lines of at most 100 columns, each after `indent` blanks but the first.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column > indent && column + 1 + word.size() > 100) {
      result += concat({"\n", std::string(indent, ' ')});
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string help_text() {
  std::string text =
      "codeexec-mcp " CODEEXEC_VERSION_STRING
      " - runs commands for an AI agent, as an MCP server on stdin and stdout\n\n"
      "usage: codeexec-mcp [options]                 serve until the input ends\n"
      "       codeexec-mcp [options] --run COMMAND   run one command, print its result as JSON\n"
      "                                              (exit status 0: succeeded, 1: failed,\n"
      "                                              125: refused or not started)\n"
      "       codeexec-mcp [options] --check COMMAND tell whether it would be refused, and why\n"
      "                                              (exit status 0: allowed, 1: refused)\n\n"
      "options; each but the last seven is also a key of the configuration file, with _ for -:\n";
  const auto line = [&](const std::string& name, const char* value, const char* help) {
    std::string left = concat({"  --", name, value ? " " : "", value ? value : ""});
    left.resize(std::max<std::size_t>(left.size() + 2, 34), ' ');
    text += concat({left, help, "\n"});
  };
  ServerConfig config;
  for (const Option& option : option_table(config)) line(option.name, option.value, option.help);
  line("config", "FILE", "read options from a JSON object; the command line wins");
  line("run", "COMMAND", "run one command instead of serving");
  line("check", "COMMAND", "judge one without running it; - reads JSON strings, one per line");
  line("list-rules", nullptr, "print what the sanitizer's rules refuse, and exit");
  line("sandbox-report", nullptr, "print what is in force and what is missing here, and exit");
  line("help", nullptr, "print this and exit");
  line("version", nullptr, "print the version and exit");
  std::string rules;
  for (const RuleInfo& rule : Policy::rules())
    rules += concat({rules.empty() ? "" : " ", rule.name});
  return concat({text, "\nsanitizer rules, for --disable-rule:\n  ", wrapped(rules, 2), "\n"});
}

std::string rules_text() {
  constexpr std::size_t name_width = 22;
  std::string text =
      "The sanitizer's rules in the order of judgement, for --disable-rule. Those with a star "
      "have\n"
      "a pattern with --policy compat, too.\n\n";
  for (const RuleInfo& rule : Policy::rules()) {
    std::string left = concat({rule.compat ? "* " : "  ", rule.name});
    left.resize(std::max(left.size() + 1, name_width), ' ');
    text += concat({left, wrapped(rule.description, name_width), "\n"});
  }
  return text;
}

// The program's name of an option where the library has another one.
Error in_our_words(Error error) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"disabled_rules", "disable_rule"},
      {"keep", "keep_env"},
      {"max_output", "max_output_size"},
      {"secret", "secret_env"},
      {"set", "set_env"},
      {"skills_dir", "local_skills_directory"}};
  constexpr std::string_view limits = "limits: ";
  if (starts_with(error.message, limits)) error.message.replace(0, limits.size(), "limit_");
  const std::string_view first =
      std::string_view(error.message).substr(0, error.message.find_first_of(": "));
  for (const auto& [theirs, ours] : names) {
    if (first != theirs) continue;
    error.message.replace(0, theirs.size(), ours);
    break;
  }
  return error;
}

// The value whose name was given; `-` stands for `_`, too.
template <class Enum>
Expected<Enum> parse_enum(std::string_view option, std::string_view value,
                          std::initializer_list<Enum> choices) {
  std::string wanted(value);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  std::string all;
  for (const Enum choice : choices) {
    if (wanted == name(choice)) return choice;
    all += concat({all.empty() ? "" : ", ", name(choice)});
  }
  return bad_value(option, value, concat({"one of ", all}));
}

// Without paths there is nothing to confine commands to, unless it is asked for.
Expected<void> set_sandbox(const ServerConfig& config, LocalOptions& options) {
  options.sandbox.mode = options.roots.empty() ? SandboxMode::off : SandboxMode::best_effort;
  if (!config.sandbox.empty()) {
    const auto mode = parse_enum("sandbox", config.sandbox,
                                 {SandboxMode::off, SandboxMode::best_effort, SandboxMode::strict});
    if (!mode) return mode.error();
    options.sandbox.mode = *mode;
  }
  const auto network =
      parse_enum("network", config.network, {Network::host, Network::none, Network::loopback});
  if (!network) return network.error();
  options.sandbox.network = *network;
  const auto home = parse_enum("private_home", config.private_home,
                               {PrivateHome::off, PrivateHome::command, PrivateHome::executor});
  if (!home) return home.error();
  options.private_home = *home;
  options.watch_files = !config.no_watch_files;
  return {};
}

// Options that hang together, and the modes that this version has.
Expected<LocalExecutor> create_executor(const ServerConfig& config) {
  if (config.execution_mode != "local")
    return bad_value("execution_mode", config.execution_mode,
                     "a mode of this version, which has local only");
  LocalOptions options = config.local;
  if (config.policy_mode == "compat")
    options.policy.mode = PolicyOptions::Mode::compat;
  else if (config.policy_mode != "strict")
    return bad_value("policy", config.policy_mode, "strict or compat");
  if (auto ok = set_sandbox(config, options); !ok) return ok.error();
  // To name what is read-only must not forbid everything else. A sandbox, though, cannot be given
  // everything: there it is the workspace that may be changed.
  if (options.roots.empty() && !config.read_only.empty()) {
    const bool off = options.sandbox.mode == SandboxMode::off;
    const std::string workspace = options.workspace.empty() ? "." : options.workspace;
    options.roots.push_back({off ? "/" : workspace, Permission::write});
  }
  for (const std::string& path : config.read_only)
    options.roots.push_back({path, Permission::read});
  options.max_output = static_cast<std::size_t>(config.max_output);
  options.environment.auto_venv = !config.no_auto_venv;
  if (options.timeout.count() == 0)
    options.timeout = std::min(ExecutorOptions().timeout, options.max_timeout);
  auto executor = LocalExecutor::create(options);
  if (!executor) return in_our_words(executor.error());
  return executor;
}

// the server program ------------------------------------------------------------------------------

// Turns SIGTERM, SIGINT and SIGHUP into a cancelled token. The signals are blocked in this thread,
// hence in all that it starts later, and taken by one thread of its own; so nothing happens inside
// a signal handler.
class TerminationSignals {
 public:
  TerminationSignals() {
    sigemptyset(&signals_);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, number);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    error_ = start_thread(&thread_, wait_for_signal, this);
  }
  ~TerminationSignals() {
    if (error_ == 0) {
      if (!token_.cancelled()) ::pthread_kill(thread_, SIGTERM);
      ::pthread_join(thread_, nullptr);
    }
    take_pending();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;
  const CancelToken& token() const { return token_; }
  int error() const { return error_; }  // an errno, or 0

 private:
  static void* wait_for_signal(void* self) {
    auto& signals = *static_cast<TerminationSignals*>(self);
    int number = 0;
    ::sigwait(&signals.signals_, &number);
    signals.token_.cancel();
    return nullptr;
  }

  // A second signal during the end would kill the program as soon as the mask is lifted.
  void take_pending() {
    sigset_t pending;
    sigpending(&pending);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
      if (sigismember(&pending, number) != 1) continue;
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, number);
      int taken = 0;
      ::sigwait(&one, &taken);
    }
  }

  sigset_t signals_ = {};
  sigset_t before_ = {};
  CancelToken token_ = {};
  pthread_t thread_ = {};
  int error_ = 0;
};

bool print(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

void warn(const std::string& message) {
  std::fprintf(stderr, "codeexec-mcp: %s\n", message.c_str());
}

int fail(int status, const std::string& message) {
  warn(message);
  return status;
}

// Takes away the variables of this process that commands do not see either; the server needs none
// but some of those. They are overwritten where they lie: that is what /proc/PID/environ shows, and
// a command of root's may read it. Not for a process with other threads.
void drop_variables(const EnvironmentOptions& options) {
  char** kept = ::environ;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = std::min(text.find('='), text.size());
    if (is_kept(text.substr(0, equals), options))
      *kept++ = *entry;
    else
      std::memset(*entry, 0, text.size());
  }
  if (kept) *kept = nullptr;
}

// In strict mode a pattern must match the whole of a command. Whoever blocks `git push` in so many
// words, as lists written for other systems do, means more than that.
void warn_of_bare_patterns(const ServerConfig& config) {
  if (config.policy_mode != "strict") return;
  for (const std::string& pattern : config.local.policy.blocked) {
    if (pattern.find_first_of("\\^$.|?*+()[]{}") != std::string::npos) continue;
    const std::string shown = printable(pattern);
    warn(concat({"blocked_commands: '", shown, "' matches only this exact command; write '", shown,
                 "( .*)?' to refuse it with arguments"}));
  }
}

// Once, on one line: whoever relies on a sandbox must learn that this one has gaps.
void warn_of_gaps(const SandboxReport& report) {
  if (report.mode == SandboxMode::off || report.missing.empty()) return;
  warn(concat({"sandbox: missing here: ", printable(joined(report.missing, "; "))}));
}

int print_report(const SandboxReport& report) {
  Json object = Json::object();
  object.set("mode", name(report.mode));
  object.set("network", name(report.network));
  object.set("landlock_abi", report.landlock_abi);
  object.set("enforced", list_of(report.enforced));
  object.set("missing", list_of(report.missing));
  if (!print(object.dump() + "\n")) return fail(1, "cannot write to standard output");
  return report.missing.empty() ? 0 : 1;
}

// The lines of standard input, each of at most `longest` bytes in memory.
class InputLines {
 public:
  explicit InputLines(std::size_t longest) : longest_(longest) {}
  // Goes to the next line; false at the end, and where reading fails.
  bool next() {
    line_.clear();
    too_long_ = false;
    bool any = false;
    for (;;) {
      if (rest_.empty() && !fill()) return any;
      any = true;
      const std::size_t end = rest_.find('\n');
      const std::string_view piece = rest_.substr(0, end);
      if (line_.size() + piece.size() > longest_)
        too_long_ = true;
      else
        line_ += piece;
      rest_.remove_prefix(std::min(piece.size() + 1, rest_.size()));
      if (end != std::string_view::npos) return true;
    }
  }
  const std::string& line() const { return line_; }
  bool too_long() const { return too_long_; }  // then the line is not whole
  int error() const { return error_; }         // an errno, or 0

 private:
  bool fill() {
    ssize_t size = -1;
    do size = ::read(STDIN_FILENO, buffer_, sizeof buffer_);
    while (size < 0 && errno == EINTR);
    if (size < 0) error_ = errno;
    rest_ = std::string_view(buffer_, size < 0 ? 0 : static_cast<std::size_t>(size));
    return size > 0;
  }
  std::size_t longest_;
  std::string line_ = {};
  bool too_long_ = false;
  int error_ = 0;
  std::string_view rest_ = {};
  char buffer_[65536];
};

// The command in a line of --check -.
Expected<std::string> command_of_line(const InputLines& lines, std::size_t longest) {
  if (lines.too_long())
    return make_error(ErrorCode::limit,
                      concat({"longer than ", std::to_string(longest), " bytes"}));
  JsonLimits limits;
  limits.max_values = 1;
  auto value = Json::parse(lines.line(), limits);
  if (!value) return with_prefix("not a JSON string: ", value.error());
  if (!value->is_string() || value->has_lone_surrogate())
    return make_error(ErrorCode::parse, "not a JSON string");
  return value->as_string();
}

// One answer for each line, as soon as it has come.
int check_lines(const Executor& executor) {
  const std::size_t longest = mcp::ServerOptions().max_line;
  InputLines lines(longest);
  int status = 0;
  for (std::size_t number = 1; lines.next(); ++number) {
    const auto script = command_of_line(lines, longest);
    Json answer;
    if (script) {
      const Judgement judgement = executor.judge(Command::shell(*script));
      if (!judgement.verdict) status = std::max(status, 1);
      answer = to_json(judgement);
    } else {
      status = 2;
      answer.set("error", concat({"line ", std::to_string(number), ": ", script.error().message}));
    }
    if (!print(answer.dump() + "\n")) return fail(1, "cannot write to standard output");
  }
  if (lines.error() != 0)
    return fail(1, concat({"cannot read standard input: ", errno_text(lines.error())}));
  return status;
}

int check(const Executor& executor, const std::string& script) {
  if (script == "-") return check_lines(executor);
  const Judgement judgement = executor.judge(Command::shell(script));
  if (!print(to_json(judgement).dump() + "\n")) return fail(1, "cannot write to standard output");
  return judgement.verdict ? 0 : 1;
}

int run_once(const Executor& executor, const std::string& script, const CancelToken& stop) {
  Command command = Command::shell(script);
  command.cancel = stop;
  const Result result = executor.run(command);
  if (!print(to_json(result).dump() + "\n")) return fail(1, "cannot write to standard output");
  if (result.outcome == Outcome::refused || result.outcome == Outcome::not_started) return 125;
  return result.succeeded() ? 0 : 1;
}

int serve(const Executor& executor, const ServerConfig& config, const CancelToken& stop) {
  mcp::ServerOptions options;
  options.name = "codeexec";
  options.title = "Command Execution";
  options.version = CODEEXEC_VERSION_STRING;
  options.instructions = describe(executor);
  options.max_concurrent = static_cast<std::size_t>(config.max_concurrent);
  mcp::Server server(options);
  if (auto ok = add_execution_tools(server, executor); !ok) return fail(2, ok.error().message);
  const auto served = server.serve(stop);
  if (served) return 0;
  const int status = fail(1, served.error().message);
  // A handler that did not return still uses what this function's callers would destroy.
  if (served.error().code == ErrorCode::limit) ::_exit(status);
  return status;
}

}  // namespace

Json to_json(const Result& result) {
  std::string err = result.err;
  const std::string closing = closing_message(result);
  if (!closing.empty() && !err.empty() && err.back() != '\n') err += '\n';
  err += closing;

  const auto seconds = static_cast<double>(result.wall_time.count()) / 1e6;
  Json object = Json::object();
  object.set("success", result.succeeded());
  object.set("exit_code", json_exit_code(result));
  object.set("stdout", result.out);
  object.set("stderr", std::move(err));
  object.set("execution_time", seconds);
  object.set("command", result.command);
  object.set("work_dir", result.work_dir);
  object.set("outcome", name(result.outcome));
  object.set("timed_out", result.outcome == Outcome::timed_out);
  object.set("stdout_bytes", result.out_counts.total_bytes);
  object.set("stderr_bytes", result.err_counts.total_bytes);
  object.set("stdout_truncated", result.out_counts.dropped_bytes > 0);
  object.set("stderr_truncated", result.err_counts.dropped_bytes > 0);
  if (result.signal != 0) object.set("signal", result.signal);
  if (!result.rule.empty()) object.set("rule", result.rule);
  if (result.out_counts.invalid_bytes > 0)
    object.set("stdout_invalid_bytes", result.out_counts.invalid_bytes);
  if (result.err_counts.invalid_bytes > 0)
    object.set("stderr_invalid_bytes", result.err_counts.invalid_bytes);
  if (!result.out_file.empty()) object.set("stdout_file", result.out_file);
  if (!result.err_file.empty()) object.set("stderr_file", result.err_file);
  if (result.pipe_held) object.set("output_held_open", true);
  Json notes = Json::array();
  for (const std::string& note : result.notes) notes.push_back(note);
  const bool told_elsewhere = !closing.empty() && closing.find(result.message) != std::string::npos;
  if (!result.message.empty() && !told_elsewhere) notes.push_back(result.message);
  if (notes.size() > 0) object.set("notes", std::move(notes));
  set_sandbox_fields(object, result);
  return object;
}

Json to_json(const Judgement& judgement) {
  const Verdict& verdict = judgement.verdict;
  Json object = Json::object();
  object.set("allowed", verdict.allowed);
  object.set("rule", verdict ? Json() : Json(verdict.rule));
  object.set("message", verdict ? Json() : Json(verdict.message));
  object.set("begin", verdict ? Json() : Json(verdict.begin));
  object.set("end", verdict ? Json() : Json(verdict.end));
  Json commands = Json::array();
  for (const shell::Command& command : judgement.commands) {
    if (command.compound) continue;
    Json words = Json::array();
    for (const shell::Word& word : command.words)
      words.push_back(word.known() ? Json(word.text) : Json());
    Json assignments = Json::array();
    for (const shell::Assignment& assignment : command.assignments)
      assignments.push_back(assignment.value.known()
                                ? Json(concat({assignment.name, "=", assignment.value.text}))
                                : Json());
    Json entry = Json::object();
    entry.set("words", std::move(words));
    if (assignments.size() > 0) entry.set("assignments", std::move(assignments));
    entry.set("begin", command.begin);
    entry.set("end", command.end);
    commands.push_back(std::move(entry));
  }
  object.set("commands", std::move(commands));
  return object;
}

Expected<void> add_execution_tools(mcp::Server& server, const Executor& executor) {
  mcp::Tool tool;
  tool.name = "execute_command";
  tool.title = "Run a command";
  tool.description =
      concat({"Runs a shell command and returns its exit code, stdout and stderr. Blocks until the "
              "command ends or its timeout passes (default ",
              seconds_text(executor.timeout()),
              " seconds); then it is killed together with everything it started. Standard input is "
              "empty. Commands do not share a shell: the working directory and variables of one "
              "are gone in the next."});
  mcp::Parameter command;
  command.name = "command";
  command.description = "The command line, for the shell.";
  command.required = true;
  mcp::Parameter timeout;
  timeout.name = "timeout";
  timeout.type = mcp::ParameterType::number;
  timeout.nullable = true;
  timeout.greater_than = 0;
  timeout.description = concat({"Seconds, fractions allowed, at most ",
                                seconds_text(executor.max_timeout()), ". Not milliseconds."});
  mcp::Parameter work_dir;
  work_dir.name = "work_dir";
  work_dir.nullable = true;
  work_dir.description = concat({"Where to run it: absolute, or relative to ",
                                 to_utf8(executor.workspace()), ", which is the default."});
  tool.parameters = {command, timeout, work_dir};
  tool.output_schema = execution_schema();
  tool.annotations.read_only = false;
  tool.annotations.destructive = true;
  tool.annotations.idempotent = false;
  tool.annotations.open_world = true;
  tool.handler = [&executor](const mcp::Call& call) { return execute_command(executor, call); };
  return server.add(std::move(tool));
}

std::string describe(const Executor& executor) {
  const std::string place = executor.describe_place();
  return concat({"execute_command runs shell commands on this machine, by default in ",
                 to_utf8(executor.workspace()), ". A command may take ",
                 seconds_text(executor.timeout()), " seconds unless it asks for more (at most ",
                 seconds_text(executor.max_timeout()),
                 "). It gets no standard input and no terminal. Long output is shortened in the "
                 "middle. Some commands are refused before anything of them runs; the answer then "
                 "says by which rule.",
                 executor.delete_guard() ? " Read a file before you delete it." : "",
                 place.empty() ? "" : " ", place});
}

int server_main(int argc, char** argv) {
  ServerConfig config;
  const auto invocation = read_arguments(argc, argv, config);
  if (!invocation) return fail(2, invocation.error().message);
  if (invocation->help) return print(help_text()) ? 0 : 1;
  if (invocation->version) return print("codeexec-mcp " CODEEXEC_VERSION_STRING "\n") ? 0 : 1;
  if (invocation->list_rules) return print(rules_text()) ? 0 : 1;

  // A client that goes away must not kill the server before it has ended what it runs.
  ::signal(SIGPIPE, SIG_IGN);
#if defined(__linux__)
  // Commands run as the same user. They must not read this program's memory and variables, nor
  // write to its descriptors, through /proc.
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
  const auto executor = create_executor(config);
  if (!executor) return fail(2, executor.error().message);
  drop_variables(config.local.environment);
  if (config.enable_sudo) warn("enable_sudo has no effect in local mode");
  warn_of_bare_patterns(config);
  if (invocation->sandbox_report) return print_report(executor->sandbox_report());
  warn_of_gaps(executor->sandbox_report());
  if (invocation->check) return check(*executor, *invocation->check);
  const TerminationSignals signals;
  if (signals.error() != 0)
    return fail(1, concat({"cannot start a thread: ", errno_text(signals.error())}));
  if (invocation->run) return run_once(*executor, *invocation->run, signals.token());
  return serve(*executor, config, signals.token());
}

}  // namespace v0_1
}  // namespace codeexec
#endif  // CODEEXEC_IMPLEMENTATION

// MIT License
//
// Copyright (c) 2026 codeexec.hpp contributors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.
