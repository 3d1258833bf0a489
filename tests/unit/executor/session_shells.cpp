// Sessions that are shells: what bash and sh hold beside their folder and exported variables, what
// of it later commands have, and that these are judged with it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include "helpers.hpp"

using codeexec::Command;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using codeexec::Session;
using support::describe;
using support::has;
using support::make;
using support::noted;

namespace {

// Commands of one session in one shell.
struct Shell {
  const LocalExecutor& executor;
  std::string path = {};
  Session session = Session();

  Command command(const std::string& script) const {
    Command command = Command::shell(script);
    command.session = session;
    command.interpreter = path;
    return command;
  }
  Result run(const std::string& script) const { return executor.run(command(script)); }
  std::string rule(const std::string& script) const { return executor.check(command(script)).rule; }
  // Of a command that must have nothing to say of itself.
  std::string out(const std::string& script) const {
    const Result r = run(script);
    CHECK_MESSAGE(r.notes.empty(), describe(r));
    CHECK_MESSAGE(r.err.empty(), describe(r));
    return r.out;
  }
};

struct ShellPlace {
  support::TempDir directory = {};
  LocalOptions options = support::in(directory);
  std::string bash = {};
  ShellPlace() {
    options.timeout = support::safety;
    for (const char* path : {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"})
      if (bash.empty() && ::access(path, X_OK) == 0) bash = path;
    if (bash.empty()) MESSAGE("SKIPPED: no bash");
  }
  void judge_nothing() {
    for (const codeexec::RuleInfo& rule : codeexec::Policy::rules())
      options.policy.disabled_rules.push_back(rule.name);
  }
};

}  // namespace

TEST_CASE("bash: variables, arrays, functions, aliases and options stay") {
  const ShellPlace place;
  if (place.bash.empty()) return;
  const LocalExecutor executor = make(place.options);
  struct Case {
    const char* first;
    const char* next;
    const char* out;
  };
  const Case cases[] = {
      {"x=42; y='it'\\''s $x'; z=$'a\\n\\t\\001\\377'; e=",
       "printf '%s|' \"$x\" \"$y\" \"${e-unset}\"; printf %s \"$z\" | od -An -tx1",
       "42|it's $x|| 61 0a 09 01 ff\n"},
      {"export X=1; x=$X; export -n X", "echo $x; sh -c 'echo ${X-none}'; echo $X", "1\nnone\n1\n"},
      {"a=(1 'b c' \"\" $'d\\n'); a[9]=z; e=()", "declare -p a e",
       "declare -a a=([0]=\"1\" [1]=\"b c\" [2]=\"\" [3]=$'d\\n' [9]=\"z\")\ndeclare -a e=()\n"},
      {"declare -A m=([k]=v ['a]b']=w ['x y']=1 [@]=2)",
       "echo \"${m[k]} ${m['a]b']} ${m['x y']} ${#m[@]}\"", "v w 1 4\n"},
      {"declare -i n=5; declare -l low=AB; declare -r r=1; declare -n ref=n",
       "n=n+2; low=CD; ref=9; echo $n $low; (r=2) 2>/dev/null || echo $r", "9 cd\n1\n"},
      {"f() { echo \"f $1 $x\"; }; x=1", "f a", "f a 1\n"},
      {"f() { cat <<X\ng () \n{ \n    $x\n}\nX\n}; x=1; h() { echo h; }", "f; h",
       "g () \n{ \n    1\n}\nh\n"},
      {"my-f() { echo \"${1:-my}\"; }; function a.b { my-f x; }", "my-f; a.b", "my\nx\n"},
      {"f() { echo f; }; export -f f; g() { echo g; }", "bash -c 'f; type -t g || echo none'",
       "f\nnone\n"},
      {"alias ll='echo LL' g='echo G'", "ll a; g", "LL a\nG\n"},
      {"shopt -s nullglob extglob; set -o pipefail; set -u -C",
       "echo *.none; case ab in @(ab|c)) echo ext;; esac; false | true || echo pipe; "
       "echo ${nothing-u}; echo $-",
       "\next\npipe\nu\nhuBCc\n"},
      {"cd(){ builtin cd \"$@\" && echo moved; }; exit() { echo ex; }; [() { echo br; }",
       "cd /; [ x; exit 3", "moved\nbr\nex\n"},
      {"eval() { :; }; trap() { :; }; shift() { :; }; exec() { :; }; :() { echo no; }",
       "x=1; type -t eval shift", "function\nfunction\n"},
      // With a trap of its own the script ends first.
      {"x=1; trap 'x=2; echo bye' EXIT", "echo $x", "1\n"},
      {"x=1; (x=2; y=3); y=4 | y=5", "echo $x ${y-none}", "1 none\n"},
      {"x=1; exit 3", "echo $x", "1\n"},
      {"x=1; set -e; x=2; false; x=3", "echo $x; false; echo on", "2\non\n"},
      {"x=1; set -x -v 2>/dev/null; true", "echo $x", "1\n"},
      {"OPTIND=7; IFS=:; PS4=x; RANDOM=1; BASH_ENV=/x; PROMPT_COMMAND='echo no'",
       "echo $OPTIND; x='a:b'; echo $x", "1\na:b\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.first));
    const Shell shell{executor, place.bash};
    const Result first = shell.run(c.first);
    CHECK_MESSAGE(first.notes.empty(), describe(first));
    CHECK(shell.out(c.next) == c.out);
    // Also once more: nothing grows, or is lost, on the way.
    shell.out("true");
    CHECK(Shell{executor, place.bash}.run("echo ${x-none}; type f").out == "none\n");
  }
}

TEST_CASE("bash: what a command unsets is gone, what another one holds is not") {
  const ShellPlace place;
  if (place.bash.empty()) return;
  const LocalExecutor executor = make(place.options);
  const Shell shell{executor, place.bash};
  shell.out("x=1; a=(1); f() { :; }; alias g=echo; shopt -s nullglob; y=1; export E=1; e=1");
  shell.out("unset x a; unset -f f; unalias g; shopt -u nullglob; export e; unset E");
  CHECK(
      shell.out("echo ${x-none} ${a-none} $y ${E-none} $e; type -t f g; shopt nullglob || true") ==
      "none none 1 none 1\nnullglob       \toff\n");
  // Its own variables are stronger, for this command alone.
  Command own = shell.command("echo $y");
  own.environment = {{"y", "own"}};
  CHECK(executor.run(own).out == "own\n");
  CHECK(shell.out("echo $y; sh -c 'echo ${y-none}'") == "1\nnone\n");
  // Of two at the same time each tells what it has changed.
  Command waiting = shell.command("x=1; read line");
  waiting.keep_input_open = true;
  const codeexec::Execution slow = executor.start(waiting);
  shell.out("y=2");
  slow.close_input();
  CHECK(slow.wait().notes.empty());
  CHECK(shell.out("echo $x $y") == "1 2\n");
  shell.session.reset();
  CHECK(shell.out("echo ${x-none} ${y-none}") == "none none\n");
}

TEST_CASE("bash: a shell that does not come to its end changes nothing") {
  const ShellPlace place;
  if (place.bash.empty()) return;
  const LocalExecutor executor = make(place.options);
  for (const char* script :
       {"x=2; exec true", "x=2; kill -9 $$", "x=2; f() { exec sh -c :; }; f"}) {
    CAPTURE(std::string(script));
    const Shell shell{executor, place.bash};
    shell.out("x=1");
    CHECK(noted(shell.run(script), "the session keeps"));
    CHECK(shell.out("echo $x") == "1\n");
  }
  const Shell shell{executor, place.bash};
  shell.out("x=1");
  Command late = shell.command("x=2; sleep 600");
  late.timeout = std::chrono::milliseconds(300);
  CHECK(executor.run(late).outcome == Outcome::timed_out);
  CHECK(shell.out("echo $x") == "1\n");
}

TEST_CASE("sh: unexported variables, aliases and options stay") {
  const ShellPlace place;
  const LocalExecutor executor = make(place.options);
  std::vector<std::string> shells = {"/bin/sh"};
  for (const char* path : {"/bin/dash", "/usr/bin/dash"})
    if (shells.size() == 1 && ::access(path, X_OK) == 0) shells.push_back(path);
  for (const std::string& path : shells) {
    CAPTURE(path);
    const Shell shell{executor, path};
    shell.out("x=42; y='it'\\''s'; z='a\nb'; alias g='echo G'; set -u; E=1; export E; IFS=:");
    CHECK(shell.out("printf '%s|' \"$x\" \"$y\" \"$z\" \"$E\"\ng\necho ${n-u}; p='a b'; echo $p") ==
          "42|it's|a\nb|1|G\nu\na b\n");
    CHECK(has(shell.run("echo $nothing").err, "nothing"));
    shell.out("set +u; unset x; unalias g; export y");
    CHECK(shell.out("echo ${x-none}$nothing; sh -c 'echo $y'") == "none\nit's\n");
  }
}

TEST_CASE("what one shell holds another one never runs") {
  const ShellPlace place;
  if (place.bash.empty()) return;
  const LocalExecutor executor = make(place.options);
  Shell shell{executor, place.bash};
  shell.out("a=(1 2); x=1; f() { [[ a == a ]]; }; export E=1");
  shell.path = "/bin/sh";
  CHECK(shell.out("echo ${x-none} $E; x=2") == "none 1\n");
  shell.path = place.bash;
  CHECK(shell.out("echo $x ${a[1]}; f && echo f") == "1 2\nf\n");
}

// Hostile commands --------------------------------------------------------------------------------

TEST_CASE("bash: a command is judged with what its session holds") {
  ShellPlace place;
  if (place.bash.empty()) return;
  place.options.policy.blocked = {"touch made.*"};
  const LocalExecutor executor = make(place.options);
  struct Case {
    const char* first;
    const char* judged;
    const char* rule;  // empty: it may run
  };
  // No command of these does harm if it runs.
  const Case cases[] = {
      {"x=made", "touch $x", "blocked-commands"},
      {"t=touch", "$t made", "blocked-commands"},
      {"t=touch", "eval \"$t made\"", "blocked-commands"},
      {"a=(touch made)", "\"${a[@]}\"", "blocked-commands"},
      {"a=(x touch)", "${a[1]} made", "blocked-commands"},
      {"declare -A m=([t]=touch)", "${m[t]} made", "unknown-command"},
      {"declare -n r=t; t=touch", "$r made", "unknown-command"},
      {"f() { \"$@\"; }", "f touch made", "blocked-commands"},
      {"f() { touch \"$1\"; }", "f made", "blocked-commands"},
      {"f() { touch \"$1\"; }", "f other", ""},
      {"f() { touch $x; }", "x=made; f", "blocked-commands"},
      {"cd() { \"$@\"; }", "cd touch made", "blocked-commands"},
      {"exit() { touch \"$1\"; }", "exit made", "blocked-commands"},
      {"[() { touch \"$1\"; }", "[ made ]", "blocked-commands"},
      {"echo() { touch \"$1\"; }", "if true; then echo made; fi", "blocked-commands"},
      {"git() { touch \"$2\"; }", "(git push made)", "blocked-commands"},
      {"f() { touch \"$1\"; }; g() { f \"$1\"; }", "g made", "blocked-commands"},
      {"f() { touch \"$1\"; }", "trap 'f made' EXIT", "blocked-commands"},
      {"f() { touch \"$1\"; }", "x=$(f made)", "blocked-commands"},
      {"alias ls='touch'", "ls made", "blocked-commands"},
      {"alias ls='touch'", "ls other", ""},
      {"alias n='env ' t=touch", "n t made", "blocked-commands"},
      {"x=1; f() { :; }; alias g=echo; shopt -s nullglob", "g \"$x\"; f", ""},
      {"d=/", "rm -rf \"$d\"", "rm-protected"},
      {"f() { rm -rf \"$1\"/*; }", "f /", "rm-protected"},
      {"f() { rm -rf \"$nothing\"/*; }", "echo on", ""},
      {"e=", "rm -rf \"$e\"/*", "rm-protected"},
      {"e=sub", "rm -rf \"$e\"/*", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.first));
    CAPTURE(std::string(c.judged));
    const Shell shell{executor, place.bash};
    const Result first = shell.run(c.first);
    CHECK_MESSAGE(first.outcome == Outcome::exited, describe(first));
    CHECK(shell.rule(c.judged) == c.rule);
    CHECK(Shell{executor, place.bash}.rule("echo on") == "");
  }
  CHECK_FALSE(support::exists(place.directory / "made"));
}

// What the shell of a session does at its begin and its end is not judged, so nothing of the
// session may take part in it.
TEST_CASE("bash: what a session keeps runs in no place that is not judged") {
  ShellPlace place;
  if (place.bash.empty()) return;
  place.options.policy.blocked = {"touch made.*"};
  const LocalExecutor executor = make(place.options);
  using Scripts = std::vector<const char*>;
  // The last one of each is refused, or does nothing.
  const Scripts attacks[] = {
      {"declare() { $m; }; readonly m='touch made'", ":"},
      {"alias() { $m; }; m='touch made'", "builtin alias x=y", ":"},
      {"shopt() { $m; }; m='touch made'; command shopt -s extglob", ":"},
      {"set() { $m; }; m='touch made'; command set -o noclobber", ":"},
      {"export() { $m; }; m='touch made'; f() { :; }; command export -f f", ":"},
      {"f() { $m; }; m='touch made'; alias set=f; shopt -so pipefail", ":"},
      {"unset() { $m; }; m='touch made'"},
      {"command() { $m; }; m='touch made'"},
      {"alias e='x=1'", "e y=2 touch made"},
      {"alias e='x=1'", "e z[1]=3 touch made"},
      {"alias e='echo;'", "e touch made"},
      {"alias e='>/dev/null'", "e touch made"},
      {"alias n='!'", "n ! touch made"},
      {"alias n='! '", "n coproc touch made"},
      {"alias e='time'", "e touch made"},
      {"alias e='command'", "e touc[h] made"},
      {"shopt -s expand_aliases; alias n='!'\nn ! touch made"},
      {"shopt -s expand_aliases; alias '{'='touch made; {'"},
  };
  for (const Scripts& attack : attacks) {
    const Shell shell{executor, place.bash};
    for (const char* const script : attack) {
      CAPTURE(std::string(script));
      shell.run(script);
      CHECK_FALSE(support::exists(place.directory / "made"));
    }
  }
}

TEST_CASE("bash: a function that a later command could not define is not kept") {
  const ShellPlace place;
  if (place.bash.empty()) return;
  const LocalExecutor executor = make(place.options);
  const Shell shell{executor, place.bash};
  const Result r = shell.run("export x=sub; f() { rm -rf \"$x\"/*; }; g() { echo g; }; export x=/");
  CHECK_MESSAGE(r.succeeded(), describe(r));
  CHECK_MESSAGE(noted(r, "the session does not keep function f: "), describe(r));
  CHECK(shell.out("g; type -t f || echo none") == "g\nnone\n");
}

TEST_CASE("what a shell tells of itself may be forged: nothing of it is code but functions") {
  const codeexec::PolicyOptions options;
  const auto policy = codeexec::Policy::create(options);
  REQUIRE(policy);
  struct Case {
    std::vector<std::string> told;
    const char* texts;     // as one script; null: none of it is read
    const char* left_out;  // the first
  };
  const Case cases[] = {
      {{"", "", "", ""}, "", ""},
      {{"shopt -s extglob\nshopt -u nullglob\nset -o pipefail\nset +o errexit\n", "", "", ""},
       "shopt -s extglob\nset -o pipefail\n",
       ""},
      {{"set -o errexit\nset -o xtrace\nset -o noexec\nset -o posix\nshopt -s autocd\nset -o "
        "nounset;id\nshopt -s `id`\nid\n",
        "", "", ""},
       "",
       ""},
      {{"", "alias ll='ls -l'\n", "", ""}, "alias ll='ls -l'\nshopt -s expand_aliases\n", ""},
      {{"", "alias q='echo \"'\n", "", ""}, "", "alias q"},
      {{"", "alias q='$(id)'\nalias 'a;b=x'\nalias -- -x='y'\n", "", ""}, "", "alias q"},
      {{"", "alias ll='ls'; id\n", "", ""}, nullptr, ""},
      {{"", "id\n", "", ""}, nullptr, ""},
      {{"", "", "declare -- x=\"it's \\$(id)\"\ndeclare -x E=\"1\"\ndeclare -- none\n", ""},
       "x='it'\\''s $(id)'\n",
       ""},
      {{"", "", "declare -- x=$(id)\n", ""}, nullptr, ""},
      {{"", "", "declare -- x=\"1\"; id\n", ""}, nullptr, ""},
      {{"", "", "declare -x X=`id`\n", ""}, nullptr, ""},
      {{"", "", "id\n", ""}, nullptr, ""},
      {{"", "", "declare -i n=\"a[\\$(id)]\"\n", ""}, "", "variable n"},
      {{"", "", "declare -ai n=([0]=\"1\" [1]=\"a[\\$(id)]\")\n", ""}, "", "variable n"},
      {{"", "", "declare -n n=\"a[\\$(id)]\"\n", ""}, "", "variable n"},
      {{"", "", "declare -a n=([\\$(id)]=\"1\")\n", ""}, "", "variable n"},
      {{"", "", "declare -a n=([\"\\$(id)\"]=\"1\")\n", ""}, "", "variable n"},
      {{"", "", "declare -- a;id=\"1\"\n", ""}, nullptr, ""},
      {{"", "", "declare -aZ n=([0]=\"1\")\n", ""}, "", "variable n"},
      {{"", "", "declare -A n=([\"\\$(id)\"]=\"1\" )\ndeclare -ir m=\"-3\"\n", ""},
       "declare -ir m='-3'\ndeclare -A n=(['$(id)']='1' )\n",
       ""},
      {{"", "", "declare -a n=([0]=\"1\" [3]=\"[x]=y\")\n", ""}, "n=('1' [3]='[x]=y' )\n", ""},
      {{"", "", "", "f () \n{ \n    id\n}\ndeclare -fx f\n"},
       "f () \n{ \n    id\n}\nexport -f f\n",
       ""},
      {{"", "", "", "f () \n{ \n    id\n}; id\n"}, "", "function f"},
      {{"", "", "", "id\nf () \n{ \n    id\n}\n"}, "f () \n{ \n    id\n}\n", ""},
      {{"", "", "", "f () \n{ \n    id\n}; id\ng () \n{ \n    id\n}\n"},
       "g () \n{ \n    id\n}\n",
       "function f"},
      {{"", "", "", "command () \n{ \n    id\n}\n"}, "", "function command"},
      {{"", "", "", "f () \n{ \n    id\n"}, "", "function f"},
      {{"", "", ""}, nullptr, ""},
      {{}, nullptr, ""},
  };
  for (const Case& c : cases) {
    for (const std::string& text : c.told) CAPTURE(text);
    std::vector<std::string> left_out;
    const auto held = policy->held_by_shell(c.told, true, left_out);
    REQUIRE(held.has_value() == (c.texts != nullptr));
    std::string texts;
    if (held)
      for (const auto& each : *held) texts += each.second;
    if (c.texts) CHECK(texts == c.texts);
    CHECK((left_out.empty() ? std::string() : left_out[0]) == c.left_out);
  }
}

TEST_CASE("bash: keys and values are texts, whatever is in them") {
  ShellPlace place;
  if (place.bash.empty()) return;
  place.judge_nothing();
  const LocalExecutor executor = make(place.options);
  const Shell shell{executor, place.bash};
  shell.out(
      "k='$(touch made)'; declare -A m; m[$k]=$k; v=\"it's \\`touch made\\` \\\\ $k\"; "
      "m['a\"]=b']=1; "
      "a=(\"$k\" '*' '~' '[x]=y'); s='-n'; m[' ']=$'\\n'; m[\\']=q");
  const std::string show =
      "printf '%s|' \"$v\" \"${a[@]}\" \"$s\" \"${m[' ']}\" ${#m[@]}; for k in \"${!m[@]}\"; do "
      "printf '%s\\n' \"$k\"; done | LC_ALL=C sort";
  const std::string first = shell.out(show);
  CHECK(has(first, "it's `touch made` \\ $(touch made)|$(touch made)|*|~|[x]=y|-n|\n|4"));
  CHECK(has(first, "a\"]=b\n"));
  CHECK(shell.out(show) == first);
  CHECK_FALSE(support::exists(place.directory / "made"));
}

TEST_CASE("bash: what a session holds is bounded") {
  ShellPlace place;
  if (place.bash.empty()) return;
  place.judge_nothing();
  place.directory.directory("sub");
  const LocalExecutor executor = make(place.options);
  const char* const scripts[] = {
      "cd sub; export E=1; printf -v x '%*s' 1048576 y",
      "cd sub; export E=1; printf -v x '%*s' 240000 y; x=${x// /\\'}",
      "cd sub; export E=1; for ((i = 0; i < 2000; ++i)); do printf -v \"v$i\" '%s' x; done",
  };
  for (const char* script : scripts) {
    CAPTURE(std::string(script));
    const Shell shell{executor, place.bash};
    shell.out("y=1");
    const Result r = shell.run(script);
    CHECK_MESSAGE(noted(r, "the session keeps its functions and unexported variables as they"),
                  describe(r));
    CHECK(noted(r, "256 KiB"));
    CHECK(shell.session.work_dir() == place.directory / "sub");
    CHECK(shell.out("echo $y ${x-none} $E") == "1 none 1\n");
  }
  // As much as one argument cannot take.
  const Shell shell{executor, place.bash};
  shell.out("printf -v x '%*s' 200000 y; f() { echo ${#x}; }");
  CHECK(shell.out("f; echo ${#x}") == "200000\n200000\n");
}

TEST_CASE("without a policy a session has its folder and exported variables") {
  const ShellPlace place;
  if (place.bash.empty()) return;
  codeexec::ExecutorWings wings;
  LocalOptions options = place.options;
  options.watch_files = false;
  const auto executor = LocalExecutor::create(options, wings);
  REQUIRE_MESSAGE(executor, executor.error().message);
  const Shell shell{*executor, place.bash};
  CHECK(shell.out("cd /; x=1; export E=1; f() { :; }") == "");
  CHECK(shell.out("pwd; echo ${x-none} $E; type -t f || echo none") == "/\nnone 1\nnone\n");
}
