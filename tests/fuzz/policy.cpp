// What no script may do to a policy: get another verdict the second time, become allowed by what
// stands before or behind it or by quotes around its words, run what an allow list does not have.
//   sh tests/fuzz/run.sh [seconds] policy
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "../helpers/shell_support.hpp"
#include "fuzz.hpp"

namespace {

namespace shell = codeexec::shell;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;

[[noreturn]] void disagree(const char* what, std::string_view script, const Verdict& before,
                           std::string_view changed, const Verdict& after) {
  std::fprintf(stderr, "%s\n--- %s %s\n%.*s\n--- %s %s\n%.*s\n---\n", what,
               before.allowed ? "allowed" : "refused", before.rule.c_str(),
               static_cast<int>(script.size()), script.data(),
               after.allowed ? "allowed" : "refused", after.rule.c_str(),
               static_cast<int>(changed.size()), changed.data());
  std::abort();
}

Policy made(const PolicyOptions& options) {
  codeexec::Expected<Policy> policy = Policy::create(options);
  if (!policy) {
    std::fprintf(stderr, "%s\n", policy.error().message.c_str());
    std::abort();
  }
  return *policy;
}

const Policy& strict() {
  static const Policy policy = made({});
  return policy;
}

const Policy& listing() {
  static const Policy policy = [] {
    PolicyOptions options;
    options.allowed = {"w( .*)?"};
    return made(options);
  }();
  return policy;
}

const Policy& blocking() {
  static const Policy policy = [] {
    PolicyOptions options;
    options.blocked = {"w( .*)?", "git push.*"};
    return made(options);
  }();
  return policy;
}

const Policy& compat() {
  static const Policy policy = [] {
    PolicyOptions options;
    options.compat = true;
    return made(options);
  }();
  return policy;
}

Verdict sound(const Policy& policy, std::string_view script) {
  const Verdict verdict = policy.judge(script, "/work").verdict;
  const Verdict again = policy.judge(script, "/work", false).verdict;
  if (verdict.allowed != again.allowed || verdict.rule != again.rule ||
      verdict.begin != again.begin || verdict.end != again.end)
    disagree("another verdict the second time", script, verdict, script, again);
  if (!verdict.allowed && (verdict.rule.empty() || verdict.message.empty()))
    disagree("a refusal without a reason", script, verdict, script, again);
  if (verdict.begin > verdict.end || verdict.end > script.size())
    disagree("a range outside of the script", script, verdict, script, again);
  return verdict;
}

// `changed` does at least what `script` does.
void expect_refused(const Policy& policy, const char* what, std::string_view script,
                    const Verdict& verdict, const std::string& changed) {
  const Verdict after = policy.judge(changed, "/work").verdict;
  if (after.allowed) disagree(what, script, verdict, changed, after);
}

bool is_plain(std::string_view text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
  return !text.empty() && text.find_first_not_of(plain) == std::string_view::npos;
}

// The script with one word after the other in quotes. A word that an alias could stand for is left
// alone: quotes do change what that one means.
void check_quoting(const Policy& policy, std::string_view script, const Verdict& verdict) {
  if (script.find("alias") != std::string_view::npos) return;
  const support::Script parsed = support::parse(script);
  if (!parsed.complete) return;
  int tried = 0;
  for (const shell::Command& command : parsed.commands) {
    if (command.words.empty()) continue;
    const std::string& name = command.words[0].text;
    if (name == "[[" || name.compare(0, 2, "((") == 0) continue;
    for (const shell::Word& word : command.words) {
      const std::string_view written = script.substr(word.begin, word.end - word.begin);
      if (written != word.text || !is_plain(written)) continue;
      if (++tried > 8) return;
      std::string changed(script.substr(0, word.begin));
      changed += "'";
      changed += written;
      changed += "'";
      changed += script.substr(word.end);
      expect_refused(policy, "quotes around a word made it allowed", script, verdict, changed);
    }
  }
}

// An odd number of backslashes at the end joins what follows to the last word.
bool ends_with_backslash(std::string_view script) {
  const std::size_t last = script.find_last_not_of('\\');
  const std::size_t others = last == std::string_view::npos ? 0 : last + 1;
  return (script.size() - others) % 2 == 1;
}

void check_monotony(const Policy& policy, std::string_view script) {
  const Verdict verdict = sound(policy, script);
  if (verdict.allowed) return;
  const std::string text(script);
  expect_refused(policy, "'true; ' before it made it allowed", script, verdict, "true; " + text);
  expect_refused(policy, "'echo a && ' before it made it allowed", script, verdict,
                 "echo a && " + text);
  // What was cut off in the middle of a command may be whole with another line, and a here-document
  // that the script does not end may take the line in.
  if (verdict.rule != "syntax" && !ends_with_backslash(script) &&
      script.find("<<") == std::string_view::npos)
    expect_refused(policy, "a line behind it made it allowed", script, verdict, text + "\ntrue");
  check_quoting(policy, script, verdict);
}

void check_allow_list(std::string_view script) {
  const Verdict verdict = sound(listing(), script);
  if (!verdict.allowed) return;
  const support::Script parsed = support::parse(script);
  // What only redirects or ends a compound command runs nothing.
  const bool all_named =
      std::all_of(parsed.commands.begin(), parsed.commands.end(), [](const shell::Command& each) {
        return each.words.empty() ? each.assignments.empty() : each.words[0].text == "w";
      });
  if (!parsed.complete || !all_named || !parsed.definitions.empty())
    disagree("allowed, though not on the list", script, verdict, script, verdict);
}

}  // namespace

void fuzz::policy(std::string_view script) {
  check_monotony(strict(), script);
  check_monotony(blocking(), script);
  check_allow_list(script);
  sound(compat(), script);
  const codeexec::Judgement judgement = strict().judge(script, "/work");
  for (const codeexec::FileAccess& each : judgement.files)
    if (each.path.empty() || each.begin > each.end || each.end > script.size())
      disagree("a file access without a path or place", script, judgement.verdict, each.path,
               judgement.verdict);
}
