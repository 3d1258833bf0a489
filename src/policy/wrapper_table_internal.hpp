// Programs that start another one, or hand a script to a shell.
#pragma once

#include "policy/tables_internal.hpp"

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

// A row for each program, sorted by name, and one for each command of a program that has some:
//
//   name;flags;letters;longs;scripts;programs;longs with two arguments
//
// The options are those of Syntax and Wrapper. Most rows mean: options, and then the command.
// Flags:
//   1    a word stands between the options and the command
//   d    the command stands behind a word --, if there is one
//   a    NAME=value words stand before the command
//   h    its scripts may be known in part: what is unknown in them is no reason to refuse
//   e    as h; the command runs on another machine, in a container or in another terminal
//   i    without a command, the script is read from standard input
//   j    the words of the command are joined to a script
//   t    a switch of the sixth field turns j into no j, and no j into j
//   L    a switch of the sixth field says that nothing runs
//   o    options may stand anywhere, and no command follows; but see d
//   p    of o: each operand is a script
//   r    more options may follow the words before the command
//   v    a command of its own follows: the row to go on with is "name command"
//   Y    an interpreter, named without its version; a digit follows, the number of its Language;
//        with f, the first operand is its code if no option of the fifth field gives any
//   q    as v; a word ; begins the next command
//   =x   the row x says how
//   s    of C: its scripts are for a shell
//   G    the options -c and --config hold a setting of git
// The other capitals are kinds of programs with a function of their own: peel() calls it.
inline constexpr std::string_view wrapper_table =
    "R;Y1;ef;;e\nRscript;Y1;e;;e\naa-exec;;pn\naarch64\nadb;v;sHPt\nadb shell;ej\n"
    "alacritty;=xterm\n"
    "ansible;oe;aimufMtTCK;args module-name inventory user extra-vars limit;a args\napptainer;v\n"
    "apptainer exec;1e;BH;!cleanenv contain containall fakeroot nv writable writable-tmpfs "
    "no-home\nasdf;=pyenv\nat;I\nautossh;1eijr;BbcDEeFIiJLlMmOoPpQRSWw;;o\n"
    "awk;Y0f;FvfieE;field-separator assign file include source exec;e source\naws-okta;=aws-vault\n"
    "aws-vault;v;;backend prompt keychain\naws-vault exec;1d;dnt;duration region mfa-token\n"
    "batch;I\nbazel;v\nbazel run;oh;;run_under;run_under\nbazel test;=bazel run\nbazelisk;=bazel\n"
    "bsdtar;=tar\nbuildah;v\nbuildah run;1er;v;volume mount user workingdir\nbuiltin\n"
    "bun;Y2;er;eval require;e eval\nbun exec;jh\nbun x;=npm exec\nbundle;v\nbundle exec\nbunx\n"
    "busybox\n"
    "bwrap;;;args chdir cap-add cap-drop dev proc tmpfs mqueue dir uid gid hostname unsetenv "
    "seccomp add-seccomp-fd exec-label file-label sync-fd info-fd json-status-fd block-fd perms "
    "size lock-file remount-ro overlay-src tmp-overlay ro-overlay userns userns2 pidns "
    "argv0;;;bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try setenv symlink file bind-data "
    "ro-bind-data chmod\ncabal;v\ncabal exec\ncaffeinate;;tw\ncapsh;H\ncargo;v\n"
    "cargo watch;doh;xswi;shell exec;s shell\ncatatonit\ncatchsegv\ncgexec;;g\nchamber;v\n"
    "chamber exec;do\nchokidar;oh;cdtp;command;c command\nchoom;;np;adjust pid\n"
    "chpst;;ueUbmdofpxnr/\nchronic\nchroot;1;;groups userspec\n"
    "chrt;1;TPD;sched-runtime sched-period sched-deadline\nchruby-exec;do\ncmake;v;SBDGTAUCP\n"
    "cmake env;a\ncmake time\ncolima;v;p\ncolima ssh;doe\ncommand;Lt;;;;v V\n"
    "concurrently;poh;ncplm;names prefix prefix-colors kill-others max-processes\nconda;v\n"
    "conda run;;np;name prefix cwd\ncpulimit;;lpec;limit pid exe cpu\ncrictl;v;r\ncrictl exec;1e\n"
    "cross-env;a\ncross-env-shell;aj\ncrun;=runc\ncsh;=fish\ndaemonize;;acepoluE\ndagger;v\n"
    "dagger run\ndapr;v\ndapr run;do\ndbus-launch\ndbus-run-session;;;config-file dbus-daemon\n"
    "deno;v\ndeno eval;Y2f\ndevbox;v\ndevbox run;jh;cE;config env env-file environment\n"
    "devcontainer;v\n"
    "devcontainer exec;e;;workspace-folder container-id config id-label remote-env docker-path\n"
    "direnv;v\ndirenv exec;1\ndistrobox;v\ndistrobox enter;doe\ndistrobox-enter;=distrobox enter\n"
    "doas;a;aCu\n"
    "docker;v;cHl;config context host log-level tlscacert tlscert tlskey connection identity root "
    "runroot storage-driver url\n"
    "docker compose;v;fp;file profile project-name project-directory env-file ansi parallel "
    "progress\ndocker compose exec;1e;euw;env index user workdir\n"
    "docker compose run;1e;eluvwp;env env-from-file label name publish user volume workdir "
    "entrypoint cap-add cap-drop;;entrypoint\ndocker container;=docker\ndocker create;=docker run\n"
    "docker exec;1e;euw;env env-file user workdir detach-keys\n"
    "docker run;1e;acehlmpuvw;!detach help init interactive no-healthcheck oom-kill-disable "
    "privileged publish-all quiet read-only replace rm rmi sig-proxy tty "
    "disable-content-trust;;entrypoint\ndocker-compose;=docker compose\ndoppler;v\n"
    "doppler run;doh;pc;command project config;command\ndotenv;d;efvp\ndotenvx;v\n"
    "dotenvx run;doh;f\ndumb-init;;r\neatmydata\nentr;t;;;;s\nenv;E;uCS;unset chdir split-string\n"
    "env-cmd;;fre;file rc-file environments\nenvchain;1\nenvdir;1\nex;=vim\nexec;;a\n"
    "expect;oh;c;;c\nfakechroot\nfakeroot;;lsib;lib faked\nfaketime;1\n"
    "fd;C;;;;x exec X exec-batch\nfdfind;=fd\nfind;F\nfirejail\nfish;oh;c;command;c command\n"
    "flatpak-spawn\nflock;1r;wEc;timeout wait conflict-exit-code command;c command\nfly;v\n"
    "fly ssh;v\nfly ssh console;oe;Cas;command app;C command\nflyctl;=fly\nfnm;v\n"
    "fnm exec;;;using\nfzf;oh;;preview;preview\ngawk;=awk\ngcloud;v;;project zone\n"
    "gcloud compute;v\ngcloud compute ssh;oe;;command zone project;command\n"
    "gdb;C;;;ex iex eval-command init-eval-command;args\ngfind;=find\n"
    "git;vG;Cc;git-dir work-tree namespace exec-path super-prefix config-env\n"
    "git archive;oh;o;remote exec format prefix output;exec\ngit bisect;v\ngit bisect run\n"
    "git clone;oGh;bcojuC;upload-pack config branch origin depth reference template;u upload-pack\n"
    "git config;K;ft;file type default comment value\ngit difftool;oh;tx;extcmd tool;x extcmd\n"
    "git fetch;oh;ojo;upload-pack depth;upload-pack\n"
    "git filter-branch;oh;d;setup subdirectory-filter env-filter tree-filter index-filter "
    "parent-filter msg-filter commit-filter tag-name-filter;env-filter tree-filter index-filter "
    "parent-filter msg-filter commit-filter tag-name-filter setup\n"
    "git grep;oh;efABCmO;;O open-files-in-pager\ngit ls-remote;=git fetch\ngit pull;=git fetch\n"
    "git push;oh;o;receive-pack exec push-option;receive-pack exec\n"
    "git rebase;oh;xsXC;exec onto strategy strategy-option whitespace;x exec\ngit submodule;v\n"
    "git submodule foreach;jh\ngmake;=make\ngo;v;C\ngo build;=go test\ngo run;=go test\n"
    "go test;Csh;;;exec toolexec\ngoenv;=pyenv\ngosu;1\ngsed;=sed\ngtar;=tar\ngtimeout;=timeout\n"
    "guix;v\nguix environment;=guix shell\nguix shell;do\ngvim;=vim\ngxargs;=xargs\n"
    "hatch;v;ecd;env config data-dir\nhatch env;v\nhatch env run;;eif\nhatch run\nheroku;v;a\n"
    "heroku run;ej;a;app\n"
    "hyperfine;poh;wmrMPDLsScCnNu;warmup min-runs max-runs runs setup prepare conclude cleanup "
    "parameter-list parameter-scan export-json export-markdown export-csv style shell command-name "
    "time-unit output;setup prepare conclude cleanup s p c\ni386\ni686\nifne;;n\nincus;=lxc\n"
    "infisical;v\ninfisical run;doh;c;command;command\nionice;;cnpPu;class classdata pid pgid uid\n"
    "ip;v;n;netns\nip netns;v\nip netns exec;1\njenv;=pyenv\n"
    "julia;Y3;eEpJLt;eval project;e E eval\njust;C;;;;c command\nk3s;v\nk3s kubectl;=kubectl\n"
    "konsole;=xterm\n"
    "kubectl;v;ns;!help warnings-as-errors insecure-skip-tls-verify match-server-version\n"
    "kubectl debug;=kubectl run\nkubectl exec;1er;cfn;!stdin tty quiet help\n"
    "kubectl run;1er;nlfoc;!command stdin tty rm attach quiet privileged expose help "
    "leave-stdin-open;;\n"
    "ld.so;Lt;;library-path preload audit argv0 inhibit-rpath glibc-hwcaps-prepend "
    "glibc-hwcaps-mask;;list verify help\nlerna;v\nlerna exec;jh;;scope ignore\nless;C\nlima;e\n"
    "limactl;v\nlimactl shell;1er;;workdir shell\nlinux32\nlinux64\nlogsave;1\n"
    "ltrace;;aADeFlnopsuwxX;output library indent\nlua;Y1;el;;e\nlxc;v\n"
    "lxc exec;1er;;env user group cwd\nmachinectl;v\nmachinectl shell;1e;E;uid setenv\n"
    "make;M;CfIloWE;directory file makefile include-dir old-file what-if new-file assume-old "
    "assume-new eval\nmamba;=conda\nman;oh;PCRLmMSsepEr;pager config-file locale manpath;P pager\n"
    "mawk;=awk\nmeson;v\nmeson devenv;;Cw\nmicrok8s;=k3s\nmicromamba;=conda\nminikube;v;p;profile\n"
    "minikube ssh;ej;n;node\nmise;v;CEj;cd env jobs\nmise exec;doh;cCj;command cd jobs;c command\n"
    "mise x;=mise exec\nmispipe;po\nmosh;1er;p;ssh port;ssh\nmultipass;v\nmultipass exec;1er\n"
    "mysql;C;;;e execute\nnawk;=awk\nnc;oh;ceGgiIoPpqsTVwWXx;exec sh-exec;e c exec sh-exec\n"
    "ncat;=nc\nnerdctl;=docker\nnice;;n;adjustment\nnix;C;;;;c command\n"
    "nix-shell;oh;pAIiE;run command attr packages expr;run command\nnocache;;n\n"
    "node;Y2;erC;eval require import loader conditions;e eval\nnodejs;=node\n"
    "nodemon;oh;xwei;exec watch ext ignore;x exec\nnodenv;=pyenv\nnohup\nnomad;v\nnomad alloc;v\n"
    "nomad alloc exec;1er;ie;task job\nnpm;v;Cw;prefix workspace loglevel cache\n"
    "npm exec;h;pcw;package call workspace;c call\nnpm explore;1r\nnpm x;=npm exec\nnpx;=npm exec\n"
    "nsenter;;tSGW;target setuid setgid wdns\nnu;=fish\n"
    "numactl;;imNCpPw;interleave membind cpunodebind physcpubind\nnvim;=vim\nnvm;v\nnvm exec;1\n"
    "nx;v\nnx exec\noc;=kubectl\nonchange;do\nop;v\nop run;doh\nopam;v\nopam exec;;;switch\n"
    "parallel;P;jINLndaSEPs;jobs max-procs max-args max-lines max-replace-args delimiter arg-file "
    "sshlogin colsep joblog timeout delay halt results retries tmpdir workdir wd load memfree nice "
    "seqreplace recstart recend block\npdm;v;pc;project config\npdm run;;p;project\npee;po\n"
    "perf;v\nperf record;;eopCFctGu\nperf stat;;eopCrGxI\nperf trace;=perf record\n"
    "perl;Y3;eEMmIxF;;e E\nphp;Y4;rfdBREFcTz;run define;r run B E R\npipenv;=poetry\npipx;v\n"
    "pipx run;;;spec python pip-args index-url\npixi;v\npixi exec;;sc;spec channel\n"
    "pixi run;;em;environment manifest-path\npixi x;=pixi exec\npkexec;;;user\npkgx\npm2;v\n"
    "pm2 start;poh;ni;name instances interpreter cwd log output error\npnpm;v;CF;dir filter\n"
    "pnpm dlx;th;;package;;c shell-mode\npnpm exec;=pnpm dlx\npodman;=docker\n"
    "podman-compose;=docker compose\npoetry;v;CP;directory project\npoetry run\n"
    "prlimit;;po;pid output\n"
    "proot;;rbqwvkmRS;rootfs bind qemu cwd verbose kernel-release mount pwd\nproxychains;;f\n"
    "proxychains4;;f\npsql;C;;;c command\nptw;oh;;runner;runner\npwsh;Csh;;;c Command command\n"
    "pyenv;v\npyenv exec\npypy;=python\npython;Y5;cmWXQ;;c\nrails;v\n"
    "rails runner;Y6f;e;environment\nrailway;v\nrailway run;;se;service environment\nrbenv;=pyenv\n"
    "reflex;do\nretry;;tdmnis\n"
    "rg;oh;ABCdefgEjMmrtT;pre regexp file glob type type-not max-count max-depth replace "
    "context;pre\nrlwrap;;bCDfgHlMOPqsStwz\n"
    "rsync;oh;efTBM;rsh rsync-path filter include exclude include-from exclude-from files-from "
    "partial-dir temp-dir backup-dir suffix compare-dest copy-dest link-dest log-file "
    "password-file bwlimit max-size min-size timeout port chmod chown info debug out-format;e rsh "
    "rsync-path\nrtx;=mise\nruby;Y6;eIrCEF;;e\nrunc;v\n"
    "runc exec;1er;eupd;cwd env user pid-file process\nruncon;;turlc\n"
    "runuser;R;csgGwu;command session-command shell group supp-group whitelist-environment user\n"
    "rustup;v\nrustup run;1\nrvim;=vim\nrye;=poetry\ns6-envdir;1\ns6-setuidgid;1\nsalloc;=srun\n"
    "saml2aws;v;a\nsaml2aws exec;do\nsbatch;oh;ApJtNncCoeDw;wrap;wrap\nscp;oh;cDFiJloPSX;;o S\n"
    "screen;Ne;cehpsSTt\n"
    "script;W;cEIOBTmo;command echo log-in log-out log-io log-timing logging-format output-limit\n"
    "sed;D;efl;expression file line-length\n"
    "setarch\n"  // the name of the architecture is a wrapper itself
    "setlock;1\n"
    "setpriv;;;ruid euid reuid rgid egid regid groups inh-caps ambient-caps bounding-set "
    "securebits pdeathsig selinux-label apparmor-profile landlock-access landlock-rule\nsetsid\n"
    "setuidgid;1\nsftp;oh;BbcDFiJloPRsSX;;o S s\nsg;1jr;c;;c\nsingularity;=apptainer\nsk;=fzf\n"
    "socat;po;bdtTuUL\nsocksify\nsoftlimit;;madfcrlpsot\nsops;v\nsops exec-env;1jh\n"
    "sops exec-file;=sops exec-env\nsort;oh;koStT;compress-program;compress-program\nspawn\n"
    "split;oh;abClnt;filter;filter\n"
    "srun;;ApJtNncCoeDwGqiK;account partition job-name time nodes ntasks cpus-per-task mem gres "
    "output error\nssh;1eijr;BbcDEeFIiJLlmOoPpQRSWw;;o\nssh-agent;;aEtPO\nsshpass;;pfdP\nstack;v\n"
    "stack exec;;;stack-yaml resolver package\n"
    "start-stop-daemon;;axpunscgrPINdO;!start stop status test oknodo quiet background no-close "
    "make-pidfile remove-pidfile notify-await verbose help;;x exec a startas\n"
    "stdbuf;;ioe;input output error\n"
    "strace;;abeEIoOpPsSuUX;attach output expr env string-limit user summary-sort-by trace-path\n"
    "su;U;csgGw;command session-command shell group supp-group whitelist-environment\nsu-exec;1\n"
    "sudo;a;aCcDgphRrTtUu;close-from chdir group host prompt chroot role command-timeout type "
    "other-user user\nsystemd-cat;;tp;identifier priority\nsystemd-inhibit;;;what who why mode\n"
    "systemd-nspawn;e;DiMuUxEp;directory image machine user bind bind-ro setenv property\n"
    "systemd-run;;puEHM;unit property description slice uid gid nice working-directory setenv "
    "service-type host machine on-active on-boot on-startup on-unit-active on-calendar "
    "timer-property\ntailscale;v\ntailscale ssh;=ssh\n"
    "tar;Th;fCbFgHIKLNTVX;file directory use-compress-program to-command checkpoint-action exclude "
    "transform owner group mode mtime files-from exclude-from format info-script new-volume-script "
    "rsh-command rmt-command strip-components xform;I F use-compress-program to-command "
    "checkpoint-action info-script new-volume-script rsh-command rmt-command\ntaskset;1\n"
    "tcsh;=fish\nteller;v\nteller run;do\ntime;;fo;format output\ntimelimit;;tTsS\n"
    "timeout;1;ks;kill-after signal\ntini;;pe\ntmux;q;cfLST;;c\ntmux bind;=tmux bind-key\n"
    "tmux bind-key;Ze\ntmux command-prompt;Ze\ntmux display-popup;ej;bcdehsStTwxy\n"
    "tmux if;=tmux if-shell\ntmux if-shell;Ze\ntmux new;=tmux new-session\n"
    "tmux new-session;ej;cefFnstxy\ntmux new-window;ej;ceFnt\ntmux neww;=tmux new-window\n"
    "tmux pipe-pane;ej;t\ntmux popup;=tmux display-popup\ntmux respawn-pane;ej;cet\n"
    "tmux respawn-window;ej;cet\ntmux run;=tmux run-shell\ntmux run-shell;ej;cdt\n"
    "tmux send;=tmux send-keys\ntmux send-keys;Se;cNt\ntmux set;=tmux set-option\n"
    "tmux set-hook;Ze\ntmux set-option;Ke;t\ntmux set-window-option;=tmux set-option\n"
    "tmux setw;=tmux set-option\ntmux split-window;ej;ceFlpt\ntmux splitw;=tmux split-window\n"
    "toolbox;v\ntoolbox run;;cdr;container distro release\ntorify\n"
    "torsocks;;uPap;user pass address port\ntox;v;ec\ntox exec;do\ntoybox\ntrickle;;dulwts\ntsh;v\n"
    "tsh ssh;=ssh\ntsocks\nuname26\nunbuffer\n"
    "unshare;;RwSGl;root wd setuid setgid map-users map-groups propagation setgroups load-interp\n"
    "uv;v;;directory project config-file cache-dir color python-preference\n"
    "uv run;;pwfiPCm;!isolated active no-sync locked frozen all-extras no-dev only-dev all-groups "
    "no-default-groups no-editable inexact exact no-env-file verbose quiet offline native-tls "
    "no-progress no-cache no-config refresh reinstall upgrade no-build no-binary no-sources "
    "no-index script gui-script managed-python no-managed-python no-python-downloads all-packages "
    "compile-bytecode dev help\nuv tool;v\nuv tool run;=uv run\nuvx;=uv run\nvagrant;v\n"
    "vagrant ssh;oe;c;command;c command\nvalgrind\nvi;=vim\nviddy;=watch\nview;=vim\n"
    "vim;C;;;c cmd\nvimdiff;=vim\nvolta;v\nvolta run;;;node npm yarn pnpm\nwait-for;=wait-for-it\n"
    "wait-for-it;do\nwait-for-it.sh;=wait-for-it\nwatch;jt;nq;interval equexit;;x exec\n"
    "watchexec;jh;wefiEdsr;watch exts filter ignore env debounce signal shell\nwatchmedo;v\n"
    "watchmedo auto-restart;do\nwatchmedo shell-command;oh;cp;command patterns;c command\n"
    "wsl;e;du;distribution user cd\nx-terminal-emulator;=xterm\nx86_64\n"
    "xargs;X;aEIdLnPs;arg-file delimiter max-args max-procs max-chars process-slot-var\n"
    "xterm;C;;;;e\n"
    "xvfb-run;;efnpsw;error-file auth-file server-num xauth-protocol server-args wait\n"
    "yarn;v;;cwd\nyarn dlx;;p;package\nyarn exec;jh\nyarn workspace;1v\n"
    "yarn workspace exec;=yarn exec\nyarn workspaces;v\nyarn workspaces foreach;v;jp\n"
    "yarn workspaces foreach exec;=yarn exec\nyt-dlp;oh;;exec;exec\nzellij;v\nzellij run;de;dn\n"
    "zip;Csh;;;TT unzip-command\n";

// The name of the row that begins at `at`.
constexpr std::string_view name_of_row(std::size_t at) {
  const std::string_view rest = wrapper_table.substr(at);
  return rest.substr(0, rest.find_first_of(";\n"));
}

// find_wrapper() searches by halves, so the rows are sorted.
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
    "GIT_ASKPASS GIT_PROXY_COMMAND SSH_ASKPASS SUDO_ASKPASS PAGER EDITOR VISUAL FCEDIT MANPAGER "
    "BROWSER LESSOPEN LESSCLOSE PROMPT_COMMAND PS4 RSYNC_RSH";

// The last parts of the names of git's and tmux's settings whose value is a command, besides
// pager.* and alias.*, in small letters.
inline constexpr std::string_view command_settings =
    "pager sshcommand fsmonitor editor helper external askpass gitproxy program packobjectshook "
    "difffilter command textconv driver cmd clean smudge process update uploadpack receivepack "
    "default-command default-shell lock-command copy-command";

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
