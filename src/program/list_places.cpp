// --places: the containers, jobs or pods of ours in an engine, as a table or as JSON.

#include "program/program_internal.hpp"

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "cluster/cluster.hpp"
#include "containers/containers_internal.hpp"
#include "docker/docker.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "place/place.hpp"
#include "places/places_internal.hpp"
#include "tools/tools_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

Expected<std::vector<FoundPlace>> places_of(const ServerConfig& config, bool remove_left) {
  if (config.use == Option::slurm) return slurm_places(remove_left);
  if (config.use == Option::kubernetes)
    return kubernetes_places(kubernetes_options(config), remove_left);
  return container_places(config.containers->user.container.engine, remove_left);
}

// In the largest unit that there is at least one of.
std::string age_text(std::chrono::seconds age) {
  const long long seconds = age.count();
  if (seconds < 0) return "?";
  if (seconds < 60) return concat("% s", {seconds});
  if (seconds < 3600) return concat("% min", {seconds / 60});
  if (seconds < 86400) return concat("% h", {seconds / 3600});
  return concat("% d", {seconds / 86400});
}

constexpr std::size_t columns = 7;

// The cells of the table, with those of its first line. The JSON is made of them, too.
std::vector<std::string> cells_of(const std::vector<FoundPlace>& places) {
  std::vector<std::string> cells =
      words_of({"name", "agent", "age", "host", "pid", "owner", "state"});
  for (const FoundPlace& place : places)
    add_words(cells, {to_utf8(place.name), to_utf8(place.agent), age_text(place.age),
                      to_utf8(place.host), to_utf8(place.pid),
                      !place.maker_runs   ? "unknown"
                      : *place.maker_runs ? "running"
                                          : "gone",
                      place.was_removed ? "removed" : to_utf8(place.state)});
  return cells;
}

std::string json_text(const std::vector<FoundPlace>& places) {
  const std::vector<std::string> cells = cells_of(places);
  Json list = Json::array();
  for (std::size_t i = 0; i < places.size(); ++i) {
    Json row = Json::object();
    for (std::size_t column = 0; column < columns; ++column)
      set_member(row, cells[column].c_str(), cells[(i + 1) * columns + column]);
    set_member(row, "age", static_cast<long long>(places[i].age.count()));
    list.push_back(std::move(row));
  }
  return list.dump() + "\n";
}

// Texts of other programs are made printable, as this goes to a terminal.
std::string table_text(const std::vector<FoundPlace>& places) {
  std::vector<std::string> cells = cells_of(places);
  std::size_t widths[columns] = {};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = printable(cells[i]);
    widths[i % columns] = std::max(widths[i % columns], cells[i].size() + 2);
  }
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool is_last = i % columns == columns - 1;
    if (!is_last) cells[i].resize(widths[i % columns], ' ');
    append_all(text, {cells[i], is_last ? "\n" : ""});
  }
  return text;
}

}  // namespace

inline namespace inner {

int list_places(const ServerConfig& config) {
  const ProgramConfig& call = *config.program;
  const auto places = places_of(config, call.places_remove);
  if (!places) return fail(1, in_words_of_containers(places.error()).error().message);
  const std::string text = call.json ? json_text(*places) : table_text(*places);
  return print_answer(text);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
