// Errors, optional results, callbacks, descriptors, cancellation, UTF-8.
#pragma once

#include "base/version.hpp"

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

// The version of the implementation that this program is linked with, such as "0.1.0": what its
// CODEEXEC_VERSION_STRING was. It differs from that of the including file when the two are of
// different releases.
const char* version() noexcept;

// What kind of thing went wrong; the message says the rest. As of each enumeration that has one,
// name() gives the name of the enumerator, and "" for a value that is none; from_name() reads it.
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
[[noreturn, gnu::cold]] void used_without_value(const Error& error);

// An Error, or none; copies share it. Each Expected has one: what all of them would otherwise have
// inline stands in the implementation once.
class SharedError {
 public:
  SharedError() = default;
  [[gnu::cold]] SharedError(const Error& error);
  SharedError(const SharedError& other) noexcept;
  SharedError(SharedError&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  SharedError& operator=(const SharedError& other) noexcept;
  ~SharedError() {
    if (shared_) drop();
  }

  explicit operator bool() const noexcept { return shared_ != nullptr; }
  // A default Error when there is none.
  const Error& error() const noexcept;
  operator const Error&() const noexcept { return error(); }

 private:
  struct Counted;
  [[gnu::cold]] void drop() noexcept;
  Counted* shared_ = nullptr;
};

}  // namespace detail

// Either a T or the Error that explains why there is none. Test it before use: reading the value of
// a failed one is a bug in the calling program and aborts with the error's message.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(const Error& error) : failure_(error) {}
  Expected(const detail::SharedError& failure) noexcept : failure_(failure) {}
  Expected(detail::SharedError&& failure) noexcept : failure_(std::move(failure)) {}

  bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Expected*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Expected*>(this)->checked(); }

  // The value, moved out of it; what a move leaves of a T stays. A failed one aborts, as above.
  T take() { return std::move(checked()); }
  // The value, or `other` of a failed one.
  T value_or(T other) const& { return has_value() ? *value_ : std::move(other); }
  T value_or(T other) && { return has_value() ? std::move(*value_) : std::move(other); }

  // The error of a failed one; a default Error otherwise.
  const Error& error() const noexcept { return failure_; }
  // The same for another Expected, which then shares the error and does not copy it.
  const detail::SharedError& failure() const noexcept { return failure_; }

 private:
  T& checked() {
    if (!value_.has_value()) detail::used_without_value(failure_);
    return *value_;
  }
  std::optional<T> value_ = {};
  detail::SharedError failure_ = {};
};

// Success, or the Error that explains the failure.
template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(const Error& error) : failure_(error) {}
  Expected(const detail::SharedError& failure) noexcept : failure_(failure) {}
  Expected(detail::SharedError&& failure) noexcept : failure_(std::move(failure)) {}
  // There is no move, as it would leave a failed one that looks like success.
  Expected(const Expected&) = default;
  Expected& operator=(const Expected&) = default;

  bool has_value() const noexcept { return !failure_; }
  explicit operator bool() const noexcept { return !failure_; }
  const Error& error() const noexcept { return failure_; }
  const detail::SharedError& failure() const noexcept { return failure_; }

 private:
  detail::SharedError failure_ = {};
};

namespace detail {

// An Error when no value has the name, and none when `value` is the one that has it. `name_of`
// gives "" behind the last value.
SharedError find_name(std::string_view text, const char* (*name_of)(int), int& value);

}  // namespace detail

// The value with this name(): from_name<Network>("none"). `-` stands for `_`, too: "best-effort".
//   Errors: invalid_argument, with the names that there are.
template <class E>
Expected<E> from_name(std::string_view text) {
  int value = 0;
  const auto name_of = [](int place) { return name(static_cast<E>(place)); };
  auto problem = detail::find_name(text, name_of, value);
  if (problem) return problem;
  return static_cast<E>(value);
}

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
      : object_(static_cast<void*>(new F(std::move(callable))), destroy<F>),
        call_([](void* object, Args... args) -> R {
          return static_cast<R>((*static_cast<F*>(object))(std::forward<Args>(args)...));
        }) {}
  explicit operator bool() const noexcept { return call_ != nullptr; }
  R operator()(Args... args) const {
    if (!call_) return R();
    return call_(object_.get(), std::forward<Args>(args)...);
  }

 private:
  // With std::make_shared each type of callable would cost half a KiB of code more.
  template <class F>
  static void destroy(void* object) {
    delete static_cast<F*>(object);
  }
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
  // and owned by the token; -1 when the system has none left (then only cancelled() shows it).
  int descriptor() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A duration that never ends, where a limit may be switched off.
inline constexpr std::chrono::milliseconds no_limit = std::chrono::milliseconds::max();

// No bound, where a number of bytes, files or processes is one and may be left out.
inline constexpr std::uint64_t no_bound = 0;

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

}  // namespace v0_1
}  // namespace codeexec
