# A header of some sections (python3 src/join.py --only ...) is a whole one: it compiles without
# warnings in both halves, a program works with nothing else, and its manual lists what is in it.
# src/join.py --check notices a header that is not what src/ makes, and parts that are out of place.
. "$(dirname "$0")/lib.sh"

command -v python3 > "$OUT/which" || {
  skip "python3 is not installed"
  exit 77
}
[ -f "$ROOT/src/join.py" ] || {
  skip "there is no src/"
  exit 77
}
join() { python3 -B "$ROOT/src/join.py" "$@"; }

# a section and what it needs ---------------------------------------------------------------------

# A row may go on in the next line, below its first need.
awk '/^\/\/ {23}[^ ]/ { row = row " " substr($0, 26); next }
  { if (NR > 1) print row; row = $0 }
  END { print row }' "$ROOT/src/frame.hpp" > "$OUT/frame"
awk 'match($0, /^\/\/   [a-z]+ +needs: /) {
  name = $2
  text = substr($0, RLENGTH + 1)
  sub(/  .*/, "", text)
  gsub(/[()]/, "", text)  # these it needs for their declarations
  print name, text == "-" ? "" : text
}' "$OUT/frame" > "$OUT/needs"
every=$(cut -d ' ' -f 1 "$OUT/needs")
# The section and all that it needs, directly or not, in the order of the table, from below upwards.
closure() {
  awk -v section="$1" '
    { name[NR] = $1; needs[NR] = $0 }
    END {
      keep[section] = 1
      for (i = NR; i > 0; --i) {
        if (!(name[i] in keep)) continue
        count = split(needs[i], list, " ")
        for (j = 2; j <= count; ++j) keep[list[j]] = 1
      }
      for (i = 1; i <= NR; ++i) if (name[i] in keep) print name[i]
    }' "$OUT/needs"
}

# programs ----------------------------------------------------------------------------------------

for section in process executor mcp policy; do
  mkdir -p "$OUT/$section"
  printf '#define CODEEXEC_IMPLEMENTATION\n#include "codeexec.hpp"\n\n#include <cstdio>\n\n' \
    > "$OUT/$section/program.cpp"
done
cat >> "$OUT/process/program.cpp" << 'CPP'
int main() {
  codeexec::ProcessOptions options;
  options.argv = {"sh", "-c", "cat; echo oops >&2; exit 3"};
  options.input = "hello\n";
  const codeexec::ProcessResult result = codeexec::run_process(options);
  std::printf("%s %d %s%s", codeexec::name(result.outcome), result.exit_code, result.out.c_str(),
              result.err.c_str());
}
CPP
printf 'exited 3 hello\noops\n' > "$OUT/process/wanted"
cat >> "$OUT/executor/program.cpp" << 'CPP'
class NoPush final : public codeexec::Guard {
 public:
  codeexec::Judgement judge(std::string_view script, std::string_view, bool) const override {
    codeexec::Judgement judgement;
    judgement.verdict.allowed = script.find("git push") == script.npos;
    if (!judgement.verdict) judgement.verdict.rule = "no-push";
    return judgement;
  }
  bool can_read(std::string_view, std::string_view) const override { return true; }
};

int main() {
  codeexec::ExecutorWings wings;
  wings.own_guard = std::make_shared<const NoPush>();
  const auto here = codeexec::LocalExecutor::create({}, wings);
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  for (const char* script : {"echo hello", "cd / && git push"}) {
    const codeexec::Result result = here->run(script);
    std::printf("%s %s %s\n", codeexec::name(result.outcome), result.rule.c_str(),
                result.out.c_str());
  }
}
CPP
printf 'exited  hello\n\nrefused no-push \n' > "$OUT/executor/wanted"
cat >> "$OUT/mcp/program.cpp" << 'CPP'
namespace mcp = codeexec::mcp;

mcp::ToolResult shout(const mcp::Call& call) {
  const std::string text(call.argument("text").as_string());
  return mcp::ToolResult::with_structured(codeexec::Json::object({{"loud", text + "!"}}));
}

int main() {
  mcp::ServerOptions options;
  options.name = "only-mcp";
  mcp::Server server(options);
  mcp::Parameter text;
  text.name = "text";
  text.description = "What is said.";
  text.required = true;
  mcp::Tool tool;
  tool.name = "shout";
  tool.description = "Says it aloud.";
  tool.parameters = {text};
  tool.handler = shout;
  if (!server.add(tool)) return 2;
  return server.serve() ? 0 : 1;
}
CPP
client='{"name":"x","version":"1"}'
start="{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":$client}"
call='{"name":"shout","arguments":{"text":"hello"}}'
cat > "$OUT/mcp/input" << JSON
{"jsonrpc":"2.0","id":1,"method":"initialize","params":$start}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":$call}
JSON
printf '"id":1 "name":"only-mcp"\n"id":2 "loud":"hello!"\n' > "$OUT/mcp/wanted"
cat >> "$OUT/policy/program.cpp" << 'CPP'
int main() {
  const auto policy = codeexec::Policy::create({});
  if (!policy) return std::fprintf(stderr, "%s\n", policy.error().message.c_str()), 2;
  for (const char* script : {"ls | sort", "cd /tmp; sudo ls"}) {
    const codeexec::Verdict verdict = policy->judge(script).verdict;
    std::printf("%s %s\n", verdict ? "allowed" : "refused", verdict.rule.c_str());
  }
}
CPP
printf 'allowed \nrefused sudo\n' > "$OUT/policy/wanted"

# What is not in it, by a name of its declarations.
foreign() {
  case $1 in
    process) echo codeexec::mcp::Server ;;
    executor) echo codeexec::Jobs ;;
    mcp) echo codeexec::ProcessOptions ;;
    policy) echo codeexec::LocalExecutor ;;
  esac
}
# Of the replies of the server what is compared.
told() {
  case $1 in
    mcp) sed -nE 's/.*("id":[0-9]+).*("name":"only-mcp"|"loud":"[^"]*").*/\1 \2/p' ;;
    *) cat ;;
  esac
}

for section in process executor mcp policy; do
  of="--only $section"
  header=$OUT/$section/codeexec.hpp
  expect "$of: is made" sh -c 'python3 -B "$1/src/join.py" --only "$2" > "$3"' sh \
    "$ROOT" "$section" "$header"
  closure "$section" > "$OUT/wanted_sections"
  sed -n 's|^//   \([a-z]*\)  *needs: .*|\1|p' "$header" > "$OUT/table"
  expect "$of: the manual lists what it needs ($(echo $(cat "$OUT/wanted_sections")))" \
    diff "$OUT/wanted_sections" "$OUT/table"
  sed -n 's|^// \([a-z]*\)/[a-z0-9_]*\.[ch]pp --*$|\1|p' "$header" | sort -u > "$OUT/held"
  sort "$OUT/wanted_sections" > "$OUT/wanted_held"
  expect "$of: has the parts of these sections, and no others" \
    diff "$OUT/wanted_held" "$OUT/held"
  expect "$of: the top names the command" sh -c 'head -n 3 "$1" | grep -qF "$2"' sh "$header" \
    "\`python3 src/join.py $of\`"

  echo '#include "codeexec.hpp"' > "$OUT/$section/declarations.cpp"
  expect "$of: the declarations compile" "$CXX" -std=c++17 -O0 $WARNINGS -I"$OUT/$section" \
    -c "$OUT/$section/declarations.cpp" -o "$OUT/$section/declarations.o"
  printf '#include "codeexec.hpp"\nusing Other = %s;\n' "$(foreign "$section")" \
    > "$OUT/foreign.cpp"
  expect "$of: $(foreign "$section") is declared by the whole header" \
    "$CXX" -std=c++17 -fsyntax-only $INCLUDE "$OUT/foreign.cpp"
  if "$CXX" -std=c++17 -fsyntax-only -I"$OUT/$section" "$OUT/foreign.cpp" \
    > "$OUT/foreign.log" 2>&1; then
    fail "$of: has $(foreign "$section")"
  else
    ok "$of: has no $(foreign "$section")"
  fi

  program=$OUT/$section/program
  rm -f "$program"
  expect "$of: the implementation compiles" "$CXX" -std=c++17 -O0 $WARNINGS -I"$OUT/$section" \
    "$program.cpp" -o "$program" -pthread
  [ -f "$OUT/$section/input" ] || : > "$OUT/$section/input"
  code=0
  "$program" < "$OUT/$section/input" > "$OUT/$section/printed" 2>&1 || code=$?
  told "$section" < "$OUT/$section/printed" > "$OUT/$section/told"
  if [ $code = 0 ]; then
    expect "$of: the program works" diff "$OUT/$section/wanted" "$OUT/$section/told"
  else
    fail "$of: the program ended with status $code: $(cat "$OUT/$section/printed")"
  fi
done

expect "each is as small as tests/bench/sections.sh says" env OUT="$OUT/sections" \
  sh "$here/../bench/sections.sh" --gates

# what is wrong -----------------------------------------------------------------------------------

# refused WHAT WORDS COMMAND...: ends with status 1, prints nothing, and one line with the words on
# stderr.
refused() {
  what=$1
  words=$2
  shift 2
  code=0
  "$@" > "$OUT/printed" 2> "$OUT/told" || code=$?
  if [ $code = 1 ] && [ ! -s "$OUT/printed" ] && [ "$(wc -l < "$OUT/told")" -eq 1 ] &&
    grep -qF -e "$words" "$OUT/told"; then
    ok "$what: $(cat "$OUT/told")"
  else
    fail "$what: status $code, it says: $(head -n 5 "$OUT/told"), and not: $words"
  fi
}
refused "--only nosuch lists the sections" "'nosuch'; the sections are: $(echo $every)" \
  join --only nosuch
refused "--only mcp nosuch prints nothing" "'nosuch'" join --only mcp nosuch

# A copy to break, which is mended by `copy` again.
copy() {
  rm -rf "$OUT/copy"
  mkdir "$OUT/copy"
  cp -R "$ROOT/src" "$HEADER" "$OUT/copy/"
}
check() { python3 -B "$OUT/copy/src/join.py" --check; }
copy
expect "--check: codeexec.hpp is what src/ makes" check
echo >> "$OUT/copy/codeexec.hpp"
refused "--check notices a changed header" "codeexec.hpp is not what src/ makes" check
copy
echo '// More.' >> "$OUT/copy/src/base/glob.cpp"
refused "--check notices a changed part" "codeexec.hpp is not what src/ makes" check
copy
echo '#pragma once' > "$OUT/copy/src/base/stray.hpp"
refused "--check notices a part that is not listed" "src/base/stray.hpp" check
# The header is joined before, where that is possible: it is not the text that is wrong.
for pair in base/text.cpp:json/json.hpp mcp/ids.cpp:regex/regex.hpp; do
  copy
  part=${pair%:*}
  other=${pair#*:}
  awk -v other="$other" '/^#include "/ && !done { print "#include \"" other "\""; done = 1 }
    { print }' "$ROOT/src/$part" > "$OUT/copy/src/$part"
  python3 -B "$OUT/copy/src/join.py" > "$OUT/join.log" 2>&1 || true
  refused "--check notices an include of a section that is not needed" \
    "src/$part includes $other, but ${part%/*} does not need ${other%/*}" check
done
copy
expect "--check: the copy that is not broken is good" check
finish
