// The writer: a value as one line of compact JSON, without recursion.
//
// A scalar is written at once. A container is put on a stack of open containers with the index of
// its next value; the loop writes that value, or the closing bracket when there is none left.
// Strings are written in runs: up to the next byte that needs an escape or is not ASCII, at once.

#include "json/json.hpp"
#include "json/json_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

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
        write_flat(open.container->array_.values[index]);
      } else {
        const Member& member = open.container->object_.values[index];
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
      at = json_run(at, end);
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
          step.good == 0 ? replacement_character : escape_of(std::string_view(at, length));
      if (!instead.empty()) {
        out_.append(run, at).append(instead);
        run = at + length;
      }
      at += length;
    }
    out_.append(run, end).append(1, '"');
  }

  void write_escaped(char c) {
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
        append_hex(out_, static_cast<unsigned char>(c));
    }
  }

  // The escape of one code point above ASCII, or nothing.
  static std::string_view escape_of(std::string_view code_point) {
    if (code_point == "\xc2\x85"sv) return "\\u0085"sv;
    if (code_point == "\xe2\x80\xa8"sv) return "\\u2028"sv;
    if (code_point == "\xe2\x80\xa9"sv) return "\\u2029"sv;
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

}  // namespace v0_1
}  // namespace codeexec
