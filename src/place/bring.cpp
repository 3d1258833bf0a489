// Getting the agent to a place whose transport leads to a shell.

#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// For any POSIX shell, which reads the script from the same pipe as the file: the client sends the
// file only when the script asks for it. The shell becomes the agent, or writes one line of why
// not.
// CODEEXEC_PLACE_CACHE names a folder that is tried first: the cache may lie in a workspace.
//   h  SHA-256 of the file    s  its size    m  its processor
// The script enters a folder before it checks it: the folder belongs to this user and is closed to
// all others, so that a user who may write to the parent folder cannot put another file there.
constexpr char bring_script[] =
    "{ CODEEXEC_PLACE_START=`pwd`; export CODEEXEC_PLACE_START; u=`umask`; umask 077; i=`id -u`; "
    "w=\n"
    "n=codeexec-mcp-" CODEEXEC_VERSION_STRING
    "-$h; t=$n.$$; k=$((s/1024+64))\n"
    "no() { echo \"place_agent: $*\" >&2; exit 1; }\n"
    "ok() { [ -f $1 ] && case `$c <$1` in $h*) ;; *) false; esac; }\n"
    "case `uname -m` in $m) ;; *) no \"it is for $m, and there is `uname -m`\"; esac\n"
    "for c in sha256sum 'shasum -a 256' 'openssl dgst -sha256 -r' ''; do\n"
    "$c </dev/null >/dev/null 2>&1 && break; done\n"
    "[ \"$c\" ] || no it is checked by sha256sum, shasum or openssl, and none is there\n"
    "f=${CODEEXEC_PLACE_CACHE:+$CODEEXEC_PLACE_CACHE/codeexec-$i}; unset CODEEXEC_PLACE_CACHE\n"
    "for d in ${f:+\"$f\"} "
    "\"${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/codeexec\" "
    "\"${HOME:-/dev/null}/.codeexec\" /var/tmp/codeexec-$i /tmp/codeexec-$i; do\n"
    "e=`mkdir -p \"$d\" 2>&1 && cd \"$d\" 2>&1` && cd \"$d\" || { w=\"$w; $e\"; continue; }\n"
    "set -- `ls -ldn .`\n"
    "case $1:$3 in drwx------*:$i) ;; "
    "*) w=\"$w; $d is of another user, or open to others\"; continue; esac\n"
    "ok $n && { umask $u; exec ./$n --place; }\n"
    "set -- `df -Pk . 2>/dev/null | tail -n 1`\n"
    "[ \"${4:-$k}\" -lt $k ] 2>/dev/null && { w=\"$w; $d has no room for $k KiB\"; continue; }\n"
    "e=`{ true >$t && chmod 700 $t; } 2>&1` || { w=\"$w; $d: $e\"; continue; }\n"
    "./$t 2>/dev/null || { rm -f $t; w=\"$w; $d is mounted noexec\"; continue; }\n"
    "echo codeexec-bring\n"
    "e=`head -c $s 2>&1 >$t` && ok $t && mv -f $t $n && { umask $u; exec ./$n --place; }\n"
    "rm -f $t; no \"$d/$n has not come whole. $e\"\n"
    "done; no \"no folder takes it$w\"; }\n";

// As `uname -m` says it, or a pattern for that. From the head of an ELF file; `*` lets all others
// pass, as the system there knows best what it can run, and says so.
std::string_view machine_of(std::string_view file) {
  if (file.size() < 20 || !starts_with(file, "\177ELF"sv)) return "*";
  // All of these write the lower byte first.
  switch (static_cast<unsigned char>(file[18]) | static_cast<unsigned char>(file[19]) << 8) {
    case 40:
      return "arm*";
    case 62:
      return "x86_64";
    case 183:
      return "aarch64";
    case 243:
      return "riscv64";
    default:
      return "*"sv;
  }
}

}  // namespace

inline namespace inner {

// The values stand before the script, so that its text is the same for all files. They are
// hexadecimal, a number and a pattern from the list above: none of them can end the quotes.
std::string bring_text(std::string_view file) {
  return concat("h=%; s=%; m='%'\n%", {sha256(file), file.size(), machine_of(file), bring_script});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
