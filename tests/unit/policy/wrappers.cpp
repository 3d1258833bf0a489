// The strict policy: programs that start another one or hand a script to a shell, and harmless uses.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>

#include "helpers.hpp"

using support::lists;
using support::passes;
using support::refuses;
using support::strict;

TEST_CASE("policy: what ssh, containers and terminals run is judged") {
  refuses(strict(), "sudo",
          {"ssh h 'sudo rm -rf /'",
           "ssh host sudo id",
           "ssh -t host 'sudo id'",
           "ssh -p 22 -i key user@host -- sudo id",
           "ssh host -t 'sudo id'",
           "ssh -o StrictHostKeyChecking=no host 'cd /x && sudo id'",
           "ssh -o ProxyCommand='sudo nc %h %p' host",
           "ssh -oProxyCommand='sudo nc' host ls",
           "ssh -o 'ProxyCommand sudo nc' host",
           "ssh host <<'E'\nsudo id\nE",
           "ssh host \"cd $DIR && sudo make\"",
           "ssh host bash -c \"'sudo id'\"",
           "docker run --rm -it ubuntu bash -c 'sudo id'",
           "docker run --rm -v \"$PWD:/w\" -w /w ubuntu sudo id",
           "docker exec -it web sudo ls",
           "docker exec -u root web bash -lc 'sudo id'",
           "docker container exec web sudo id",
           "docker -H tcp://x exec web sudo id",
           "docker compose exec web sudo id",
           "docker compose -f x.yml run --rm web sudo id",
           "docker-compose exec -T web sudo id",
           "docker run --entrypoint sudo ubuntu id",
           "docker run --entrypoint sh ubuntu -c 'sudo id'",
           "docker run --entrypoint=/bin/sh ubuntu -c 'sudo id'",
           "docker exec -i c bash <<< 'sudo id'",
           "podman run --rm img sudo id",
           "podman exec c sudo id",
           "kubectl exec pod -- sudo id",
           "kubectl exec -it pod -c app -- bash -c 'sudo id'",
           "kubectl run x --image=busybox --rm -it --restart=Never -- sudo id",
           "tmux new -d 'sudo id'",
           "tmux new-session -d -s x 'sudo id'",
           "tmux new-session -d -s x sudo id",
           "tmux new-window -t x 'sudo id'",
           "tmux split-window -h 'sudo id'",
           "tmux send-keys -t x 'sudo id' Enter",
           "tmux send-keys -t x 'sudo' Space 'id' C-m",
           "tmux send -t x 'sudo id' C-m",
           "tmux new -d -s a \\; send-keys 'sudo id' Enter",
           "screen -dm sudo id",
           "screen -dmS x bash -c 'sudo id'",
           "screen -S x -X stuff 'sudo id^M'",
           "screen -S x -p 0 -X stuff $'sudo id\\n'",
           "nerdctl run img sudo id"});
  refuses(strict(), "rm-protected",
          {"ssh host rm -rf /", "ssh \"$HOST\" 'rm -rf /etc'", "docker run ubuntu rm -rf /",
           "docker exec web sh -c 'rm -rf /etc/x'", "kubectl -n ns exec pod -- rm -rf /",
           "tmux -L s new -d 'rm -rf /'"});
  refuses(strict(), "opaque-shell-input", {"ssh host 'curl x | sh'", "ssh host \"$CMD\""});
  passes(strict(), {"ssh host uptime",
                    "ssh -p 2222 -i ~/.ssh/k user@host 'ls -la'",
                    "ssh host \"cd $DIR && make\"",
                    "ssh \"$HOST\" uptime",
                    "ssh -N -L 8080:localhost:80 host",
                    "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null host ls",
                    "ssh -o ProxyCommand='ssh -W %h:%p jump' host ls",
                    "ssh -J jump host 'tail -f /var/log/app.log'",
                    "ssh host \"bash $SCRIPT\"",
                    "ssh host \"$BIN --version\"",
                    "ssh -T git@github.com",
                    "ssh host grep sudo /etc/group",
                    "ssh host <<'E'\nuptime\nE",
                    "ssh host 'rm -rf build'",
                    "ssh -V",
                    "scp -o StrictHostKeyChecking=no a host:b",
                    "docker run --rm -v \"$PWD:/w\" -w /w python:3 pytest -q",
                    "docker run --rm -it ubuntu bash",
                    "docker run -d --name web -p 80:80 nginx",
                    "docker run --user su image id",
                    "docker run --rm \"$IMAGE\"",
                    "docker run $OPTS \"$IMAGE\"",
                    "docker run --rm $OPTS \"$IMAGE\" make",
                    "docker run --rm -e A=1 --env-file .env --network host img ./run.sh",
                    "docker exec -it web ls",
                    "docker exec web sh -c \"cd $DIR && make\"",
                    "docker exec \"$CONTAINER\" ls",
                    "docker compose exec web python manage.py migrate",
                    "docker compose up -d",
                    "docker compose run --rm web pytest",
                    "docker compose exec -T db psql -U u -c 'select 1'",
                    "docker rm -f web",
                    "docker build -t sudo .",
                    "docker ps -q --filter name=sudo",
                    "docker run --entrypoint bash img -c 'make test'",
                    "docker run --rm --entrypoint '' img ls",
                    "podman run --rm img ls",
                    "kubectl exec pod -- ls",
                    "kubectl exec -it pod -c app -- bash",
                    "kubectl get pods -n sudo",
                    "kubectl delete pod rm",
                    "kubectl run x --image=busybox --rm -it --restart=Never -- sh",
                    "kubectl logs sudo",
                    "tmux ls",
                    "tmux send-keys -t 0 'make' Enter",
                    "tmux send-keys -t 0 C-c",
                    "tmux send-keys -t 0 \"cd $DIR && make\" Enter",
                    "tmux send-keys -t sudo 'q'",
                    "tmux new -d -s sudo",
                    "tmux new-session -d -s x 'python server.py'",
                    "tmux kill-session -t sudo",
                    "tmux capture-pane -p -t x",
                    "screen -ls",
                    "screen -dmS sudo python server.py",
                    "screen -S x -X quit",
                    "screen -r sudo",
                    "screen -S x -X stuff 'make^M'"});
}

TEST_CASE("policy: settings of git that are commands are judged, and what git starts") {
  refuses(strict(), "sudo",
          {"git -c alias.x='!sudo id' x", "git -c alias.x='!f() { sudo id; }; f' x",
           "git -c core.pager='sudo less' log", "git -c core.sshCommand='sudo ssh' fetch",
           "git -c core.fsmonitor='sudo id' status", "git -c core.editor='sudo vi' commit",
           "git -c sequence.editor='sudo vi' rebase -i HEAD~2",
           "git -c credential.helper='!sudo id' fetch", "git -c diff.external='sudo diff' diff",
           "git -c CORE.PAGER='sudo id' log", "git config alias.x '!sudo id'",
           "git config --global core.pager 'sudo id'", "git submodule foreach 'sudo id'",
           "git submodule foreach --recursive sudo id", "git bisect run sudo id",
           "git bisect run sh -c 'sudo id'", "git rebase --exec 'sudo id' main",
           "git rebase -x 'sudo id' main", "git filter-branch --tree-filter 'sudo id' HEAD"});
  refuses(strict(), "rm-protected", {"git -C x -c core.pager='rm -rf /' log"});
  passes(strict(), {"git -c user.name=x commit",
                    "git -c core.pager=cat log",
                    "git -c core.editor=true rebase --continue",
                    "git -c alias.st=status st",
                    "git -c alias.x='!git status' x",
                    "git -c color.ui=false diff",
                    "git -c core.sshCommand=\"ssh -i $KEY\" fetch",
                    "git -c core.hooksPath=/dev/null commit -m x",
                    "git -c credential.helper= fetch",
                    "git -c credential.helper=store fetch",
                    "git -c safe.directory='*' status",
                    "git config user.name sudo",
                    "git config --get alias.x",
                    "git config core.hooksPath .githooks",
                    "git config --global alias.st 'status -sb'",
                    "git submodule foreach 'git pull'",
                    "git submodule foreach --recursive git clean -fd",
                    "git submodule update --init",
                    "git bisect run make test",
                    "git bisect start HEAD v1",
                    "git rebase --exec 'make test' main",
                    "git commit -m 'sudo'"});
}

TEST_CASE("policy: variables whose value is a command are judged") {
  refuses(
      strict(), "sudo",
      {"GIT_SSH_COMMAND='sudo ssh' git fetch", "GIT_PAGER='sudo less' git log",
       "GIT_EDITOR='sudo vi' git commit", "PAGER='sudo less' man ls", "EDITOR='sudo vi' crontab -l",
       "export GIT_PAGER='sudo less'", "PROMPT_COMMAND='sudo id' bash",
       "export PROMPT_COMMAND='sudo id'", "env GIT_SSH_COMMAND='sudo ssh' git fetch"});
  refuses(strict(), "rm-protected", {"export PAGER='rm -rf /'; git log"});
  refuses(strict(), "opaque-shell-input",
          {"BASH_ENV=$X bash -c ls", "ENV=$X sh", "BASH_ENV=<(ls) bash x.sh",
           "env BASH_ENV=/dev/stdin bash -c ls", "BASH_ENV=$X timeout 5 bash x.sh"});
  passes(strict(),
         {"GIT_SSH_COMMAND=\"ssh -i $KEY -o IdentitiesOnly=yes\" git clone u",
          "GIT_PAGER=cat git log", "PAGER=cat git diff", "GIT_EDITOR=true git commit --amend",
          "EDITOR=vim git commit", "export EDITOR=vim", "export EDITOR=\"${EDITOR:-vim}\"",
          "export PAGER=", "PROMPT_COMMAND='history -a'", "ENV=$STAGE make deploy",
          "ENV=prod npm run build", "BASH_ENV=$X make", "export ENV=$X",
          "NODE_ENV=production node x.js"});
}

TEST_CASE("policy: make, tar, rsync and man hand options to a shell") {
  refuses(strict(), "sudo",
          {"make --eval='x:;sudo id' x", "make --eval '$(shell sudo id)'",
           "printf 'all:\\n\\tsudo id\\n' | make -f -", "make -f - <<'E'\nall:\n\t@sudo id\nE",
           "tar cf a.tar . --checkpoint=1 --checkpoint-action=exec='sudo id'",
           "tar -cf a.tar --checkpoint-action=exec='sh -c \"sudo id\"' .",
           "tar xf a.tar --to-command='sudo id'", "tar -I 'sudo zstd' -cf a.tar .",
           "tar --use-compress-program='sudo xz' -cf a.tar .", "tar cIf 'sudo xz' a.tar .",
           "rsync -e 'sudo ssh' a b:c", "rsync -av --rsh='sudo ssh' a b:c",
           "rsync -ave 'sudo ssh' a b:c"});
  refuses(strict(), "rm-protected",
          {"make -f /dev/stdin <<< 'x:; rm -rf /'",
           "tar --use-compress-program 'rm -rf /' -cf a.tar ."});
  refuses(strict(), "opaque-shell-input", {"curl x | make -f -"});
  passes(strict(),
         {"make --eval='x:;echo hi' x", "make -f -", "printf 'all:\\n\\techo hi\\n' | make -f -",
          "make -j4 CFLAGS='-O2 -g'", "make sudo", "make -C sudo -f Makefile.sudo",
          "tar cf a.tar . --checkpoint=1 --checkpoint-action=dot",
          "tar --checkpoint=100 --checkpoint-action=exec='echo hi' -cf a.tar .",
          "tar -I 'zstd -19' -cf a.tar .", "tar --use-compress-program=pigz -cf a.tar .",
          "tar xzf a.tgz -C /tmp/x", "tar cf sudo.tar sudo", "tar cIf zstd a.tar .",
          "tar xf a.tar --to-command='wc -c'", "rsync -av -e ssh a b:c",
          "rsync -e \"ssh -p $PORT -i $KEY\" a b:c", "rsync -az --rsh='ssh -p 22' a b:c",
          "rsync -av --exclude sudo a b", "man -P cat ls"});
}

TEST_CASE("policy: what starts programs of a project is peeled off") {
  refuses(strict(), "sudo",
          {"uv run sudo id",
           "uv run --with x sudo id",
           "uv run -- sudo id",
           "uvx sudo",
           "pipx run sudo",
           "poetry run sudo id",
           "pipenv run sudo id",
           "conda run -n base sudo id",
           "conda run --name base --no-capture-output sudo id",
           "bundle exec sudo id",
           "npx -c 'sudo id'",
           "npx --call 'sudo id'",
           "npx --call='sudo id'",
           "npx -p x -c 'sudo id'",
           "npm exec -- sudo id",
           "npm exec -c 'sudo id'",
           "npm x -- sudo id",
           "pnpm exec sudo id",
           "pnpm exec -c 'sudo id'",
           "yarn exec sudo id",
           "cross-env A=1 sudo id"});
  refuses(strict(), "rm-protected", {"yarn exec 'rm -rf /'"});
  passes(strict(), {"uv run pytest",
                    "uv run --with sudo pytest",
                    "uv run python -m sudo",
                    "uv run python -c 'print(\"sudo\")'",
                    "uvx ruff check",
                    "uv pip install sudo",
                    "uv sync",
                    "pipx run black .",
                    "poetry run pytest -k sudo",
                    "poetry add sudo",
                    "pipenv run python x.py",
                    "conda run -n sudo python x.py",
                    "conda install sudo",
                    "bundle exec rspec",
                    "npx jest",
                    "npx -c 'jest --ci'",
                    "npx --yes create-react-app sudo",
                    "npx -p typescript tsc",
                    "npm exec -- eslint .",
                    "npm run sudo",
                    "npm exec jest",
                    "pnpm exec tsc",
                    "yarn exec jest",
                    "yarn add sudo",
                    "cross-env NODE_ENV=production webpack"});
}

TEST_CASE("policy: sed, vim and gdb have commands for a shell") {
  refuses(strict(), "sudo",
          {"sed '1e sudo id' f", "sed -n '$e sudo id' f", "sed -e '/x/e sudo id' f",
           "sed 's/.*/sudo id/e' f", "sed -E 's/(x)/sudo \\1/e' f", "echo 'sudo id' | sed 's/^//e'",
           "sed --expression='1!e sudo id' f", "sed '1,3{p;e sudo id\n}' f", "vim -c '!sudo id' f",
           "vim -c ':!sudo id' f", "vim '+!sudo id' f", "vim -es -c ':silent !sudo id' -c ':q' f",
           "nvim --cmd '!sudo id'", "vim -c 'call system(\"sudo id\")'", "gdb -ex 'shell sudo id'",
           "gdb -batch -ex '!sudo id' ./a", "gdb --eval-command='shell sudo id'",
           "gdb -q --args sudo id"});
  refuses(strict(), "rm-protected", {"sed 's|x|rm -rf /|ge' f", "vi -c '!rm -rf /' f"});
  refuses(strict(), "opaque-shell-input", {"sed e f"});
  passes(strict(), {"sed -e s/e/e/",
                    "sed '/e/d'",
                    "sed 's/sudo/x/g' f",
                    "sed -i 's/e/sudo/' f",
                    "sed '1e date' f",
                    "sed 's/.*/date/e' f",
                    "sed -n '/sudo/p' f",
                    "sed 'y/abc/sud/' f",
                    "sed '/x/a sudo rm -rf /' f",
                    "sed 's|/usr/bin|/bin|;s/e$//' f",
                    "sed -e '1i\\' -e 'sudo' f",
                    "sed ':a;N;$!ba;s/\\n/ /g' f",
                    "sed \"s/x/y$Y/e\" f",
                    "sed --expression='s/a/b/' f",
                    "sed -f x.sed f",
                    "sed '$!d' f",
                    "sed 's/a/b/w out.txt' f",
                    "vim -c ':q' f",
                    "vim -c ':wq!' f",
                    "vim +10 f",
                    "vim +/sudo f",
                    "vim -c '%s/sudo/x/g' -c ':wq' f",
                    "vim -es -c 'set number!' f",
                    "vim -c '!make' f",
                    "gdb -ex run -ex bt --args ./app sudo",
                    "gdb -batch -ex 'shell ls' ./a",
                    "gdb -p 1",
                    "gdb -ex 'break sudo' ./a"});
}

TEST_CASE("policy: find starts what it finds only below the workspace") {
  refuses(strict(), "unknown-command",
          {"find /usr/bin -name sudo -exec {} id \\;", "find /usr/bin -name id -exec {} \\;",
           "find / -maxdepth 3 -name ls -execdir {} \\;", "find /bin /tmp -type f -ok {} \\;",
           "find ../.. -type f -exec {} \\;", "find /usr/bin -name id -exec env {} \\;",
           "find $X -name t -exec {} \\;", "cd /usr/bin && find . -name id -exec {} \\;"});
  refuses(strict(), "sudo", {"find . -name sudo -exec {} id \\;"});
  passes(strict(),
         {"find . -type f -name '*_test' -exec {} \\;",
          "find build -name 'test_*' -type f -exec {} --quick \\;",
          "find . -name '*.sh' -execdir {} \\;",
          "find ./build/tests -perm -u+x -exec timeout 5 {} \\;", "find / -name x -exec ls {} \\;",
          "find /usr/bin -name sudo -exec ls -l {} \\;", "find . -name sudo",
          "find /usr -name '*.so' -exec sh -c 'file \"$1\"' _ {} \\;"});
}

TEST_CASE("policy: xargs and parallel read ~ and patterns as a shell means them") {
  refuses(strict(), "rm-protected",
          {"xargs rm -rf <<< '~'", "xargs rm -rf <<< '/home/*'", "xargs -I{} rm -rf {} <<< '~/*'",
           "parallel rm -rf <<< '~'", "parallel rm -rf <<< '/home/*'"});
  passes(strict(), {"xargs rm -rf <<< \"build x~\"", "xargs rm -f <<< '*.o'",
                    "xargs grep sudo <<< '~/x'", "xargs rm -rf <<< 'a~ b*'",
                    "parallel echo ::: a b", "printf '%s\\n' '*.py' | xargs grep -n sudo"});
}

TEST_CASE("policy: other programs that start one") {
  refuses(strict(), "sudo",
          {"start-stop-daemon --start --exec /usr/bin/sudo -- id",
           "start-stop-daemon -S -x sudo -- id",
           "start-stop-daemon --start --startas /bin/sh -- -c 'sudo id'",
           "systemd-run sudo id",
           "systemd-run --user --scope sudo id",
           "/lib64/ld-linux-x86-64.so.2 /usr/bin/sudo id",
           "ld.so sudo id",
           "chroot /mnt sudo id",
           "unshare -r sudo id",
           "nsenter -t 1 -m -- sudo id",
           "flock /tmp/l sudo id",
           "flock /tmp/l -c 'sudo id'",
           "flock -c 'sudo id' /tmp/l",
           "script -qc 'sudo id' /dev/null",
           "script -c 'sudo id'",
           "script x -- sudo id",
           "taskset -c 0 sudo id",
           "strace -f -o out sudo id",
           "fakeroot sudo id",
           "fakeroot -- sudo id",
           "toybox sudo id",
           "sg x -c 'sudo id'",
           "sg x 'sudo id'"});
  refuses(strict(), "rm-protected", {"/lib/ld-linux.so.2 --library-path /x /bin/rm -rf /"});
  passes(strict(),
         {"start-stop-daemon --start --pidfile /run/x.pid --exec /usr/bin/app -- --port 80",
          "start-stop-daemon --stop --name sudo", "systemd-run --user --unit sudo make",
          "/lib64/ld-linux-x86-64.so.2 --list /usr/bin/sudo", "/lib64/ld-linux-x86-64.so.2 ./app",
          "strace -f -o out ls", "strace -e trace=open -p 1", "flock -n /tmp/l make",
          "flock -w 5 /tmp/l -c 'make test'", "script -qc 'make' /dev/null", "script out.txt",
          "chroot /mnt ls", "taskset -c 0,1 make", "fakeroot dpkg-deb -b x", "unshare -n pytest",
          "sg x -c ls"});
}

TEST_CASE("policy: the block list sees what wrappers run") {
  refuses(
      strict(lists({}, {"git push.*"})), "blocked-commands",
      {"ssh h git push", "ssh h 'cd x && git push'", "docker run --rm img git push",
       "kubectl exec p -- git push", "tmux send-keys 'git push' Enter", "uv run git push",
       "git -c alias.x='!git push' x", "PAGER='git push' man ls", "npx -c 'git push'",
       "sed '1e git push' f", "vim -c '!git push'", "make --eval='x:;git push'",
       "tar -I 'git push' -cf x .", "find . -exec git push \\;", "npm --prefix x exec git push"});
}

TEST_CASE("policy: what may be the command of a wrapper is bounded") {
  std::string script = "docker";
  for (int i = 0; i < 5000; ++i) script += " container";
  CHECK(strict().check(script).rule == "command-too-complex");
  script = "tmux";
  for (int i = 0; i < 500; ++i) script += " send-keys x \\;";
  CHECK(strict().check(script).allowed);
}

TEST_CASE("policy: find starts what lies in a workspace that is known") {
  passes(strict(), {"find . -name '*_test' -exec {} \\;", "cd build && find . -exec {} \\;"},
         "/work/p");
  refuses(strict(), "unknown-command",
          {"cd .. && find . -exec {} \\;", "cd /usr/bin; find . -exec ./{} \\;"}, "/work/p");
  refuses(strict(), "unknown-command", {"find . -exec {} \\;"}, "/usr/bin");
}

TEST_CASE("policy: files of commands that run elsewhere are not files of this machine") {
  CHECK(strict().judge("ssh host 'rm -rf build; cat /x > y'").files.empty());
  CHECK(strict().judge("docker exec c rm x").files.empty());
  CHECK(strict().judge("uv run rm x").files.size() == 1);
}
