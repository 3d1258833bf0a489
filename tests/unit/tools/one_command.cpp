// --run, --check and --list-rules.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::all_keys;
using support::begins;
using support::check_refused;
using support::dies;
using support::endless;
using support::ends;
using support::Fifo;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::run_command;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

// --run -------------------------------------------------------------------------------------------

TEST_CASE("--run: status 0, 1 or 125, and one line of JSON") {
  const auto status_of = [](const std::string& command, Strings arguments = {}) {
    arguments.insert(arguments.end(), {"--run", command});
    const ProcessResult r = run_program(arguments);
    CHECK(r.err == "");
    CHECK(lines_of(r.out).size() == 1);
    CHECK(begins(names_of(parsed(r.out)), all_keys));
    return r.exit_code;
  };
  CHECK(status_of("true") == 0);
  CHECK(status_of("") == 0);
  CHECK(status_of("exit 7") == 1);
  CHECK(status_of("kill -9 $$") == 1);
  CHECK(status_of("exec sleep 60", {"--timeout", "0.1"}) == 1);
  CHECK(status_of("sudo ls") == 125);
  CHECK(status_of("ls", {"--allowed-commands", "echo"}) == 125);
  CHECK(status_of("ls", {"--set-env", "A=" + std::string(100000, 'x') + "\xff"}) == 0);
  CHECK(status_of("--help") == 1);  // the command, not the option
  const TempDir place;
  const std::string shell = place.file("shell", "#!/nonexistent/interpreter\n", 0755);
  CHECK(status_of("true", {"--shell", shell}) == 125);
}

TEST_CASE("the shell is bash where there is one") {
  if (!support::has_bash()) return;
  for (const Strings& arguments : {Strings(), Strings{"--shell", "auto"}}) {
    const std::string out =
        run_command("a=(x y); [[ -n ${a[1]} ]] && echo ${a[1]} $BASH || echo no",
                    arguments)["stdout"]
            .as_string();
    CHECK((support::has(out, "y /") && support::has(out, "/bash\n")));
  }
}

TEST_CASE("--run=COMMAND is the same") {
  const ProcessResult r = run_program({"--run=echo a=b"});
  CHECK(r.exit_code == 0);
  CHECK(parsed(r.out)["stdout"] == Json("a=b\n"));
}

// --check and --list-rules ------------------------------------------------------------------------

namespace {

// What --check says of the command, with its exit status checked.
Json judged(const std::string& command, Strings arguments = {}, const std::string& place = "/") {
  arguments.insert(arguments.end(), {"--check", command});
  const ProcessResult r = run_program(arguments, place);
  CHECK(r.err == "");
  REQUIRE(ends(r.out, "}\n"));
  CHECK(lines_of(r.out).size() == 1);
  Json object = parsed(r.out);
  CHECK(r.exit_code == (object["allowed"].as_bool() ? 0 : 1));
  return object;
}

}  // namespace

TEST_CASE("--check judges without running, in one line of JSON") {
  const TempDir place;
  const Json allowed =
      judged("touch made; X=1 A=$(date) true \"$(mktemp)\" 'a b' ''", {}, place.path());
  CHECK(names_of(allowed) == "allowed rule message begin end commands");
  CHECK(allowed["allowed"] == Json(true));
  for (const char* key : {"rule", "message", "begin", "end"}) CHECK(allowed[key].is_null());
  CHECK(!support::exists(place / "made"));
  std::vector<Json> found;
  for (const Json& command : allowed["commands"].items()) found.push_back(command);
  REQUIRE(found.size() == 4);
  CHECK(found[0] == parsed(R"({"words":["touch","made"],"begin":0,"end":10})"));
  CHECK(names_of(found[0]) == "words begin end");
  CHECK(found[1]["words"] == parsed(R"(["mktemp"])"));  // words are expanded first
  CHECK(found[2]["words"] == parsed(R"(["date"])"));
  CHECK(found[3]["words"] == parsed(R"(["true",null,"a b",""])"));
  CHECK(found[3]["assignments"] == parsed(R"(["X=1",null])"));
  CHECK(names_of(found[3]) == "words assignments begin end");

  const std::string script = "echo hello && sudo ls";
  const Json refused = judged(script);
  CHECK(names_of(refused) == names_of(allowed));
  CHECK(refused["allowed"] == Json(false));
  CHECK(refused["rule"] == Json("sudo"));
  CHECK(begins(refused["message"].as_string(),
               "Potentially dangerous command detected: Use of 'sudo' is not allowed"));
  CHECK(refused["begin"] == Json(14));
  CHECK(refused["end"].as_integer() > 14);
  CHECK(refused["end"].as_integer() <= 21);
  CHECK(refused["commands"].size() == 2);

  CHECK(judged("")["commands"] == Json::array());
  CHECK(judged("--help")["commands"][0]["words"][0] == Json("--help"));
  CHECK(run_program({"--check=sudo ls"}).exit_code == 1);
  CHECK(judged("echo 'unterminated")["allowed"] == Json(false));
}

TEST_CASE("--check says what --run would do, with everything that is configured") {
  const TempDir place;
  place.directory("ro");
  place.directory("sub");
  place.file("unread");
  const std::string config = place.file(
      "c.json", R"({"disable_rule":["dd"],"delete_guard":true,"blocked_commands":)"
                R"(["git push.*"],"allowed_commands":["[a-fh-z].*","git.*"],)"
                R"("read_only":[")" +
                    (place / "ro") + R"("],"sandbox":"off","workspace":")" + place.path() + "\"}");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"true", ""},
      {"dd --version", ""},
      {"sudo -n true", "sudo"},
      {"git push --dry-run --no-such-option", "blocked-commands"},
      {"Git status", "allowed-commands"},
      {"touch ro/x", "read-only"},
      {"cd ro; touch x", "read-only"},
      {"rm unread", "delete-guard"},
      {"rm missing", ""},
      {"chmod --reference=no no", "chmod"}};
  for (const auto& [script, rule] : cases) {
    const std::string command = script;
    CAPTURE(command);
    const Json object = judged(command, {"--config", config});
    CHECK(object["rule"].as_string() == rule);
    const ProcessResult r = run_program({"--config", config, "--run", command});
    CHECK(parsed(r.out)["rule"].as_string() == rule);
    if (rule != "") CHECK(ends(parsed(r.out)["stderr"].as_string(), object["message"].as_string()));
  }
  CHECK(judged("echo dd", {"--policy", "compat"})["rule"] == Json("dd"));
  CHECK(judged("echo dd", {"--policy", "strict"})["rule"].is_null());
  CHECK(judged("echo dd")["rule"].is_null());
  // The directory it would run in counts.
  CHECK(judged("rm -rf * --no-such-option", {"--workspace", "/"})["rule"] == Json("rm-protected"));
  CHECK(judged("rm -rf * --no-such-option", {"--workspace", place / "sub"})["rule"].is_null());
  CHECK(judged("true", {"--workspace", "/", "--allowed-paths", place.path(), "--sandbox",
                        "off"})["rule"] == Json("work_dir"));
  check_refused(run_program({"--disable-rule", "sodu", "--check", "true"}), "disable_rule");
}

TEST_CASE("--check - answers each line of the input at once") {
  Server::Options options;
  options.initialize = false;
  options.arguments = {"--check", "-", "--blocked-commands", "git push.*"};
  Server server(options);
  const auto rule_of = [&](const Json& command) {
    server.send(command.dump());
    return parsed(server.receive_line())["rule"];
  };
  CHECK(rule_of("echo x").is_null());
  CHECK(rule_of("git push origin") == Json("blocked-commands"));
  CHECK(rule_of("echo a\nsudo ls") == Json("sudo"));
  CHECK(rule_of(std::string("a\0b", 3)) == Json("nul-byte"));
  CHECK(rule_of("").is_null());
  CHECK(rule_of("\xC3\xA4").is_null());
  server.close_input();
  CHECK(server.receive_line() == "");
  CHECK(server.wait() == 1);
}

TEST_CASE("--check - : exit statuses, and lines that are no command") {
  const auto check = [](const std::string& input) {
    return run_program({"--check", "-"}, "/", {}, input);
  };
  CHECK(check("").exit_code == 0);
  CHECK(check("").out == "");
  CHECK(check("\"true\"\n\"ls\"\n").exit_code == 0);
  CHECK(check("\"true\"\r\n \"ls\" ").exit_code == 0);
  CHECK(lines_of(check("\"true\"\r\n \"ls\" ").out).size() == 2);
  CHECK(check("\"sudo ls\"\n\"ls\"\n").exit_code == 1);

  const ProcessResult mixed =
      check("\"true\"\n\nls\n{}\n\"\\ud800\"\n\"sudo ls\"\n\"a\" \"b\"\n[\"ls\"]\n7\n\xff\n\"ls");
  CHECK(mixed.exit_code == 2);
  CHECK(mixed.err == "");
  const Strings lines = lines_of(mixed.out);
  REQUIRE(lines.size() == 11);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(i);
    const Json answer = parsed(lines[i]);
    if (i == 0 || i == 5) {
      CHECK(answer["allowed"] == Json(i == 0));
      continue;
    }
    CHECK(names_of(answer) == "error");
    CHECK(begins(answer["error"].as_string(),
                 "line " + std::to_string(i + 1) + ": not a JSON string"));
  }
  CHECK(check("ls\n").exit_code == 2);
  CHECK(check("ls\n\"sudo ls\"\n").exit_code == 2);
  // No line costs more memory than a message may have bytes.
  const std::size_t most = std::size_t{16} << 20;
  const ProcessResult big = check("\"" + std::string(most - 2, ' ') + "\"\n\"" +
                                  std::string(most - 1, 'y') + "\"\n\"ls\"");
  CHECK(big.exit_code == 2);
  const Strings answers = lines_of(big.out);
  REQUIRE(answers.size() == 3);
  CHECK(parsed(answers[0])["allowed"] == Json(true));
  CHECK(parsed(answers[1])["error"] == Json("line 2: longer than 16777216 bytes"));
  CHECK(parsed(answers[2])["allowed"] == Json(true));
}

TEST_CASE("--list-rules prints what each rule refuses") {
  const ProcessResult r = run_program({"--list-rules", "--workspace", "/nonexistent"});
  CHECK(r.exit_code == 0);
  CHECK(r.err == "");
  const Strings lines = lines_of(r.out);
  std::size_t at = 0;
  for (const codeexec::RuleInfo& rule : codeexec::Policy::rules()) {
    const std::string start = std::string(rule.compat ? "* " : "  ") + rule.name + " ";
    while (at < lines.size() && !begins(lines[at], start)) ++at;
    REQUIRE_MESSAGE(at < lines.size(), rule.name);
    // The description, however it is broken into lines.
    std::string text = lines[at].substr(start.size());
    for (++at; at < lines.size() && begins(lines[at], "      "); ++at) text += " " + lines[at];
    std::string words;
    for (const char c : text)
      if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
    CHECK(words == rule.description);
    CHECK(!words.empty());
  }
  for (const std::string& line : lines) CHECK(line.size() <= 100);
}

TEST_CASE("to_json(Judgement): what is not UTF-8 or not known does no harm") {
  codeexec::Judgement judgement;
  judgement.verdict.allowed = false;
  judgement.verdict.rule = "x";
  judgement.verdict.begin = 3;
  codeexec::SimpleCommand command;
  command.words = {"a\xff", std::string("b\0", 2), ""};
  command.assignments = {"N=v w", std::string("M=\0", 3)};
  command.begin = 1;
  command.end = 9;
  judgement.commands.push_back(command);
  CHECK(to_json(judgement).dump() ==
        R"({"allowed":false,"rule":"x","message":"","begin":3,"end":0,"commands":[{"words":)"
        "[\"a\xEF\xBF\xBD\",null,\"\"],"
        R"("assignments":["N=v w",null],"begin":1,"end":9}]})");
}

TEST_CASE("the keys of a result: the reference's seven, then ours, then what applies") {
  CHECK(names_of(run_command("echo x")) == all_keys);
  CHECK(names_of(run_command("kill -9 $$")) == all_keys + " signal notes");
  CHECK(names_of(run_command("sudo ls")) == all_keys + " rule");
  CHECK(names_of(run_command("printf '\\377'; printf '\\377' >&2")) ==
        all_keys + " stdout_invalid_bytes stderr_invalid_bytes");
  const TempDir place;
  CHECK(names_of(run_command("seq 1 5000; seq 1 5000 >&2",
                             {"--max-output-size", "1024", "--spill-dir", place.path()})) ==
        all_keys + " stdout_file stderr_file");
  const Json r = run_command("printf ab; printf c >&2; exit 3", {}, place.path());
  CHECK(r["success"] == Json(false));
  CHECK(r["exit_code"] == Json(3));
  CHECK(r["stdout"] == Json("ab"));
  CHECK(r["stderr"] == Json("c"));
  CHECK(r["execution_time"].as_number() > 0);
  CHECK(r["execution_time"].as_number() < 60);
  CHECK(r["command"] == Json("printf ab; printf c >&2; exit 3"));
  CHECK(r["work_dir"] == Json(place.path()));
  CHECK(r["outcome"] == Json("exited"));
  CHECK(r["timed_out"] == Json(false));
  CHECK(r["stdout_bytes"] == Json(2));
  CHECK(r["stderr_bytes"] == Json(1));
  CHECK(r["stdout_truncated"] == Json(false));
  CHECK(r["stderr_truncated"] == Json(false));
}

TEST_CASE("exit codes are those of Python's subprocess") {
  CHECK(run_command("kill -9 $$")["exit_code"] == Json(-9));
  CHECK(run_command("sh -c 'kill -9 $$'; exit $?")["exit_code"] == Json(137));
  CHECK(run_command("nonexistent-program")["exit_code"] == Json(127));
  CHECK(run_command("/etc/group")["exit_code"] == Json(126));
  CHECK(run_command("exit 255")["exit_code"] == Json(255));
  CHECK(run_command("kill -TERM $$")["exit_code"] == Json(-15));
}

TEST_CASE("SIGTERM during --run kills the command, and the result is still printed") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server::Options options;
  options.initialize = false;
  options.arguments = {"--run", endless(fifo)};
  Server server(options);
  const pid_t pid = fifo.read_pid();
  server.signal(SIGTERM);
  server.signal(SIGTERM);  // an impatient client
  const Json r = parsed(server.receive_line());
  CHECK(r["outcome"] == Json("cancelled"));
  CHECK(r["stderr"] == Json("Command was cancelled"));
  CHECK(r["exit_code"] == Json(-1));
  CHECK(server.wait() == 1);
  CHECK(dies(pid));
}

// --verify-audit ----------------------------------------------------------------------------------

namespace {

ProcessResult verify(const std::string& file) { return run_program({"--verify-audit", file}); }

std::string with_lines(const Strings& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("--verify-audit names a line that is not as it was written") {
  const TempDir place;
  const std::string audit = place / "audit";
  for (const char* word : {"one", "two", "three", "four", "five"})
    run_program({"--audit-file", audit, "--run", std::string("echo ") + word});
  const std::string whole = support::read_file(audit);
  const Strings lines = lines_of(whole);
  REQUIRE(lines.size() == 5);
  const ProcessResult fine = verify(audit);
  CHECK(fine.exit_code == 0);
  CHECK(fine.err == "");
  CHECK(fine.out == audit + ": 5 records as they were written; the last hash is " +
                        parsed(lines[4])["hash"].as_string() + "\n");

  const auto check_broken = [&](const Strings& changed, std::size_t number, const char* what) {
    CAPTURE(number);
    const ProcessResult r = verify(place.file("changed", with_lines(changed)));
    CHECK(r.exit_code == 1);
    CHECK(begins(r.out, place / "changed" + ": line " + std::to_string(number) + " " + what));
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Strings changed = lines;
    const std::size_t at = changed[i].find("\"exit_code\":0");
    REQUIRE(at != std::string::npos);
    changed[i][at + 12] = '1';
    check_broken(changed, i + 1, "was changed after it had been written");
    changed = lines;
    changed[i].resize(changed[i].size() / 2);
    check_broken(changed, i + 1, "is cut, or is no record of this log");
    changed = lines;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i) + 1, "{}");
    check_broken(changed, i + 2, "is cut, or is no record of this log");
    if (i == 0 || i + 1 == lines.size()) continue;
    changed = lines;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    check_broken(changed, i + 1, "does not follow the line before it");
    changed = lines;
    std::swap(changed[i], changed[i + 1]);
    check_broken(changed, i + 1, "does not follow the line before it");
    changed = lines;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), lines[0]);
    check_broken(changed, i + 1, "does not follow the line before it");
  }
  const ProcessResult unfinished = verify(place.file("changed", whole.substr(0, whole.size() - 1)));
  CHECK(unfinished.exit_code == 1);
  CHECK(begins(unfinished.out, place / "changed" + ": line 5 is cut"));

  // A log that began before records had hashes.
  const ProcessResult older = verify(place.file("changed", "{\"time\":\"\"}\n" + whole));
  CHECK(older.exit_code == 0);
  CHECK(begins(older.out, place / "changed" + ": 5 records as they were written, after 1 lines"));
  // Of what stood before the first line only the hash is left, which a new file begins with, too.
  const std::string rest = lines[3] + "\n" + lines[4] + "\n";
  const ProcessResult later = verify(place.file("changed", rest));
  CHECK(later.exit_code == 0);
  CHECK(begins(later.out, place / "changed" + ": 2 records as they were written, the first after " +
                              "a record that is not here and has the hash " +
                              parsed(lines[2])["hash"].as_string() + "; the last hash is "));
  check_broken({"{\"time\":\"\"}", lines[3], lines[4]}, 2, "does not follow the line before it");
  CHECK(verify(place.file("changed", "")).exit_code == 0);
  check_refused(verify(place / "missing"), "codeexec-mcp: cannot open");
  check_refused(verify(place.path()), "codeexec-mcp: cannot read");
}

TEST_CASE("--verify-audit names all bad lines up to a bound, and sums them up") {
  const TempDir place;
  const std::string audit = place / "audit";
  for (int i = 0; i < 5; ++i) run_program({"--audit-file", audit, "--run", "true"});
  Strings lines = lines_of(support::read_file(audit));
  REQUIRE(lines.size() == 5);
  const std::string last = parsed(lines[4])["hash"].as_string();
  lines[1].replace(lines[1].find("true"), 4, "TRUE");
  lines.insert(lines.begin() + 3, "no record");
  lines.erase(lines.begin() + 4);
  const ProcessResult r = verify(place.file("changed", with_lines(lines)));
  const std::string name = place / "changed";
  CHECK(r.exit_code == 1);
  CHECK(r.out == name + ": line 2 was changed after it had been written\n" + name +
                     ": line 4 is cut, or is no record of this log\n" + name +
                     ": 2 bad lines, and 3 records as they were written; the last hash is " + last +
                     "\n");

  Strings many(1000, "{\"previous\":\"");
  many.insert(many.begin(), lines[0]);
  const ProcessResult bounded = verify(place.file("changed", with_lines(many)));
  CHECK(bounded.exit_code == 1);
  CHECK(lines_of(bounded.out).size() == 22);
  CHECK(support::has(bounded.out,
                     name + ": and 980 more lines\n" + name + ": 1000 bad lines, and 1 "));
}

TEST_CASE("two servers write one audit log, with the ids of what they were asked") {
  const TempDir place;
  const std::string audit = place / "audit";
  const Strings arguments = {"--audit-file", audit, "--workspace", place.path()};
  {
    Server one(arguments);
    Server two(arguments);
    for (int i = 0; i < 5; ++i) {
      one.use("execute_command", R"({"command":"echo one","session_id":"s1"})");
      two.use("execute_command", R"({"command":"echo two"})");
    }
    one.use("write_file", R"({"file_path":"a","content":"abc"})");
    const Json shell = two.use("start_background_shell", R"({"command":"cat; exit 3"})");
    const std::string id = shell["shell_id"].as_string();
    two.use("write_background_shell",
            Json::object({{"shell_id", id}, {"input", "abc"}, {"close_input", true}}));
    two.use("get_background_shell_output", Json::object({{"shell_id", id}, {"wait_for", "exit"}}));
    CHECK(one.finish().empty());
    CHECK(two.finish().empty());
    const Strings lines = lines_of(support::read_file(audit));
    REQUIRE(lines.size() == 13);
    CHECK(verify(audit).exit_code == 0);
    const Json command = parsed(lines[0]);
    CHECK(command["client"] == Json("test 1"));
    CHECK(command["session_id"] == Json("s1"));
    CHECK(!command["request"].as_string().empty());
    const Json file = parsed(lines[10]);
    CHECK(file["tool"] == Json("write_file"));
    CHECK(file["input_bytes"] == Json(3));
    const char* const sha256_of_abc =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    CHECK(file["input_sha256"] == Json(sha256_of_abc));
    const Json input = parsed(lines[11]);
    CHECK(input["tool"] == Json("write_background_shell"));
    CHECK(input["shell_id"] == Json(id));
    CHECK(input["input_sha256"] == Json(sha256_of_abc));
    const Json ended = parsed(lines[12]);
    CHECK(ended["tool"] == Json("start_background_shell"));
    CHECK(ended["shell_id"] == Json(id));
    CHECK(ended["exit_code"] == Json(3));
    CHECK(ended["stdout_sha256"] == Json(sha256_of_abc));
  }
}

TEST_CASE("--list-domains prints the sets of --allow-domains") {
  const ProcessResult r = run_program({"--list-domains"});
  CHECK(r.exit_code == 0);
  CHECK(r.out == codeexec::domain_sets());
  CHECK(support::has(r.out, "python pypi.org files.pythonhosted.org\n"));
}

TEST_CASE("--network allow goes through the proxy of the server's own variables") {
  if (!support::has_program("curl") ||
      !support::enforces(support::report_of({"--sandbox", "best-effort", "--network", "loopback"}),
                         "network"))
    return;
  const TempDir place;
  const auto tries = [&](const Strings& variables) {
    return run_program(
        {"--sandbox", "best-effort", "--network", "allow", "--allow-domains", "*.example.test",
         "--run", "curl -sS --noproxy '' http://a.example.test/; env"},
        place.path(), variables);
  };
  const ProcessResult used = tries({"HTTPS_PROXY=http://user:hunter2@127.0.0.1:1"});
  CHECK(support::has(used.out, "cannot be reached: the parent proxy: "));
  CHECK_FALSE(support::has(used.out + used.err, "hunter2"));
  CHECK_FALSE(
      support::has(tries({"https_proxy=http://127.0.0.1:1", "no_proxy=x, .example.test"}).out,
                   "the parent proxy"));
  const ProcessResult other = tries({"HTTPS_PROXY=socks5://127.0.0.1:1"});
  CHECK_FALSE(support::has(other.out, "the parent proxy"));
  CHECK(support::has(other.err, "HTTPS_PROXY is no http:// proxy"));
  check_refused(tries({"HTTPS_PROXY=http://user:hunter2@"}), "codeexec-mcp: parent_proxy: it must");
}

TEST_CASE("--list-rules refuses a rule that there is not") {
  const ProcessResult r = run_program({"--list-rules", "--disable-rule", "sodu"});
  check_refused(r, "codeexec-mcp: ");
  CHECK(support::has(r.err, "sodu"));
}
