// Programs that start another one, or hand a script to a shell.
#pragma once

#include "policy/tables_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A row of the table below.
struct Wrapper {
  std::string_view name = {};
  std::string_view flags = {};
  Syntax syntax = {};
  std::string_view scripts = {};   // options whose argument is a script
  std::string_view programs = {};  // options whose argument is the program; of t: switches
  bool has(char flag) const { return flags.find(flag) != std::string_view::npos; }
};

// One line per program, sorted by name, and one per command of a program that has some:
//
//   name;flags;letters;longs;scripts;programs;longs with two arguments
//
// The options are those of Syntax and Wrapper. Most rows mean: options, and then the command.
// Flags:
//   0-9  so many words stand between the options and the command
//   a    NAME=value words stand before the command
//   h    its scripts may be known in part: what is unknown in them is no reason to refuse
//   e    as h; the command runs on another machine, in a container or in another terminal
//   i    without a command, the script is read from standard input
//   j    the words of the command are joined to a script
//   t    a switch of the sixth field turns j into no j, and no j into j
//   L    a switch of the sixth field says that nothing runs
//   o    options may stand anywhere, and no command follows
//   p    of o: each operand is a script
//   r    more options may follow the words before the command
//   v    a command of its own follows: the row to go on with is "name command"
//   Y    an interpreter, without its version; the number of its Language; with f, the first operand
//        is its code where no option of the fifth field gives it
//   q    as v; a word ; begins the next command
//   =x   the row x says how
// Capitals are kinds that a function of their own reads: Judge::peel() has them.
inline constexpr std::string_view wrapper_table =
    "aarch64\n"
    "adb;v;sHPt\n"
    "adb shell;ej\n"
    "ansible;oe;aimufMtTCK;args module-name inventory user extra-vars limit;a args\n"
    "apptainer;v\n"
    "apptainer exec;1e;BH;!cleanenv contain containall fakeroot nv writable writable-tmpfs "
    "no-home\n"
    "asdf;=pyenv\n"
    "at;I\n"
    "autossh;1eijr;BbcDEeFIiJLlMmOoPpQRSWw;;o\n"
    "awk;Y0f;FvfieE;field-separator assign file include source exec;e source\n"
    "batch;I\n"
    "bsdtar;=tar\n"
    "buildah;v\n"
    "buildah run;1er;v;volume mount user workingdir\n"
    "builtin\n"
    "bun;Y2;er;eval require;e eval\n"
    "bundle;v\n"
    "bundle exec\n"
    "bunx\n"
    "busybox\n"
    "bwrap;;;args chdir cap-add cap-drop dev proc tmpfs mqueue dir uid gid hostname unsetenv "
    "seccomp add-seccomp-fd exec-label file-label sync-fd info-fd json-status-fd block-fd perms "
    "size "
    "lock-file remount-ro overlay-src tmp-overlay ro-overlay userns userns2 pidns argv0;;;"
    "bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try setenv symlink file bind-data "
    "ro-bind-data chmod\n"
    "caffeinate;;tw\n"
    "capsh;H\n"
    "catchsegv\n"
    "choom;;np;adjust pid\n"
    "chpst;;ueUbmdofpxnr/\n"
    "chroot;1;;groups userspec\n"
    "chrt;1;TPD;sched-runtime sched-period sched-deadline\n"
    "command;Lt;;;;v V\n"
    "concurrently;poh;ncplm;names prefix prefix-colors kill-others max-processes\n"
    "conda;v\n"
    "conda run;;np;name prefix cwd\n"
    "cpulimit;;lpec;limit pid exe cpu\n"
    "crictl;v;r\n"
    "crictl exec;1e\n"
    "cross-env;a\n"
    "dbus-run-session;;;config-file dbus-daemon\n"
    "direnv;v\n"
    "direnv exec;1\n"
    "doas;a;aCu\n"
    "docker;v;cHl;config context host log-level tlscacert tlscert tlskey connection identity root "
    "runroot storage-driver url\n"
    "docker compose;v;fp;file profile project-name project-directory env-file ansi parallel "
    "progress\n"
    "docker compose exec;1e;euw;env index user workdir\n"
    "docker compose run;1e;eluvwp;env env-from-file label name publish user volume workdir "
    "entrypoint cap-add cap-drop;;entrypoint\n"
    "docker container;=docker\n"
    "docker create;=docker run\n"
    "docker exec;1e;euw;env env-file user workdir detach-keys\n"
    "docker run;1e;acehlmpuvw;!detach help init interactive no-healthcheck oom-kill-disable "
    "privileged publish-all quiet read-only replace rm rmi sig-proxy tty disable-content-trust;;"
    "entrypoint\n"
    "docker-compose;=docker compose\n"
    "dotenv;;efvp\n"
    "dumb-init;;r\n"
    "eatmydata\n"
    "entr;t;;;;s\n"
    "env;E;uCS;unset chdir split-string\n"
    "ex;=vim\n"
    "exec;;a\n"
    "expect;oh;c;;c\n"
    "fakeroot;;lsib;lib faked\n"
    "fd;C;;;;x exec X exec-batch\n"
    "find;F\n"
    "firejail\n"
    "flock;1r;wEc;timeout wait conflict-exit-code command;c command\n"
    "gawk;=awk\n"
    "gcloud;v;;project zone\n"
    "gcloud compute;v\n"
    "gcloud compute ssh;oe;;command zone project;command\n"
    "gdb;C;;;ex iex eval-command init-eval-command;args\n"
    "git;vG;Cc;git-dir work-tree namespace exec-path super-prefix config-env\n"
    "git archive;oh;o;remote exec format prefix output;exec\n"
    "git bisect;v\n"
    "git bisect run\n"
    "git clone;oGh;bcojuC;upload-pack config branch origin depth reference template;u upload-pack\n"
    "git config;K;ft;file type default comment value\n"
    "git difftool;oh;tx;extcmd tool;x extcmd\n"
    "git fetch;oh;ojo;upload-pack depth;upload-pack\n"
    "git filter-branch;oh;d;setup subdirectory-filter env-filter tree-filter index-filter "
    "parent-filter msg-filter commit-filter tag-name-filter;env-filter tree-filter index-filter "
    "parent-filter msg-filter commit-filter tag-name-filter setup\n"
    "git grep;oh;efABCmO;;O open-files-in-pager\n"
    "git ls-remote;=git fetch\n"
    "git pull;=git fetch\n"
    "git push;oh;o;receive-pack exec push-option;receive-pack exec\n"
    "git rebase;oh;xsXC;exec onto strategy strategy-option whitespace;x exec\n"
    "git submodule;v\n"
    "git submodule foreach;jh\n"
    "gmake;=make\n"
    "gosu;1\n"
    "gsed;=sed\n"
    "gtar;=tar\n"
    "gvim;=vim\n"
    "hatch;=poetry\n"
    "heroku;v;a\n"
    "heroku run;ej;a;app\n"
    "hyperfine;poh;wmrMPDLsScCnNu;warmup min-runs max-runs runs setup prepare conclude cleanup "
    "parameter-list parameter-scan export-json export-markdown export-csv style shell command-name "
    "time-unit output;setup prepare conclude cleanup s p c\n"
    "i386\n"
    "i686\n"
    "ionice;;cnpPu;class classdata pid pgid uid\n"
    "ip;v;n;netns\n"
    "ip netns;v\n"
    "ip netns exec;1\n"
    "kubectl;v;ns;!help warnings-as-errors insecure-skip-tls-verify match-server-version\n"
    "kubectl debug;=kubectl run\n"
    "kubectl exec;1er;cfn;!stdin tty quiet help\n"
    "kubectl run;1er;nlfoc;!command stdin tty rm attach quiet privileged expose help "
    "leave-stdin-open;;\n"
    "ld.so;Lt;;library-path preload audit argv0 inhibit-rpath glibc-hwcaps-prepend "
    "glibc-hwcaps-mask;;list verify help\n"
    "lerna;v\n"
    "lerna exec;;;scope ignore\n"
    "less;C\n"
    "linux32\n"
    "linux64\n"
    "ltrace;;aADeFlnopsuwxX;output library indent\n"
    "lua;Y1;el;;e\n"
    "lxc;v\n"
    "lxc exec;1er;;env user group cwd\n"
    "make;M;CfIloWE;directory file makefile include-dir old-file what-if new-file assume-old "
    "assume-new eval\n"
    "mamba;=conda\n"
    "man;oh;PCRLmMSsepEr;pager config-file locale manpath;P pager\n"
    "mawk;=awk\n"
    "micromamba;=conda\n"
    "mise;v;CEj;cd env jobs\n"
    "mise exec;h;c;command cd;c command\n"
    "mise x;=mise exec\n"
    "mosh;1er;p;ssh port;ssh\n"
    "multipass;v\n"
    "multipass exec;1er\n"
    "mysql;C;;;e execute\n"
    "nawk;=awk\n"
    "nc;oh;ceGgiIoPpqsTVwWXx;exec sh-exec;e c exec sh-exec\n"
    "ncat;=nc\n"
    "nerdctl;=docker\n"
    "nice;;n;adjustment\n"
    "nix;C;;;;c command\n"
    "nix-shell;oh;pAIiE;run command attr packages expr;run command\n"
    "nocache;;n\n"
    "node;Y2;erC;eval require import loader conditions;e eval\n"
    "nodejs;=node\n"
    "nodemon;oh;xwei;exec watch ext ignore;x exec\n"
    "nohup\n"
    "npm;v;Cw;prefix workspace loglevel cache\n"
    "npm exec;h;pcw;package call workspace;c call\n"
    "npm explore;1r\n"
    "npm x;=npm exec\n"
    "npx;=npm exec\n"
    "nsenter;;tSGW;target setuid setgid wdns\n"
    "numactl;;imNCpPw;interleave membind cpunodebind physcpubind\n"
    "nvim;=vim\n"
    "oc;=kubectl\n"
    "parallel;P;jINLndaSEPs;jobs max-procs max-args max-lines max-replace-args delimiter arg-file "
    "sshlogin colsep joblog timeout delay halt results retries tmpdir workdir wd load memfree nice "
    "seqreplace recstart recend block\n"
    "pdm;=poetry\n"
    "perf;v\n"
    "perf record;;eopCFctGu\n"
    "perf stat;;eopCrGxI\n"
    "perf trace;=perf record\n"
    "perl;Y3;eEMmIxF;;e E\n"
    "php;Y4;rfdBREFcTz;run define;r run B E R\n"
    "pipenv;=poetry\n"
    "pipx;v\n"
    "pipx run;;;spec python pip-args index-url\n"
    "pkexec;;;user\n"
    "pnpm;v;CF;dir filter\n"
    "pnpm dlx;th;;package;;c shell-mode\n"
    "pnpm exec;=pnpm dlx\n"
    "podman;=docker\n"
    "podman-compose;=docker compose\n"
    "poetry;v;CP;directory project\n"
    "poetry run\n"
    "prlimit;;po;pid output\n"
    "proot;;rbqwvkmRS;rootfs bind qemu cwd verbose kernel-release mount pwd\n"
    "proxychains;;f\n"
    "proxychains4;;f\n"
    "psql;C;;;c command\n"
    "pyenv;v\n"
    "pyenv exec\n"
    "pypy;=python\n"
    "python;Y5;cmWXQ;;c\n"
    "rbenv;=pyenv\n"
    "rlwrap;;bCDfgHlMOPqsStwz\n"
    "rsync;oh;efTBM;rsh rsync-path filter include exclude include-from exclude-from files-from "
    "partial-dir temp-dir backup-dir suffix compare-dest copy-dest link-dest log-file "
    "password-file bwlimit max-size min-size timeout port chmod chown info debug out-format;"
    "e rsh rsync-path\n"
    "ruby;Y6;eIrCEF;;e\n"
    "runcon;;turlc\n"
    "runuser;R;csgGwu;command session-command shell group supp-group whitelist-environment user\n"
    "rustup;v\n"
    "rustup run;1\n"
    "rvim;=vim\n"
    "rye;=poetry\n"
    "scp;oh;cDFiJloPSX;;o S\n"
    "screen;Ne;cehpsSTt\n"
    "script;W;cEIOBTmo;command echo log-in log-out log-io log-timing logging-format output-limit\n"
    "sed;D;efl;expression file line-length\n"
    "setarch\n"  // the name of the architecture is a wrapper itself
    "setpriv;;;ruid euid reuid rgid egid regid groups inh-caps ambient-caps bounding-set "
    "securebits pdeathsig selinux-label apparmor-profile landlock-access landlock-rule\n"
    "setsid\n"
    "setuidgid;1\n"
    "sftp;oh;BbcDFiJloPRsSX;;o S s\n"
    "sg;1jr;c;;c\n"
    "singularity;=apptainer\n"
    "socat;po;bdtTuUL\n"
    "spawn\n"
    "ssh;1eijr;BbcDEeFIiJLlmOoPpQRSWw;;o\n"
    "ssh-agent;;aEtPO\n"
    "sshpass;;pfdP\n"
    "start-stop-daemon;;axpunscgrPINdO;!start stop status test oknodo quiet background no-close "
    "make-pidfile remove-pidfile notify-await verbose help;;x exec a startas\n"
    "stdbuf;;ioe;input output error\n"
    "strace;;abeEIoOpPsSuUX;attach output expr env string-limit user summary-sort-by trace-path\n"
    "su;U;csgGw;command session-command shell group supp-group whitelist-environment\n"
    "su-exec;1\n"
    "sudo;a;aCcDgphRrTtUu;close-from chdir group host prompt chroot role command-timeout type "
    "other-user user\n"
    "systemd-run;;puEHM;unit property description slice uid gid nice working-directory setenv "
    "service-type host machine on-active on-boot on-startup on-unit-active on-calendar "
    "timer-property\n"
    "tar;Th;fCbFgHIKLNTVX;file directory use-compress-program to-command checkpoint-action "
    "exclude transform owner group mode mtime files-from exclude-from format info-script "
    "new-volume-script rsh-command rmt-command strip-components xform;"
    "I F use-compress-program to-command checkpoint-action info-script new-volume-script "
    "rsh-command rmt-command\n"
    "taskset;1\n"
    "time;;fo;format output\n"
    "timeout;1;ks;kill-after signal\n"
    "tini;;pe\n"
    "tmux;q;cfLST;;c\n"
    "tmux display-popup;ej;bcdehsStTwxy\n"
    "tmux new;=tmux new-session\n"
    "tmux new-session;ej;cefFnstxy\n"
    "tmux new-window;ej;ceFnt\n"
    "tmux neww;=tmux new-window\n"
    "tmux pipe-pane;ej;t\n"
    "tmux popup;=tmux display-popup\n"
    "tmux respawn-pane;ej;cet\n"
    "tmux respawn-window;ej;cet\n"
    "tmux run;=tmux run-shell\n"
    "tmux run-shell;ej;cdt\n"
    "tmux send;=tmux send-keys\n"
    "tmux send-keys;Se;cNt\n"
    "tmux split-window;ej;ceFlpt\n"
    "tmux splitw;=tmux split-window\n"
    "torify\n"
    "torsocks;;uPap;user pass address port\n"
    "toybox\n"
    "uname26\n"
    "unbuffer\n"
    "unshare;;RwSGl;root wd setuid setgid map-users map-groups propagation setgroups load-interp\n"
    "uv;v;;directory project config-file cache-dir color python-preference\n"
    "uv run;;pwfiPCm;!isolated active no-sync locked frozen all-extras no-dev only-dev all-groups "
    "no-default-groups no-editable inexact exact no-env-file verbose quiet offline native-tls "
    "no-progress no-cache no-config refresh reinstall upgrade no-build no-binary no-sources "
    "no-index script gui-script managed-python no-managed-python no-python-downloads all-packages "
    "compile-bytecode dev help\n"
    "uv tool;v\n"
    "uv tool run;=uv run\n"
    "uvx;=uv run\n"
    "vagrant;v\n"
    "vagrant ssh;oe;c;command;c command\n"
    "valgrind\n"
    "vi;=vim\n"
    "view;=vim\n"
    "vim;C;;;c cmd\n"
    "vimdiff;=vim\n"
    "watch;jt;nq;interval equexit;;x exec\n"
    "watchexec;jh;wefiEdsr;watch exts filter ignore env debounce signal shell\n"
    "x86_64\n"
    "xargs;X;aEIdLnPs;arg-file delimiter max-args max-procs max-chars process-slot-var\n"
    "xvfb-run;;efnpsw;error-file auth-file server-num xauth-protocol server-args wait\n"
    "yarn;v;;cwd\n"
    "yarn dlx;;p;package\n"
    "yarn exec;jh\n";

// The name of the row that begins at `at`.
constexpr std::string_view name_of_row(std::size_t at) {
  const std::string_view rest = wrapper_table.substr(at);
  return rest.substr(0, rest.find_first_of(";\n"));
}

// Rows are found by halves.
constexpr bool wrappers_in_order() {
  std::string_view before;
  for (std::size_t at = 0; at < wrapper_table.size(); at = wrapper_table.find('\n', at) + 1) {
    const std::string_view name = name_of_row(at);
    if (!(before < name)) return false;
    before = name;
  }
  return true;
}
static_assert(wrappers_in_order(), "sort the rows by name");

// The row of a name. False: there is none.
bool find_wrapper(std::string_view name, Wrapper& wrapper);

// Variables whose value is a command.
inline constexpr std::string_view command_variables =
    "GIT_SSH_COMMAND GIT_SSH GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF "
    "GIT_ASKPASS "
    "GIT_PROXY_COMMAND SSH_ASKPASS SUDO_ASKPASS PAGER EDITOR VISUAL FCEDIT MANPAGER BROWSER "
    "LESSOPEN "
    "LESSCLOSE PROMPT_COMMAND PS4 RSYNC_RSH";

// The last parts of the names of git's settings whose value is a command, besides pager.* and
// alias.*, in small letters.
inline constexpr std::string_view command_settings =
    "pager sshcommand fsmonitor editor helper external askpass gitproxy program packobjectshook "
    "difffilter command textconv driver cmd clean smudge process update uploadpack receivepack";

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
