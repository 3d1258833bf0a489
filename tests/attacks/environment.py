"""E: the environment."""

from cases import HIDDEN, attack
from judges import shown
from reads import reads

reads("E01", "a variable of the server", "env; export -p; set",
      control_options=["--keep-env", "OPENAI_API_KEY"])
reads("E02", "/proc/self/environ", 'tr "\\0" "\\n" < /proc/self/environ',
      control_options=["--keep-env", "OPENAI_API_KEY"])
WIPED = "the server takes them out of its own memory; R11 and R24 show that it can be read"
reads("E04", "variables of all that stands above",
      'for p in $("$A" ancestors "$RUNNER"); do tr "\\0" "\\n" < /proc/$p/environ; done',
      no_control=WIPED)
reads("E05", "memory of all that stands above",
      'for p in $("$A" ancestors "$RUNNER"); do "$A" memory-dump $p; done',
      no_control=WIPED)
reads("E06", "the server's standard input",
      'for p in $("$A" ancestors "$RUNNER"); do timeout 1 head -n 1 /proc/$p/fd/0; done',
      no_control_user=HIDDEN)
reads("E07", "one's own standard input", "timeout 1 cat; timeout 1 head -n 1 < /dev/stdin",
      no_control="no command gets the server's standard input, with or without a sandbox")
reads("E08", "a secret variable in the output", 'echo "$ATTACK_SECRET"; env',
      options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"])
reads("E09", "a secret variable in two pieces",
      'printf %s "${ATTACK_SECRET%????????}"; sleep 0.1; printf %s "${ATTACK_SECRET#"${'
      'ATTACK_SECRET%????????}"}"',
      options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"])
reads("E10", "a secret variable in the error output", 'echo "x${ATTACK_SECRET}x" >&2',
      options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"])


def forged(case, run):
    return "the server's output was forged" if "forged" in run.before else None


attack("E11", "write to the server's standard output", forged,
       'for p in $("$A" ancestors "$RUNNER"); do echo forged > /proc/$p/fd/1; done',
       no_control_user=HIDDEN)
attack("E12", "write to the server's error output",
       lambda case, run: "it was forged" if "forged" in run.err else None,
       'for p in $("$A" ancestors "$RUNNER"); do echo forged > /proc/$p/fd/2; done',
       no_control_user=HIDDEN)
reads("E14", "take the server's standard input",
      'for p in $("$A" ancestors "$RUNNER"); do timeout 1 "$A" take-descriptor $p 0; done',
      no_control_user=HIDDEN)

attack("E15", "the socket of an ssh-agent", shown("^SSH_AUTH_SOCK=."), "env",
       setup=lambda case: case.environment.update(SSH_AUTH_SOCK=case.path("out/agent")),
       control_options=["--keep-env", "SSH_AUTH_SOCK"])
for number, more, network in ((16, ["--pid-namespace"], "none"), (18, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    reads(f"E{number}", f"variables of all that stands above, with {how}",
          'for p in 1 $PPID $("$A" ancestors "$RUNNER"); do tr "\\0" "\\n" < /proc/$p/environ;'
          ' done', options=more, network=network, no_control="as E04")
    reads(f"E{number + 1}", f"memory of all that stands above, with {how}",
          'for p in 1 $("$A" ancestors "$RUNNER"); do "$A" memory-dump $p;'
          ' timeout 1 head -n 1 /proc/$p/fd/0; done', options=more, network=network,
          no_control="as E05")
