// What shell::walk says of scripts, for shell_differential.py. Reads one JSON object in each line,
// {"script": ..., "posix": false, "work_dir": ...}, and answers each with one line. Strings stand
// for bytes: a character U+0000 to U+00FF for each of them. With "judged": true it answers with all
// commands that a policy is shown, and with the rule by which it refuses the script when it blocks
// the command "blocked".
#include "codeexec.hpp"

#include <cstdio>
#include <iostream>
#include <list>
#include <string>
#include <string_view>

#include "../helpers/shell_support.hpp"
#include "policy/judge_internal.hpp"

namespace {

using codeexec::Json;
namespace shell = codeexec::shell;

// What the commands of one script may be told with; a script of the test is far below it.
constexpr std::size_t most_commands = 4096;

std::string bytes_of(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80 || i + 1 == text.size()) {
      bytes += text[i];
      continue;
    }
    const auto next = static_cast<unsigned char>(text[++i]);
    bytes += static_cast<char>(((lead & 3u) << 6) | (next & 0x3fu));
  }
  return bytes;
}

Json text_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
      continue;
    }
    text += static_cast<char>(0xc0u | (byte >> 6));
    text += static_cast<char>(0x80u | (byte & 0x3fu));
  }
  return Json(std::move(text));
}

// The text, and a letter for each mark.
Json word(const shell::Word& word) {
  return Json::array({text_of(word.text), support::marks_of(word)});
}

Json command(const shell::Command& command) {
  Json words = Json::array();
  for (const shell::Word& each : command.words) words.push_back(word(each));
  Json assignments = Json::array();
  for (const shell::Assignment& each : command.assignments)
    assignments.push_back(Json::array({text_of(each.name), word(each.value)}));
  const char* const inputs[] = {"inherited", "known", "unknown"};
  Json result = Json::object();
  result.set("words", words).set("assignments", assignments);
  result.set("work_dir", word(command.work_dir));
  result.set("input", inputs[static_cast<int>(command.input.kind)]);
  result.set("input_text", text_of(command.input.text));
  result.set("input_home", command.input.home).set("input_glob", command.input.glob);
  result.set("defined", command.defined).set("begin", command.begin).set("end", command.end);
  return result;
}

Json answer(const Json& question) {
  shell::Options options;
  if (question["posix"].as_bool()) options.dialect = shell::Dialect::posix;
  options.work_dir = bytes_of(question["work_dir"].as_string());
  options.limits.max_commands = most_commands;
  const support::Script script = support::parse(bytes_of(question["script"].as_string()), options);
  Json commands = Json::array();
  for (const shell::Command& each : script.commands) commands.push_back(command(each));
  Json result = Json::object();
  result.set("complete", script.complete).set("error", script.error.message);
  result.set("limit", script.error.code == codeexec::ErrorCode::limit);
  result.set("dependent", script.dialect_dependent).set("offset", script.error.offset);
  result.set("commands", commands);
  return result;
}

// As a policy reads a script: as bash does, and as a POSIX shell where that makes a difference.
Json judged(const Json& question) {
  const std::string script = bytes_of(question["script"].as_string());
  const std::list<codeexec::Regex> none;
  std::list<codeexec::Regex> blocked;
  const std::string name = bytes_of(question["blocked"].as_string());
  if (!name.empty()) blocked.push_back(*codeexec::Regex::compile(name + "( .*)?", "s"));
  const codeexec::Terms terms = {~0U, none, false, blocked, {}, 0, none};
  codeexec::Case one = {terms, script};
  Json commands = Json::array();
  bool complete = true;
  for (const shell::Dialect dialect : {shell::Dialect::bash, shell::Dialect::posix}) {
    shell::Options options;
    options.dialect = one.dialect = dialect;
    codeexec::Judge judge(one);
    const auto outcome = shell::walk(script, options, [&](const shell::Visit& visit) {
      judge.visit(visit);
      if (visit.command.words.empty() || commands.size() > most_commands) return;
      Json words = Json::array();
      for (const shell::Word& each : visit.command.words) words.push_back(word(each));
      commands.push_back(words);
    });
    judge.finish();
    complete = complete && (outcome.complete || dialect == shell::Dialect::posix);
    if (!outcome.dialect_dependent) break;
  }
  const char* const refused = complete ? one.verdict.rule.c_str() : "syntax";
  Json result = Json::object();
  result.set("commands", commands)
      .set("refused", one.too_complex ? "command-too-complex" : refused);
  return result;
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto question = Json::parse(line);
    if (!question) {
      std::fprintf(stderr, "shell_words: %s\n", question.error().message.c_str());
      return 2;
    }
    const bool both = (*question)["judged"].as_bool();
    std::cout << (both ? judged(*question) : answer(*question)).dump() << '\n';
  }
  return 0;
}
