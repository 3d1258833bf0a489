// A JSON value, a strict RFC 8259 parser and a writer.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

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
  template <class OnlyBool, class = std::enable_if_t<std::is_same_v<OnlyBool, bool>>>
  Json(OnlyBool value) noexcept : boolean_(value), kind_(Kind::boolean) {}
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
  Json(const std::string& text);
  Json(std::string&& text) noexcept;
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
  Json& set(std::string_view name, Json value);
  // Adds an item; whatever was no array becomes one. Returns *this.
  Json& push_back(Json value);

  // True when parse() met a \uD800 to \uDFFF escape without its partner in this string, or in any
  // string or name inside this container, even one that a later equal name or set() replaced. Such
  // an escape is read as U+FFFD, for UTF-8 cannot hold it: the string is not what the sender meant.
  // Constant time.
  bool has_lone_surrogate() const noexcept { return lone_surrogate_; }

  // Reads one JSON text (RFC 8259, UTF-8) with nothing around it but white space; a byte order mark
  // is an error, to be removed by the caller. Linear time, but for the members of an object, which
  // are sorted if they are many. Members keep their order; of a name that occurs again the last
  // value wins, in the place of the first. An integer within int64 is exact; any other number is
  // the nearest double, and one that no double can hold (1e400) an error.
  // Errors: parse, limit (max_depth, max_values); `offset` and message name the byte.
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
  template <class Values>
  struct Node {
    Values values;
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
    Node<Array> array_;
    Node<Object> object_;
  };
  Kind kind_ = Kind::null;
  unsigned char text_size_ = 0;
  bool lone_surrogate_ = false;
};

struct Json::Member {
  std::string name = {};
  Json value = {};
};

}  // namespace v0_1
}  // namespace codeexec
