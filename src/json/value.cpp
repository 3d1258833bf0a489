// The value: making, copying, comparing and destroying it without recursion.
//
// A value has 40 bytes: a union of what each kind needs, the kind, and two notes.
//
//   boolean            boolean_
//   integer, number    number_    the value; the spelling, if it cannot be made from the value
//   string             string_
//   array, object      array_, object_    a vector, and `link` to another container
//
// Nothing here recurses on its input, as a client chooses how deep it is. The parser keeps a chain
// of the open containers, and the destructor a chain of those that it still has to empty. Both run
// through `link`, so that neither allocates. Copy, comparison and writer keep a stack on the heap.
//
// A number keeps a spelling of up to 24 bytes in place, enough for the shortest form of any double,
// and a longer one on the heap. So 1.0, -0, 1E5 and 12345678901234567890 are written as they were
// read, which a protocol demands of an id.
//
// Members with equal names are found when an object closes: by comparing all with all when they are
// few, else by sorting, which no choice of names makes slow.

#include "json/json.hpp"
#include "json/json_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

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
  new (&array_) Node<Array>{};
  kind_ = Kind::array;
}

void Json::make_object() noexcept {
  new (&object_) Node<Object>{};
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
  if (json_same(value, 0) && std::signbit(value)) spell("-0"sv);
}

Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(const std::string& text) : string_(text), kind_(Kind::string) {}
Json::Json(std::string&& text) noexcept : string_(std::move(text)), kind_(Kind::string) {}

Json::Json(Array items) : Json() {
  make_array();
  array_.values = std::move(items);
  for (const Json& item : array_.values) lone_surrogate_ |= item.lone_surrogate_;
}

Json::Json(Object members) : Json() {
  make_object();
  object_.values = std::move(members);
  json_keep_last(object_.values);
  for (const Member& member : object_.values) lone_surrogate_ |= member.value.lone_surrogate_;
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

// Moves the other's content into this value, which must be null. The other becomes null.
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
      new (&array_) Node<Array>(std::move(other.array_));
      other.array_.~Node();
      break;
    case Kind::object:
      new (&object_) Node<Object>(std::move(other.object_));
      other.object_.~Node();
      break;
  }
  kind_ = std::exchange(other.kind_, Kind::null);
  text_size_ = std::exchange(other.text_size_, static_cast<unsigned char>(0));
  lone_surrogate_ = std::exchange(other.lone_surrogate_, false);
}

// Makes this value null.
void Json::clear() noexcept {
  if (is_string()) string_.~basic_string();
  if (text_size_ == is_long) delete number_.long_text;
  if (is_container()) clear_tree();
  kind_ = Kind::null;
  text_size_ = 0;
  lone_surrogate_ = false;
}

// Frees a container with all that is in it, in two passes and without memory of its own. The first
// takes containers from the chain `found` and adds those inside of them to it; each one that was
// taken goes to the front of the chain `listed`, so inner ones come before outer ones. The second
// pass frees them in this order: the values that a vector still holds are scalars or null by then.
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
      for (Json& item : outer->array_.values) add(item);
    } else {
      for (Member& member : outer->object_.values) add(member.value);
    }
  }
  while (listed) {
    Json* const inner = listed;
    listed = inner->link();
    if (inner->is_array()) {
      inner->array_.~Node();
    } else {
      inner->object_.~Node();
    }
    inner->kind_ = Kind::null;
  }
}

// Copies the other value into this one, which must be null. The values inside a container become
// null: the caller copies them.
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
      array_.values.resize(other.array_.values.size());
      break;
    case Kind::object:
      make_object();
      object_.values.resize(other.object_.values.size());
      for (std::size_t i = 0; i < object_.values.size(); ++i)
        object_.values[i].name = other.object_.values[i].name;
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
      copy(pair.from->array_.values[i], pair.to->array_.values[i]);
    for (std::size_t i = 0; i < pair.from->members().size(); ++i)
      copy(pair.from->object_.values[i].value, pair.to->object_.values[i].value);
  }
}

// Compares all but the values inside a container; of those only their number.
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
  const auto same_members = [&](const Object& a, const Object& b) {
    const auto left = json_sorted(a);
    const auto right = json_sorted(b);
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
  if (number_.integer == 0 && starts_with(spelling(), "-"sv)) return -0.0;
  return static_cast<double>(number_.integer);
}

const std::string& Json::as_string() const noexcept {
  static const std::string empty;
  return is_string() ? string_ : empty;
}

const Json::Array& Json::items() const noexcept {
  static const Array empty;
  return is_array() ? array_.values : empty;
}

const Json::Object& Json::members() const noexcept {
  static const Object empty;
  return is_object() ? object_.values : empty;
}

std::size_t Json::size() const noexcept {
  return is_array() ? array_.values.size() : members().size();
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

Json& Json::set(std::string_view name, Json value) {
  if (!is_object()) {
    clear();
    make_object();
  }
  lone_surrogate_ |= value.lone_surrogate_;
  for (Member& member : object_.values) {
    if (member.name != name) continue;
    member.value = std::move(value);
    return *this;
  }
  object_.values.push_back(Member{std::string(name), std::move(value)});
  return *this;
}

Json& Json::push_back(Json value) {
  if (!is_array()) {
    clear();
    make_array();
  }
  lone_surrogate_ |= value.lone_surrogate_;
  array_.values.push_back(std::move(value));
  return *this;
}

inline namespace inner {

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

void set_member(Json& object, const char* name, const char* text) { object.set(name, Json(text)); }
void set_member(Json& object, const char* name, const std::string& text) {
  object.set(name, Json(text));
}
void set_member(Json& object, const char* name, std::string&& text) {
  object.set(name, Json(std::move(text)));
}
void set_member(Json& object, const char* name, bool value) { object.set(name, Json(value)); }
void set_member(Json& object, const char* name, double value) { object.set(name, Json(value)); }
void set_member(Json& object, const char* name, long long value) { object.set(name, Json(value)); }
void set_member(Json& object, const char* name, unsigned long long value) {
  object.set(name, Json(value));
}
void set_member(Json& object, const char* name, const Json& value) { object.set(name, value); }
void set_member(Json& object, const char* name, Json&& value) {
  object.set(name, std::move(value));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
