// Errors: their names, their messages, and those of failed system calls.

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// strerror() without its shared buffer. GNU and POSIX disagree about the result of strerror_r, so
// an overload takes whichever it is.
[[maybe_unused]] const char* strerror_text(int, const char* buffer) { return buffer; }
[[maybe_unused]] const char* strerror_text(const char* text, const char*) { return text; }

}  // namespace

inline namespace inner {

std::string errno_text(int error) {
  char buffer[256] = "";
  return strerror_text(strerror_r(error, buffer, sizeof buffer), buffer);
}

SharedError system_error(int error, const char* what, Pieces values) {
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
  result.message = concat("%: %", {concat(what, values), errno_text(error)});
  return result;
}

SharedError make_error(ErrorCode code, const char* message, Pieces values, std::size_t offset) {
  Error result;
  result.code = code;
  result.offset = offset;
  result.message = concat(message, values);
  return result;
}

SharedError with_prefix(const char* prefix, Pieces values, const Error& error) {
  Error result = error;
  result.message.insert(0, concat(prefix, values));
  return result;
}

SharedError with_message(Error error, std::string message) {
  error.message = std::move(message);
  return error;
}

}  // namespace inner

const char* version() noexcept { return CODEEXEC_VERSION_STRING; }

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
      return "io";
  }
  return "";
}

struct detail::SharedError::Counted {
  std::atomic<unsigned> users;
  const Error error;
};

// Without memory for the error it is one that says so, which is never freed.
detail::SharedError::SharedError(const Error& error) {
  static Counted no_memory = {{1}, {ErrorCode::limit, ENOMEM, 0, out_of_memory}};
  if (enough_memory([&] { shared_ = new Counted{{1}, error}; })) return;
  shared_ = &no_memory;
  ++shared_->users;
}

detail::SharedError::SharedError(const SharedError& other) noexcept : shared_(other.shared_) {
  if (shared_) ++shared_->users;
}

detail::SharedError& detail::SharedError::operator=(const SharedError& other) noexcept {
  SharedError copy(other);
  std::swap(shared_, copy.shared_);
  return *this;
}

const Error& detail::SharedError::error() const noexcept {
  // Never destroyed: what runs while the program ends may ask for it.
  alignas(Error) static unsigned char room[sizeof(Error)];
  static const Error& none = *new (room) Error;
  return shared_ ? shared_->error : none;
}

void detail::SharedError::drop() noexcept {
  if (--shared_->users == 0) delete shared_;
}

detail::SharedError detail::find_name(std::string_view text, const char* (*name_of)(int),
                                      int& value) {
  std::string wanted(text);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  std::string names;
  for (value = 0; *name_of(value); ++value) {
    if (wanted == name_of(value)) return {};
    append_all(names, {value > 0 ? ", " : "", name_of(value)});
  }
  return make_error(ErrorCode::invalid_argument, "% is not one of %", {in_quotes(text), names});
}

void detail::used_without_value(const Error& error) {
  std::fprintf(stderr, "codeexec: the value of a failed Expected was used; its error is: %s\n",
               error.message.c_str());
  std::abort();
}

}  // namespace v0_1
}  // namespace codeexec
