// Programs that start another one on this machine: as another user, with limits, under a tracer, in
// other namespaces. wrapper_columns_internal.hpp says how a row is written.
#pragma once

#include "policy/wrapper_columns_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

struct SystemRows : WrapperColumns {
  static constexpr WrapperRow rows[] = {
      {"aa-exec", letters("pn")},
      {"aarch64"},
      {"abduco", word_before, letters("e")},
      {"builtin"},
      {"busybox"},
      {"caffeinate", letters("tw")},
      {"capsh", Kind::capsh},
      {"catatonit"},
      {"catchsegv"},
      {"cgexec", letters("g")},
      {"choom", letters("np"), longs("adjust pid")},
      {"chpst", letters("ueUbmdofpxnr/")},
      {"chronic"},
      {"chroot", word_before, reaches_host, longs("groups userspec")},
      {"chrt", word_before, letters("TPD"), longs("sched-runtime sched-period sched-deadline")},
      // With -v it shows what a name is.
      {"command", only_shows("v V")},
      {"cpulimit", letters("lpec"), longs("limit pid exe cpu")},
      {"daemonize", letters("acepoluE")},
      {"dbus-launch"},
      {"dbus-run-session", longs("config-file dbus-daemon")},
      {"doas", assignments_before, letters("aCu")},
      {"dtach", word_before, options_again, letters("eEr")},
      {"dumb-init", letters("r")},
      {"eatmydata"},
      {"env", Kind::env, letters("uCS"), longs("unset chdir split-string")},
      {"envdir", word_before},
      {"exec", letters("a")},
      {"fakechroot"},
      {"fakeroot", letters("lsib"), longs("lib faked")},
      {"faketime", word_before},
      {"firejail"},
      {"flock", word_before, options_again, letters("wEc"),
       longs("timeout wait conflict-exit-code command"), scripts("c command")},
      {"gosu", word_before},
      {"gotty", feeds_input, letters("acp"), longs("address port credential")},
      {"gtimeout", same_as("timeout")},
      {"heaptrack", letters("opd"), longs("output pid")},
      {"i386"},
      {"i686"},
      {"ifne", letters("n")},
      {"ionice", letters("cnpPu"), longs("class classdata pid pgid uid")},
      {"ip", has_commands, letters("n"), longs("netns")},
      {"ip netns", has_commands},
      {"ip netns exec", word_before},
      // With -x; else it shows jobs.
      {"jobs"},
      {"kcov", word_before, longs("include-path exclude-path include-pattern exclude-pattern")},
      // The loader of programs, under any of its names: ld-linux-x86-64.so.2. With --list it shows.
      {"ld.so",
       longs(
           "library-path preload audit argv0 inhibit-rpath glibc-hwcaps-prepend glibc-hwcaps-mask"),
       only_shows("list verify help")},
      {"linux32"},
      {"linux64"},
      {"lldb", behind_dashes, no_command},
      {"logsave", word_before},
      {"ltrace", letters("aADeFlnopsuwxX"), longs("output library indent")},
      {"nice", letters("n"), longs("adjustment")},
      {"nocache", letters("n")},
      {"nohup"},
      {"nsenter", reaches_host, letters("tSGW"), longs("target setuid setgid wdns")},
      {"numactl", letters("imNCpPw"), longs("interleave membind cpunodebind physcpubind")},
      {"perf", has_commands},
      {"perf record", letters("eopCFctGuDkM"),
       longs("event output pid tid cpu freq count cgroup uid delay clockid")},
      {"perf stat", letters("eopCrGxIMDt"),
       longs("event output pid tid cpu repeat cgroup field-separator interval-print metrics delay "
             "interval-count timeout")},
      {"perf trace", same_as("perf record")},
      {"pkexec", longs("user")},
      {"prlimit", letters("po"), longs("pid output")},
      {"proot", letters("rbqwvkmRS"),
       longs("rootfs bind qemu cwd verbose kernel-release mount pwd")},
      {"proxychains", letters("f")},
      {"proxychains4", letters("f")},
      {"ptyxis", behind_dashes, no_command},
      {"qemu-user", maybe_word, letters("LEUgsRBdDGp0")},
      {"rlwrap", letters("bCDfgHlMOPqsStwz")},
      {"rr", has_commands},
      {"rr record", letters("covM"), longs("output-trace-dir env num-cores nested")},
      {"runcon", maybe_word, letters("turl"), longs("type user role range")},
      {"runuser", Kind::runuser, letters("csgGwu"),
       longs("command session-command shell group supp-group whitelist-environment user")},
      {"s6-envdir", word_before},
      {"s6-setuidgid", word_before},
      {"scl", has_commands},
      {"scl enable", operands_are_scripts, behind_dashes, no_command, known_in_part},
      {"scl run", word_before},
      {"script", Kind::script, letters("cEIOBTmo"),
       longs("command echo log-in log-out log-io log-timing logging-format output-limit")},
      // The name of the architecture, which follows, is a wrapper itself.
      {"setarch"},
      {"setlock", word_before},
      {"setpriv",
       longs("ruid euid reuid rgid egid regid groups inh-caps ambient-caps bounding-set securebits "
             "pdeathsig selinux-label apparmor-profile landlock-access landlock-rule")},
      {"setsid"},
      {"setuidgid", word_before},
      {"sg", Kind::group, word_before, joins_words, options_again, letters("c"), scripts("c")},
      {"socksify"},
      {"softlimit", letters("madfcrlpsot")},
      {"spawn"},
      {"ssh-agent", letters("aEtPO")},
      {"sshpass", letters("pfdP")},
      {"start-stop-daemon", letters("axpunscgrPINdO"),
       switches("start stop status test oknodo quiet background no-close make-pidfile "
                "remove-pidfile notify-await verbose help"),
       programs("x exec a startas")},
      {"stdbuf", letters("ioe"), longs("input output error")},
      {"strace", letters("abeEIoOpPsSuUX"),
       longs("attach output expr env string-limit user summary-sort-by trace-path")},
      {"su", Kind::su, letters("csgGw"),
       longs("command session-command shell group supp-group whitelist-environment")},
      {"su-exec", word_before},
      {"sudo", assignments_before, letters("aCcDgphRrTtUu"),
       longs(
           "close-from chdir group host prompt chroot role command-timeout type other-user user")},
      {"systemd-cat", letters("tp"), longs("identifier priority")},
      {"systemd-inhibit", longs("what who why mode")},
      {"systemd-run", reaches_host, letters("puEHM"),
       longs(
           "unit property description slice uid gid nice working-directory setenv service-type "
           "host machine on-active on-boot on-startup on-unit-active on-calendar timer-property")},
      // The word is a mask.
      {"taskset", word_before},
      {"tcpserver", word_before, maybe_word, feeds_input, letters("clxugbB")},
      {"tcpsvd", word_before, maybe_word, feeds_input, letters("clubC")},
      {"time", letters("fo"), longs("format output")},
      {"timelimit", letters("tTsS")},
      {"timeout", word_before, letters("ks"), longs("kill-after signal")},
      {"tini", letters("pe")},
      {"torify"},
      {"torsocks", letters("uPap"), longs("user pass address port")},
      {"toybox"},
      {"trickle", letters("dulwts")},
      {"tsocks"},
      {"tsp", letters("LDETNO")},
      {"ttyd", feeds_input, letters("ACIKPTUbcdgimpstuw"),
       longs("port interface socket-owner credential auth-header uid gid signal cwd terminal-type "
             "client-option max-clients index base-path ping-interval ssl-cert ssl-key ssl-ca "
             "debug")},
      {"udpsvd", same_as("tcpsvd")},
      {"uname26"},
      {"unbuffer"},
      {"unshare", letters("RwSGl"),
       longs("root wd setuid setgid map-users map-groups propagation setgroups load-interp")},
      {"valgrind"},
      {"x86_64"},
      {"xvfb-run", letters("efnpsw"),
       longs("error-file auth-file server-num xauth-protocol server-args wait")},
  };
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
