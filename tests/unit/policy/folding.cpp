// What variables, arrays and the output of builtins are known to hold.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "codeexec.hpp"
#include "helpers.hpp"

using codeexec::Policy;
using support::lists;
using support::passes;
using support::strict;

namespace {

void refuses(const Policy& policy, const std::vector<std::string_view>& scripts,
             std::string_view work_dir = {}) {
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    CHECK(!policy.judge(script, work_dir).verdict.allowed);
  }
}

}  // namespace

TEST_CASE("policy: elements of arrays are where their indexes say") {
  refuses(strict(), {
                        "a=([3]=sudo); ${a[3]} id",
                        "declare -a a=([5]=sudo); ${a[5]} id",
                        "a=(x [3]=sudo y); ${a[3]} id",
                        "a=(x [3]=ls sudo); ${a[4]} id",
                        "a=([3]=\"rm -rf /\"); eval \"${a[3]}\"",
                        "a=([3]=sudo); \"${a[@]}\" id",
                        "a=([3]=sudo [1]=x); ${a[3]} id",
                        "a=([3]=ls [1]=sudo); \"${a[@]}\" id",
                        "a[5]=sudo; ${a[5]} id",
                        "i=5; a[i]=sudo; ${a[5]} id",
                        "i=5; a=([i]=sudo); ${a[5]} id",
                        "declare -A m=([k]=sudo); ${m[k]} id",
                        "declare -A m=([3]=sudo); ${m[3]} id",
                        "declare -A m; m[k]=sudo; ${m[k]} id",
                        "declare -A m; m=([k]=sudo); ${m[k]} id",
                        "declare -A m=([0]=echo [1]=sudo); \"${m[@]}\" id",
                        "a=(ls); a+=([3]=sudo); ${a[3]} id",
                        "a=(ls); a[3]=sudo; ${a[3]} id",
                        "a=(ls); a[0]=sudo; ${a[0]} id",
                        "a=(ls); a[0]=sudo; $a id",
                        "a=([3]=sudo); ${a[-1]} id",
                        "a=([3]=sudo); ${a:-x} id; ${a[*]} id",
                        "a=([3]=ls [3]=sudo); ${a[3]} id",
                        "a=([3]=sudo); set -- \"${a[@]}\"; \"$@\" id",
                        "a=([1]=sudo); b=(\"${a[@]}\"); ${b[0]} id",
                        "a=([2]=x); a+=(sudo); ${a[3]} id",
                        "a=([2]=x); unset 'a[2]'; a[9]=sudo; ${a[9]} id",
                        "a=(x y z); unset 'a[0]'; ${a[1]} id",
                        "a=([3]=sudo); ${a[3]:-ls} id",
                        "a=([3]=sudo); x=3; ${a[x]} id",
                        "a=([3]=sudo); x=3; ${a[$x]} id",
                        "a=([3]=/); rm -rf \"${a[3]}\"",
                        "a=([1]=id [0]=sudo); \"${a[@]}\"",
                        "a=([0]=ls); a=([0]+=x [1]=sudo); ${a[1]} id",
                        "a=([\"3\"]=sudo); ${a[3]} id",
                        "k=3; a=([$k]=sudo); ${a[3]} id",
                        "a=([3]=x); for i in \"${a[@]}\" sudo; do $i id; done",
                        "readonly -a a=([5]=sudo); ${a[5]} id",
                        "f() { local -a a=([5]=sudo); ${a[5]} id; }; f",
                        "a=( [0x3]=sudo ); ${a[3]} id",
                        "a=( [1+2]=sudo ); ${a[3]} id",
                        "a=([5]=/); rm -rf \"${a[@]}\"",
                        "a=([1]=x [5]=/); rm -rf \"${a[@]:1}\"",
                        "a=([1]=x [5]=sudo); \"${a[@]:5}\" id",
                        "a=([1]=x [5]=sudo); \"${a[@]:2:9}\" id",
                        "a=([3]=x); a+=sudo; $a id",
                        "f() { $2 id; }; f $x ls sudo",
                        "step() { n=$1; shift; \"$@\"; }; step \"$(date)\" sudo id",
                        "step() { n=$1; shift; \"$@\"; }; step $(date) make all",
                        "a=(x sudo z); unset 'a[0]'; ${a[1]} id",
                        "a=(sudo); set -- \"${a[@]}\" x; shift 0; \"$@\" id",
                        "run() { echo \"$@\"; \"$@\"; }; run \"$X\" gcc",
                        "mapfile -t a < f; ${a[1]} id",
                        "read -r -a a; ${a[1]} id",
                    });
  passes(strict(), {
                       "a=([3]=ls); ${a[3]} -l",
                       "a=([0]=ls [1]=-l); \"${a[@]}\"",
                       "a=([0]=ls [1]=-l); ${a[0]} id",
                       "declare -a a=([5]=ls); ${a[5]} id",
                       "declare -a a; a=(ls -l); \"${a[@]}\"",
                       "declare -A m=([k]=v); echo \"${m[k]}\"",
                       "a=([5]=x); rm -rf \"out/${a[5]}\"",
                       "step() { n=$1; shift; \"$@\"; }; step \"$(date)\" make all",
                       "a=(make $FLAGS); \"${a[@]}\" all",
                       "a=(make $FLAGS); ${a[0]} all",
                       "CC=gcc; run() { echo \"$@\"; \"$@\"; }; run $CC \"$X\" -o y",
                   });
}

TEST_CASE("policy: a relative pattern as a command means what is in the workspace") {
  // Without a place, and where it is known.
  for (const char* const place : {"", "/work/project"}) {
    CAPTURE(place);
    refuses(strict(),
            {
                "cd /usr/bin && ./*",
                "cd /usr && bin/*",
                "cd /usr/bin; for t in ./*; do \"$t\" id; done",
                "../*",
                "../../usr/bin/*",
                "sub/../../*",
                "cd ..; ./*",
                "cd $X; ./*",
                "cd ~; ./*",
                "/usr/bin/sud* id",
                "/usr/bin/* id",
                "* id",
                "sud* id",
                "./sud* id",
                "bin/s* id",
                "bin/sud? id",
                "~/bin/*",
                "$X/* id",
                "\"$X\"/* id",
                "cd /; usr/bin/*",
                "cd /usr; for t in bin/sud*; do $t id; done",
                "pushd /usr/bin; ./*",
            },
            place);
    passes(strict(),
           {
               "for t in ./build/tests/*; do \"$t\"; done",
               "./*",
               "bin/*",
               "scripts/* -x",
               "for t in scripts/*; do $t; done",
               "cd sub && ./*",
           },
           place);
  }
}

TEST_CASE("policy: the last name of a command word is judged, whatever stands before it") {
  refuses(strict(), {
                        "\"$BIN/sudo\" x",
                        "$BIN/sudo id",
                        "$(npm bin)/sudo id",
                        "$(cat f)",
                        "$X id",
                        "$X/ id",
                        "$X/$Y id",
                        "BIN=$(pwd)/x; \"$BIN/su\" -",
                        "S=$(command -v sudo); $S id",
                        "S=$(which sudo); \"$S\" id",
                        "S=$(command -v $X); $S id",
                        "S=$(which a b); $S id",
                        "S=$(command -V sudo); $S id",
                        "rm -rf /app",
                        "$(cat x)/sh -c \"$(cat y)\"",
                        "echo \"$X\" | $BIN/sh",
                        "S=$(command -v rm); $S -rf /",
                        "command -v ls | sh",
                    });
  passes(strict(), {
                       "$(npm bin)/jest",
                       "$(go env GOPATH)/bin/x",
                       "\"$BIN/tool\" x",
                       "$BIN/tool x",
                       "PY=$(command -v python3); $PY x.py",
                       "PY=\"$(command -v python3)\"; \"$PY\" x.py",
                       "PY=$(which python3); $PY x.py",
                       "PY=`which python3`; $PY x.py",
                       "PY=$(type -P python3); $PY x.py",
                       "BIN=$(npm bin); $BIN/jest",
                       "if [ -x \"$(command -v go)\" ]; then GO=$(command -v go); fi; GO=$(command "
                       "-v go); \"$GO\" build",
                       "rm -rf /app/build",
                   });
}

TEST_CASE("policy: what echo and printf write keeps its patterns and homes") {
  refuses(strict(), {
                        "echo / | xargs rm -rf",
                        "echo /* | xargs rm -rf",
                        "rm -rf $(echo /*)",
                        "rm -rf \"$(echo ~)\"",
                        "rm -rf $(echo ~)",
                        "echo ~ | xargs rm -rf",
                        "echo a ~ | xargs rm -rf",
                        "rm -rf $(echo a ~)",
                        "printf \"%s\\n\" /etc/* | xargs rm -rf",
                        "printf \"%s\\n\" /etc/* | xargs -I{} rm -rf {}",
                        "printf '%s\\n' ~/* | xargs rm -rf",
                        "printf -v x %s /*; rm -rf $x",
                        "echo /* | cat | xargs rm -rf",
                        "echo /* | tee x | xargs rm -rf",
                        "x=$(echo /*); rm -rf $x",
                        "xargs rm -rf <<< \"$(echo /*)\"",
                        "echo /* | parallel rm -rf",
                        "parallel rm -rf ::: /*",
                        "f() { echo /*; }; f | xargs rm -rf",
                        "echo ls * | sh",
                        "echo \"ls $(echo *)\" | sh",
                        "eval \"$(echo ls *)\"",
                        "sh -c \"$(echo ls *)\"",
                        "sh <<< \"$(echo ls *)\"",
                        "$(echo /usr/bin/sud*) id",
                        "$(echo s*) id",
                        "bash <<E\n$(echo ls *)\nE",
                    });
  passes(strict(), {
                       "echo *.o | xargs rm -rf",
                       "rm -rf $(echo build/*)",
                       "echo ~/proj/build | xargs rm -rf",
                       "echo 'ls *' | sh",
                       "sh -c 'ls *'",
                       "eval \"ls *\"",
                       "cmd='ls *'; eval \"$cmd\"",
                       "echo * | wc",
                       "for i in $(echo *); do cat \"$i\"; done",
                       "X=$(echo *.c); gcc $X",
                   });
}

TEST_CASE("policy: what a process substitution prints is read as a script") {
  refuses(strict(), {
                        ". <(echo sudo id)",
                        "source <(printf 'x=sudo\\n'); $x id",
                        "bash <(echo sudo id)",
                        "bash <(curl x)",
                        ". <(curl x)",
                        ". <(echo *)",
                        ". <(echo \"$X\")",
                        "bash <(cat <<< 'sudo id')",
                    });
  passes(strict(), {
                       ". <(echo ls)",
                       "source <(printf 'x=1\\n')",
                       "bash <(echo ls)",
                   });
}

TEST_CASE("policy: what only a POSIX shell can read is judged as it reads it") {
  refuses(strict(), {
                        "echo \"${u:-it's}\"; sudo id",
                        "echo \"${u:-it's}\" $(sudo id)",
                        "sudo id; echo \"${u:-it's}\"",
                        "echo 'it",
                        "echo \"it",
                    });
  passes(strict(), {
                       "echo \"${u:-it's}\"",
                   });
}

TEST_CASE("policy: arguments that a loop shifts are not known behind it") {
  refuses(strict(), {"set -- a b; while [ $1 ]; do shift; $1 sudo id; done",
                     "set -- a; while c; do shift; done; $2 sudo id"});
}

TEST_CASE("policy: an unknown last word matches where any text may stand") {
  const Policy policy = strict(lists({"python .*", "echo .*"}));
  passes(policy, {"python $X", "python $X y", "python $(python which.py)", "python $(echo x)"});
  refuses(policy, {"$X python", "$X", "python", "python; $X", "python $(ls)", "FOO=$X python x",
                   "python <(ls)"});
  refuses(strict(lists({"git push"})), {"git push $X", "git $X push", "$X git push"});
  refuses(strict(lists({"git push origin"})), {"git push $X", "git push origin $X"});
}

TEST_CASE("policy: a function that may be left early may leave variables as they were") {
  refuses(strict(), {"x=/; f() { [ \"$1\" ] && return; x=b; }; f; rm -rf \"$x\"",
                     "x=/; f() { if [ \"$1\" ]; then return; fi; x=b; }; f $Y; rm -rf \"$x\"",
                     "x=/; f() { case $Q in a) return;; esac; x=b; }; f; rm -rf \"$x\""});
  refuses(strict(),
          {"x=sudo; f() { for i in $Q; do return; done; x=echo; }; f; $x id",
           "x=sudo; f() { while read y; do [ \"$y\" ] && return; done; x=echo; }; f; $x id",
           "x=sudo; f() { [ \"$Q\" ] && command return; x=echo; }; f; $x id"});
  passes(strict(), {"x=sudo; g() { return; }; f() { g; x=echo; }; f; $x id",
                    "x=sudo; f() { x=echo; return 0; x=ls; }; f; $x id",
                    "x=sudo; f() { for i in a b; do break; done; x=echo; }; f; $x id",
                    "f() { [ \"$1\" ] || return; d=$1; }; f build; rm -rf \"$d\"/*"});
  // Where there are many, none is known for certain.
  CHECK_FALSE(strict()
                  .judge("case $Q in a) x=sudo;; b) x=su;; c) x=env;; esac; "
                         "f() { [ \"$Q\" ] && return; x=echo; }; f; $x id")
                  .verdict.allowed);
}

TEST_CASE("policy: what ls, cat, pwd, dirname and basename write is known where it is plain") {
  refuses(strict(), {
                        "rm -rf $(ls -d /*)",
                        "rm -rf $(ls -d /etc/*)",
                        "rm -rf $(ls -1d /etc/* 2>/dev/null)",
                        "rm -rf $(ls -A1d /)",
                        "rm -rf $(ls ~/* -d)",
                        "rm -rf \"$(ls -d ~)\"",
                        "for f in $(ls -d /*); do rm -rf \"$f\"; done",
                        "ls -d /* | xargs rm -rf",
                        "ls -d /* | cat | xargs rm -rf",
                        "cat <(echo /*) | xargs rm -rf",
                        "cat <(ls -d /*) | xargs rm -rf",
                        "cat <<< / | xargs rm -rf",
                        "cat < <(echo /*) | xargs rm -rf",
                        "xargs rm -rf < <(echo /*)",
                        "xargs rm -rf < <(echo ~)",
                        "cd /; pwd | xargs rm -rf",
                        "cd / && rm -rf \"$(pwd)\"/*",
                        "cd ~; rm -rf \"$(pwd)\"",
                        "rm -rf $(dirname /etc/x)",
                        "rm -rf \"$(dirname /etc)\"",
                        "rm -rf \"$(dirname ~/x)\"",
                        "rm -rf \"$(dirname ~)\"",
                        "rm -rf /$(basename /usr/etc/)",
                        "rm -rf $(basename /)",
                        "sh <(ls -d /*)",
                        "ls -d ls | sh",
                        "$(ls -d /usr/bin/sud*) id",
                    });
  passes(strict(), {
                       "for f in $(ls -d build/*); do rm -rf \"$f\"; done",
                       "rm -rf $(ls -d build/*)",
                       "rm -rf $(ls -l /)",
                       "ls -d */ | wc -l",
                       "cat <(echo build/*) | xargs rm -rf",
                       "cat notes | xargs rm -f",
                       "cd build && rm -rf \"$(pwd)\"/tmp",
                       "cd \"$(dirname \"$0\")\" && rm -rf build",
                       "cd \"$(dirname build/x)\" && rm -rf tmp",
                       "rm -rf \"$(basename src/build)\"",
                       "rm -rf \"$(pwd)/build\"",
                       "bash <(cat <(echo ls))",
                   });
}

TEST_CASE("policy: what read takes from an input that is known") {
  refuses(strict(), {
                        "read d <<< /; rm -rf $d",
                        "read -r d <<< /; rm -rf \"$d\"",
                        "read -rp 'Which? ' d <<< /; rm -rf \"$d\"",
                        "read -p 'Which? ' -t 5 d <<< /; rm -rf \"$d\"",
                        "read <<< /; rm -rf \"$REPLY\"",
                        "read d << E\n/\nE\nrm -rf $d",
                        "read d << E\n  /etc  \nE\nrm -rf \"$d\"",
                        "read d <<< \"$(echo ~)\"; rm -rf \"$d\"",
                        "read d <<< \"/$X\"; rm -rf \"$d\"",
                        "read a b <<< 'x /'; rm -rf \"$b\"",
                        "read a b c <<< 'x / y z'; rm -rf \"$b\"",
                        "IFS=: read a b <<< 'x:/'; rm -rf \"$b\"",
                        "IFS=, read -r a b c <<< x,,/; rm -rf \"$c\"",
                        "IFS= read -r d <<< /; rm -rf \"$d\"",
                        "read a b <<< \"$(echo /*)\"; rm -rf $b",
                        "read d < <(echo /); rm -rf \"$d\"",
                        "read d < <(ls -d /*); rm -rf \"$d\"",
                        "echo / | { read d; rm -rf \"$d\"; }",
                        "echo / | ( read d && rm -rf \"$d\" )",
                        "{ read a; read b; rm -rf \"$b\"; } << E\nx\n/\nE",
                        "echo /* | while read d; do rm -rf \"$d\"; done",
                        "printf '%s\\n' / /etc | while read -r d; do rm -rf \"$d\"; done",
                        "printf '%s\\n' build /etc | while read -r d; do rm -rf \"$d\"; done",
                        "printf '%s\\n' \"$X\" /etc | while read -r d; do rm -rf \"$d\"; done",
                        "ls -d /* | while read f; do rm -rf \"$f\"; done",
                        "ls -d /etc | while read f; do rm -rf \"$f\"; done",
                        "while read d; do rm -rf $d; done <<E\nbuild\n/\nE",
                        "while read d; do rm -rf \"$d\"; done < <(echo /*)",
                        "while IFS= read -r d; do rm -rf \"$d\"; done <<< /",
                        "f() { read d; rm -rf \"$d\"; }; f <<< build; f <<< /",
                        "f() { while read d; do rm -rf \"$d\"; done; }; f <<< build; f <<< /",
                        "until ! read -r a d; do rm -rf \"$d\"; done <<< 'x /'",
                        "read c <<< 'rm -rf /'; $c",
                        "echo sudo id | while read c; do $c; done",
                    });
  passes(strict(), {
                       "ls *.log | while read f; do rm \"$f\"; done",
                       "ls -d *.log | while read f; do rm \"$f\"; done",
                       "while read -r line; do echo \"$line\"; done < file",
                       "git branch | while read b; do git branch -D \"$b\"; done",
                       "find . -name '*.o' | while read f; do rm \"$f\"; done",
                       "printf '%s\\n' a b | while read -r d; do rm -rf \"build/$d\"; done",
                       "while read -r a b; do rm -rf \"build/$a/$b\"; done <<E\nx y\nz\n\nE",
                       "echo /etc/passwd | while read f; do cat \"$f\"; done",
                       "read -r a b <<< 'x /'; rm -rf \"$a\"",
                       "read -r d <<< build; rm -rf \"$d\"/*",
                       "read -p 'Name? ' name; rm -f \"$name\"",
                   });
}
