// What variables, arrays and the output of builtins are known to hold.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "codeexec.hpp"
#include "helpers.hpp"

using codeexec::Policy;
using support::passes;
using support::strict;

namespace {

void refuses(const Policy& policy, const std::vector<std::string_view>& scripts,
             std::string_view work_dir = {}) {
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    CHECK(!policy.check(script, work_dir).allowed);
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
