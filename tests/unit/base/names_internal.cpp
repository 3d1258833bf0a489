// Names that stand in tables, and the tables of advice.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/names_internal.hpp"

using codeexec::find_help;
using codeexec::help_in;
using codeexec::HelpRow;
using codeexec::NameList;
using codeexec::Names;
using codeexec::NameSet;
using codeexec::NameTable;

namespace {

constexpr HelpRow troubles[] = {
    {"refused|cannot connect", "is it up?"},
    {"no such file", "install it"},
    {"file", "look at it"},
};
constexpr auto packed = codeexec::pack_help<troubles>();

struct Fruit {
  const char* said;
  const char* help;
  int price;
};
constexpr Fruit fruits[] = {{"apple", "a pie", 3}, {"plum", "jam", 5}};
constexpr auto packed_fruits = codeexec::pack_help<fruits>();
constexpr auto prices =
    codeexec::pack_entries<fruits>([](const Fruit& fruit) { return fruit.price; });

}  // namespace

TEST_CASE("a list of names keeps its order, and finds what it has") {
  static constexpr auto list = NameList{"sh", "", "bash", "sh"};
  std::vector<std::string> seen;
  for (const std::string_view name : list) seen.emplace_back(name);
  CHECK(seen == std::vector<std::string>{"sh", "", "bash", "sh"});
  CHECK(list.has("bash"));
  CHECK(list.has(""));
  CHECK_FALSE(list.has("bas"));
  CHECK_FALSE(list.has("shbash"));
  CHECK(list.list().size() == 4);

  static constexpr auto set = NameSet{"bash", "sh"};
  CHECK(set.has("sh"));
  CHECK_FALSE(set.has("dash"));
  CHECK(Names().empty());
  CHECK_FALSE(Names().has(""));
  CHECK_FALSE(Names().match("a"));
}

TEST_CASE("names may be patterns, which match from end to end") {
  static constexpr auto patterns = NameList{"LC_*", "*.log", "*key*", "_"};
  for (const char* good : {"LC_ALL", "LC_", "a.log", ".log", "key", "monkeys", "_"})
    CHECK_MESSAGE(patterns.match(good), good);
  for (const char* bad : {"lc_all", "LC", "a.logs", "__", ""})
    CHECK_FALSE_MESSAGE(patterns.match(bad), bad);
  CHECK_FALSE(patterns.has("LC_ALL"));
}

TEST_CASE("the first row counts of which a text is in what was said, in any case") {
  const NameTable table = packed.table();
  CHECK(help_in("Connection REFUSED", table) == "is it up?");
  CHECK(help_in("cannot connect: no such file", table) == "is it up?");
  CHECK(help_in("x: No such file or directory", table) == "install it");
  CHECK(help_in("a file", table) == "look at it");
  CHECK(help_in("connect", table).empty());
  CHECK(help_in("", table).empty());
  CHECK(find_help("a file", table) == 2);
  CHECK(find_help("nothing", table) == table.rows);
}

TEST_CASE("what else a row has stands at the same place") {
  const NameTable table = packed_fruits.table();
  CHECK(prices[find_help("a plum", table)] == 5);
  CHECK(prices[find_help("an apple", table)] == 3);
}
