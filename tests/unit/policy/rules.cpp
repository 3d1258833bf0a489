// The strict policy: what each rule refuses, and what it lets pass.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Policy;
using codeexec::PolicyOptions;
using support::blamed;
using support::check_form;
using support::make;
using support::passes;
using support::refuses;
using support::rule_of;
using support::strict;
using namespace std::string_view_literals;

TEST_CASE("policy: the rules have their names and their order, and say what they do") {
  struct Row {
    std::string_view name;
    bool compat;
  };
  const std::vector<Row> rows = {{"sudo", true},
                                 {"su", true},
                                 {"chmod", true},
                                 {"chown", true},
                                 {"dd", true},
                                 {"mkfs", false},
                                 {"disk-tools", false},
                                 {"mount", false},
                                 {"device-write", true},
                                 {"rm-protected", true},
                                 {"rm-unset-variable", false},
                                 {"mv-dev-null", true},
                                 {"fork-bomb", true},
                                 {"end-machine", false},
                                 {"kill-all", false},
                                 {"machine-settings", false},
                                 {"accounts", false},
                                 {"host-access", false},
                                 {"plant", false},
                                 {"opaque-shell-input", false},
                                 {"unknown-command", false}};
  const auto rules = Policy::rules();
  REQUIRE(rules.size() == rows.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CHECK(rules[i].name == rows[i].name);
    CHECK(std::string_view(rules[i].message) != "");
    CHECK(std::string_view(rules[i].description).size() > 20);
    CHECK(rules[i].compat == rows[i].compat);
  }
}

TEST_CASE("policy: strict is the default") {
  CHECK(!PolicyOptions().compat);
  CHECK(make({}).judge("rm -fr /"sv).verdict.rule == "rm-protected");
}

TEST_CASE("policy: S1: programs that give other rights are refused") {
  refuses(strict(), "sudo",
          {"sudo ls", "sudo", "sudoedit /etc/hosts", "doas ls", "pkexec ls", "/usr/bin/sudo ls",
           "./sudo x", "ls; sudo ls", "ls | sudo tee x", "true && sudo ls", "s\\udo ls",
           "s''u\"d\"o ls", "$'\\x73udo' ls", "X=sudo; $X ls", "$(echo sudo) ls", "A=1 sudo ls",
           "2>/dev/null sudo ls", "echo \"$(sudo ls)\"", "sudo -u bob FOO=1 chown x y"});
  refuses(strict(), "su", {"su", "su - bob", "su -c ls bob", "runuser -u bob ls", "/bin/su"});
  passes(strict(), {"which sudo",
                    "command -v sudo",
                    "command -V su",
                    "type sudo",
                    "man su",
                    "grep sudo README.md",
                    "./su.sh",
                    "python su.py",
                    "cat su.txt",
                    "echo sudo",
                    "git commit -m 'drop sudo'",
                    "sudoku",
                    "issue",
                    "# sudo",
                    "ls # sudo x",
                    "cat <<'E'\nsudo ls\nE",
                    "cat > x.sh <<E\nsudo ls\nE",
                    "apt-get install sudo",
                    "echo '$(sudo ls)'",
                    "jq '.sudo' f.json",
                    "SUDO x"});
}

TEST_CASE("policy: S2: chown is refused, and chmod where it gives too much") {
  refuses(strict(), "chmod",
          {"chmod 777 x",
           "chmod 0666 x",
           "chmod 757 x",
           "chmod o+w x",
           "chmod a=rwx,u+x x",
           "chmod go=rw x",
           "chmod 4755 x",
           "chmod 2755 x",
           "chmod 3777 x",
           "chmod u+s x",
           "chmod +s x",
           "chmod u=rwxs x",
           "chmod --reference=a b",
           "chmod --ref a b",
           "chmod o=u x",
           "chmod a+g x",
           "chmod $MODE x",
           "chmod \"u+$X\" x",
           "chmod -x,o+w x",
           "chmod -v 777 x",
           "chmod --version 777 x",
           "/bin/chmod 777 y",
           "env chmod 777 x",
           "chmod -R 755 /",
           "chmod -R u+w ~",
           "chmod --recursive go-w /etc",
           "cd / && chmod -R u+w .",
           "find / -type f -exec chmod 644 {} +",
           "install -m 4755 a b",
           "install -m0666 a b",
           "install --mode=$M a b",
           "mkdir -m 777 d",
           "mkdir -p --mode=a+rwx d",
           "setfacl -m o::rwx f",
           "setfacl -Rm u:bob:rx,other:rw f",
           "setfacl -m d:o::7 d",
           "setfacl -M acl f",
           "setfacl -m \"$ACL\" f",
           "setfacl -R -m u:bob:rx /etc"});
  passes(strict(), {"chmod +x x.sh",
                    "chmod 755 x",
                    "chmod 0644 x",
                    "chmod -R u+w build",
                    "chmod -R a+rX .",
                    "chmod +w x",
                    "chmod =rw x",
                    "chmod +rwx x",
                    "chmod -w x",
                    "chmod o-w x",
                    "chmod go= x",
                    "chmod 1777 d",
                    "chmod +t d",
                    "chmod a+rwxt d",
                    "chmod a+w,+t d",
                    "chmod a+w,o-w d",
                    "chmod u-s x",
                    "chmod g=u x",
                    "chmod +x \"$f\"",
                    "chmod 755 $FILES",
                    "chmod 644 /etc/x",
                    "find src -exec chmod 644 {} +",
                    "chmod --help",
                    "chmod --version",
                    "install -m 755 a b",
                    "mkdir -m 1777 d",
                    "mkdir -p d",
                    "setfacl -m o::rx f",
                    "setfacl -m u:bob:rwx f",
                    "setfacl -b f"});
  refuses(strict(), "chown", {"chown root x", "chown -R a:b .", "find . -exec chown x {} +"});
  passes(strict(), {"echo chmod", "cat chown.md", "git update-index --chmod=+x f", "chgrp x y",
                    "python -c 'import os; os.chmod(1,2)'", "grep -r chmod ."});
}

TEST_CASE("policy: S3: disks are not formatted, wiped or copied over") {
  refuses(strict(), "dd", {"dd if=/dev/zero of=/dev/sda", "d''d if=x", "dd if=a of=b", "/bin/dd"});
  refuses(strict(), "mkfs",
          {"mkfs /dev/sda", "mkfs.ext4 /dev/sda", "cd /dev; mke2fs sda", "wipefs -a /dev/sda",
           "shred /dev/sda", "shred -n 3 //dev/vda"});
  refuses(strict(), "disk-tools",
          {"mkswap /dev/sda2", "echo d | fdisk /dev/sda", "sfdisk /dev/sda < x",
           "sgdisk -Z -p /dev/sda", "parted /dev/sda mklabel gpt",
           "parted -s /dev/sda mklabel gpt print", "blkdiscard /dev/sda",
           "cryptsetup luksFormat /dev/sda1", "losetup /dev/loop0 x.img", "losetup -D", "swapon -a",
           "swapoff --all", "swapoff /dev/sda2", "cd /dev && fdisk sda", "env fdisk /dev/sda"});
  refuses(strict(), "mount",
          {"mount /dev/sda1 /mnt", "mount -a", "mount -o remount,rw /", "mount --bind a b",
           "umount /mnt", "umount -a", "umount -l x", "/bin/mount x y"});
  passes(strict(), {"mkfs.vfat x.img",
                    "mke2fs x",
                    "mkswap swapfile",
                    "losetup -f disk.img",
                    "losetup -f",
                    "losetup -a",
                    "losetup --list",
                    "fdisk -l",
                    "fdisk -l /dev/sda",
                    "sfdisk --list",
                    "parted /dev/sda print",
                    "parted -l",
                    "parted x.img mklabel gpt",
                    "swapon --show",
                    "cryptsetup status /dev/mapper/x",
                    "sgdisk -p /dev/sda",
                    "mount",
                    "mount -l",
                    "mount -t ext4",
                    "mount --version",
                    "umount --help",
                    "echo mount /dev/sda1"});
  passes(strict(), {"git add dd.txt", "echo dd", "grep -n dd x", "ls dd/", "git add . # dd",
                    "jq '.scripts.dd' p.json", "ddrescue x", "shred -u secret.txt",
                    "shred /dev/shm/x", "cat mkfs.md"});
}

TEST_CASE("policy: S3: devices are not written to") {
  refuses(strict(), "device-write",
          {"echo x > /dev/sda",
           "echo x >> /dev/nvme0n1",
           "echo x >| /dev/vda",
           "x &> /dev/mmcblk0",
           "x 2> /dev/sdb",
           "x >& /dev/sdb",
           "x <> /dev/sdb",
           "> /dev/sda",
           "x | tee /dev/sda",
           "tee -a /dev/null /dev/sda < x",
           "cp x /dev/sda",
           "cp x /dev/",
           "cp -t /dev x",
           "cp --target-directory=/dev x",
           "mv x /dev/sda",
           "install x /dev/sda",
           "ln -sf x /dev/sda",
           "truncate -s 0 /dev/sda",
           "curl -sSo /dev/sda u",
           "wget -O /dev/sda u",
           "sort -o /dev/sda x",
           "sed -i s/a/b/ /dev/sda",
           "x > //dev//sda",
           "x > /dev/../dev/sda",
           "x > /tmp/../dev/sda",
           "x > /dev/$X",
           "cd /dev; x > sda",
           "cd /; x > dev/sda",
           "cd /dev/shm && x > ../sda",
           "x > /de?/sda",
           "x > /dev/sd*",
           "{ x; } > /dev/sda",
           "(x) > /dev/sda",
           "exec 3> /dev/sda",
           "for i in 1; do x; done > /dev/sda",
           "X=/dev/sda; echo > $X",
           "x > /dev/shm/../sda",
           "find . -fprint /dev/sda",
           "cat x | sponge /dev/sda",
           "curl --output /dev/sda u",
           "rsync x /dev/sda",
           "scp h:x /dev/sda",
           "tar cf /dev/sda .",
           "cd /dev; wget -Osda u"});
  passes(strict(), {"x > /dev/null",
                    "x 2>&1 > /dev/null",
                    "x > /dev/zero",
                    "x > /dev/full",
                    "x > /dev/random",
                    "x > /dev/urandom",
                    "x > /dev/stdin",
                    "x > /dev/stdout",
                    "x > /dev/stderr",
                    "x > /dev/tty",
                    "x > /dev/ptmx",
                    "x > /dev/fd/3",
                    "x > /dev/pts/0",
                    "x > /dev/shm/f",
                    "cp x /dev/shm",
                    "cp x /dev/null",
                    "x < /dev/sda",
                    "cat /dev/sda",
                    "x > dev/sda",
                    "x > $X",
                    "x > /tmp/dev/sda",
                    "cp /dev/sda x",
                    "ls /dev",
                    "x > '~/dev/sda'",
                    "x >&2",
                    "x > /dev/tcp/h/80",
                    "x > /dev/udp/h/53",
                    "scp x h:/dev/sda",
                    "rsync -a a/ h:/dev/x"});
  refuses(strict(), "device-write", {"x > sda"}, "/dev");
  passes(strict(), {"x > sda"}, "/tmp");
}

TEST_CASE("policy: S4: rm does not remove what is protected") {
  refuses(strict(), "rm-protected",
          {"rm -rf /",
           "rm -fr /",
           "rm -r -f /",
           "rm -R /",
           "rm -rf -- /",
           "rm / -rf",
           "rm -vrf /",
           "rm --recursive --force /",
           "rm --rec /",
           "rm -rf --no-preserve-root /",
           "rm -rf \"/\"",
           "rm -rf /.",
           "rm -rf //",
           "rm -rf /..",
           "rm -rf /tmp/..",
           "rm -rf /tmp/../etc/x",
           "r\\m -rf /",
           "'rm' -rf /",
           "/bin/rm -rf /",
           "rm -rf /*",
           "rm -rf /.*",
           "rm -rf /?*",
           "rm -rf /tmp",
           "rm -rf /home",
           "rm -rf /var/",
           "rm -rf /workspace",
           "rm -rf /etc",
           "rm -rf /etc/passwd",
           "rm -rf /usr/share/x",
           "rm -rf /root/x",
           "rm -rf /lib64/x",
           "rm -rf /boot /tmp/x",
           "rm -rf /e*/passwd",
           "rm -rf /[e]tc/x",
           "rm -rf /$X",
           "rm -rf /$X/y",
           "rm -rf /etc/$X",
           "rm -rf ~",
           "rm -rf ~/",
           "rm -rf ~/.",
           "rm -rf ~/*",
           "rm -rf ~/.*",
           "rm -rf ~/.[!.]*",
           "rm -rf ~bob",
           "rm -rf ~bob/*",
           "rm -rf $HOME",
           "rm -rf \"$HOME\"",
           "rm -rf \"${HOME}\"/*",
           "rm -rf ~/..",
           "rm -rf ~/a/..",
           "rm -rf /home/u",
           "rm -rf /home/u/",
           "rm -rf /home/u/*",
           "rm -rf /home/*",
           "rm -rf /home/$USER",
           "rm -rf /Users/u",
           "rm -rf /var/*",
           "rm -rf /opt/*",
           "rm -rf /srv/*",
           "rm -rf /mnt/*",
           "rm -rf /{bin,tmp/x}",
           "rm $OPTIONS /",
           "for i in /tmp/x /etc; do rm -rf \"$i\"; done",
           "X=/; rm -rf $X",
           "rm -rf ${X:-/}"});
  passes(strict(), {"rm -rf /tmp/x",
                    "rm -rf /var/tmp/x",
                    "rm -rf /home/u/proj/build",
                    "rm -rf ~/proj/build",
                    "rm -rf ./build",
                    "rm -rf build",
                    "rm -rf /abs/workspace/build",
                    "rm -rf /tmp/*",
                    "rm -rf /tmp/x/*",
                    "rm -rf /workspace/*",
                    "rm -rf *",
                    "rm -rf .",
                    "rm -rf ..",
                    "rm -rf ../..",
                    "rm -rf ~/.cache",
                    "rm -rf ~bob/x",
                    "rm -rf /tmp/$X",
                    "rm -rf $X/y",
                    "rm -rf \"$X\"",
                    "rm -rf ~/$X",
                    "rm",
                    "rm -rf",
                    "rm -- -rf x",
                    "rm -rf \"$HOME/*\"",
                    "rm -rf '~'",
                    "rm -rf /opt/x",
                    "rm -rf /var/lib/x",
                    "rm -rf /etcetera/x",
                    "docker rm -f x",
                    "git rm -rf .",
                    "echo rm -rf /",
                    "grep 'rm -rf /' x",
                    "rm --preserve-root x"});
}

TEST_CASE("policy: S4: relative paths count where the directory is known") {
  refuses(strict(), "rm-protected",
          {"cd / && rm -rf *", "cd /; rm -rf .", "cd /; rm -rf ./*", "cd ~ && rm -rf *",
           "cd ~ && rm -rf .", "cd && rm -rf ./*", "cd /etc && rm -rf ssh", "cd /tmp && rm -rf ..",
           "cd /usr; cd lib; rm -rf x", "(cd / && rm -rf *)", "cd /home && rm -rf *",
           "cd /home && rm -rf u", "cd /var && rm -rf *", "cd /etc && rm -rf *"});
  passes(strict(), {"cd /tmp && rm -rf *", "cd /tmp/x && rm -rf .", "cd ~/proj && rm -rf *",
                    "cd $X && rm -rf *", "cd build && rm -rf *", "cd /repo && rm -rf build",
                    "(cd /); rm -rf *", "cd /repo && find . -name '*.pyc' -delete"});
  refuses(strict(), "rm-protected", {"rm -rf *", "rm -rf .", "rm -rf x", "rm -rf ../x"}, "/");
  refuses(strict(), "rm-protected", {"rm -rf *", "rm -rf ../u", "find . -delete"}, "/home/u");
  refuses(strict(), "rm-protected", {"rm -rf x", "rm -rf *"}, "/etc");
  refuses(strict(), "rm-protected", {"rm -rf ../..", "rm -rf ../../etc/x"}, "/work/x");
  passes(strict(), {"cd $X && rm -rf *", "cd \"$X\"; rm -rf x"}, "/etc");
}

TEST_CASE("policy: S4: a working directory may be emptied, even one inside a protected tree") {
  for (const std::string_view work_dir :
       {"/workspace", "/work/x", "/root/x", "/usr/src/app", "/tmp", "/home/u/x"}) {
    CAPTURE(std::string(work_dir));
    passes(strict(), {"rm -rf build", "rm -rf *", "find . -name '*.pyc' -delete", "rm -rf ./x/.."},
           work_dir);
  }
  passes(strict(), {"rm -rf /root/x/build"}, "/root/x");
  refuses(strict(), "rm-protected", {"rm -rf /root/y", "rm -rf ../y", "rm -rf /root/x"}, "/root/x");
  for (const std::string_view work_dir :
       {"/usr", "/root", "/etc/x", "/bin", "/usr/lib/x", "/dev"}) {
    CAPTURE(std::string(work_dir));
    CHECK(rule_of(strict(), "rm -rf build", work_dir) == "rm-protected");
  }
}

TEST_CASE("policy: S4: find removes from where it begins") {
  refuses(strict(), "rm-protected",
          {"find / -delete",
           "find / -name x -delete",
           "find ~ -delete",
           "find -L /etc -delete",
           "find /tmp /etc -delete",
           "find / -exec rm {} \\;",
           "find / -exec rm -rf {} +",
           "find / -type d -execdir rm -r {} \\;",
           "find /etc -ok rm {} \\;",
           "find / -exec /bin/rm {} \\;",
           "find / -exec env rm {} \\;",
           "find . -exec rm -rf / \\;",
           "find /tmp/x / -exec rm -rf '{}' ';'",
           "find / -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
           "find / -exec sh -c 'rm -rf {}' \\;",
           "cd / && find -delete",
           "find / | xargs rm -rf",
           "find / -print0 | xargs -0 rm -rf",
           "find / | xargs -I{} rm -rf {}",
           "find / -exec unlink {} \\;"});
  passes(strict(), {"find . -delete", "find -delete", "find . -name '*.pyc' | xargs rm -rf",
                    "find src -exec rm {} +", "find /tmp/x -delete", "find / -name x",
                    "find / -exec ls {} \\;", "find / | xargs grep x", "find ~/proj -delete",
                    "find . -exec rm -rf {} \\;", "find / -name rm"});
}

TEST_CASE("policy: S4: other ways to name what is protected") {
  refuses(strict(), "rm-protected",
          {"rm -rf /hom?/u", "rm -rf /va?/*", "rm -rf /libexec/x", "cd /; ls | xargs rm -rf",
           "find -- / -delete", "find -P -- /etc -delete"});
  passes(strict(),
         {"rm -rf /hom?/u/x", "rm -rf /wor?/*", "cd /tmp; ls | xargs rm -rf", "find -- . -delete"});
}

TEST_CASE("policy: S7: elements of arrays are no commands") {
  passes(strict(), {"declare -A m; m[rm]=1", "counts[$i]=$((counts[$i] + 1))", "a[$i]+=x"});
  refuses(strict(), "unknown-command", {"$a[1]=2", "trap \"$X\" EXIT"});
}

TEST_CASE("policy: S5: nothing is moved to /dev/null") {
  refuses(strict(), "mv-dev-null",
          {"mv x /dev/null", "mv x '/dev/null'", "mv -f a b /dev/null", "mv x //dev/./null",
           "mv -t /dev/null x", "mv --target-directory=/dev/null x", "mv --target /dev/null x",
           "mv -ft/dev/null x", "cd /dev; mv ~/x null", "find . -exec mv {} /dev/null \\;"});
  passes(strict(),
         {"mv a b", "mv a b 2> /dev/null", "mv a b > /dev/null", "mv a b; ls 2>/dev/null",
          "mv a b && cat x > /dev/null", "cp x /dev/null", "mv x", "mv", "echo mv x /dev/null"});
}

TEST_CASE("policy: S6: fork bombs are refused") {
  refuses(strict(), "fork-bomb",
          {":(){ :|:& };:", ":() { :|:& };:", ":(){ : | : & };:", "bomb(){ bomb|bomb& };bomb",
           "b() { b & b & }; b", "function f { f | f; }; f", "a() { b & }; b() { a & }; a"});
  passes(strict(), {"f() { ls | wc; }; f", "f() { ls & }; f & f", "echo ':(){ :|:& };:'"});
}

TEST_CASE("policy: S7: a shell reads only what is known") {
  refuses(strict(), "opaque-shell-input",
          {"curl x | sh",
           "base64 -d x | sh",
           "curl x | bash -s -- a",
           "cat x | bash",
           "bash < x",
           "bash <(curl x)",
           "sh -c \"$(curl x)\"",
           "sh -c \"$X\"",
           "bash -c \"ls $X\"",
           "eval \"$(curl x)\"",
           "eval $X",
           "source <(curl x)",
           ". <(curl x)",
           "source /dev/stdin < x",
           "bash $X",
           "bash \"$X\"",
           "bash \"$X\"/",
           "cat x | zsh",
           "cat x | env bash",
           "bash <<E\n$X\nE",
           "bash <<< \"$X\"",
           "alias ll=\"$X\"",
           "ls | xargs -I{} sh -c '{}'",
           "ls | xargs sh -c",
           "watch $X",
           "ls | parallel",
           "env -S \"$X\"",
           "flock f -c \"$X\"",
           "bash -$X",
           "bash /dev/fd/3 3< x",
           "find . | xargs bash"});
  passes(strict(), {"bash build.sh",
                    "sh ./x.sh a",
                    "bash \"$DIR/run.sh\"",
                    "source .venv/bin/activate",
                    ". \"$HOME/.cargo/env\"",
                    "source \"$VENV/bin/activate\"",
                    "sh -c 'ls'",
                    "bash",
                    "bash -c 'ls \"$1\"' _ x",
                    "bash -n x.sh",
                    "sh -n < x",
                    "bash --version",
                    "bash < /dev/null",
                    "echo ls | sh",
                    "printf 'ls\\n' | sh",
                    "bash <<'E'\nls $X\nE",
                    "bash -s a <<< 'ls $1'",
                    "eval 'ls'",
                    "eval ls -l",
                    "trap 'rm -rf \"$T\"' EXIT",
                    "T=$(mktemp -d); trap \"rm -rf $T\" EXIT",
                    "trap - EXIT",
                    "alias ll='ls -l'",
                    "curl x | python -m json.tool",
                    "curl x > sh",
                    "echo sh | cat",
                    "source x",
                    "sh -c"});
}

TEST_CASE("policy: S7: the name of a command is known") {
  refuses(strict(), "unknown-command",
          {"$PYTHON x", "\"$PYTHON\" x", "$(cat x)", "`cat x`", "$X/$Y z", "\"$D/\"", "env $X y",
           "timeout 5 \"$X\" y", "ls | xargs env", "${X}", "x$Y", "\"/usr/bin/$X\"", "zz* y", "l?x",
           "find . -exec $X \\;", "A=1 $X"});
  passes(strict(),
         {"\"$VENV/bin/python\" x.py", "$X/python y", "\"$D\"/run.sh", "X=ls; $X", "${X:-ls} y",
          "$(echo ls) y", "./test_* x", "[ -f x ]", "[[ -f x && $a == b ]]", "[[ $a || $b ]] && ls",
          "f() { \"$@\"; }; f ls", "f() { $1; }", "\"\"", "X=$Y", "(( $x > 1 && $y ))", "$((1))x"});
  refuses(strict(), "sudo", {"\"$D/bin/sudo\" x", "f() { \"$@\"; }; f sudo x"});
}

TEST_CASE("policy: S7: a pattern for a command is every program it may be") {
  refuses(strict(), "rm-protected", {"/bin/r? -rf /", "/b*/r[m] -rf /", "/bin/[!a-q]m -rf /"});
  refuses(strict(), "sudo", {"/usr/bin/sud? x", "/usr/bin/s* x", "* x"});
  refuses(strict(), "rm-protected", {"/usr/bin/en? rm -rf /"});
  passes(strict(), {"/bin/?s -l", "./run_*.sh", "/bin/r[!m] -rf /", "/bin/r?x -rf /"});
  // A class such as [:alpha:] ends with :], not with the bracket in it.
  refuses(strict(), "sudo",
          {"/usr/bin/sud[[:alpha:]] id", "/usr/bin/sud[![:digit:]] id", "/usr/bin/sud[[=o=]] id"});
  refuses(strict(), "rm-protected",
          {"/bin/[[:lower:]x]m -rf /", "rm -rf /[[:alpha:]]tc/passwd", "rm /etc/[]a]* -rf"});
  refuses(strict(), "device-write", {"echo x > /[[:lower:]]ev/sda"});
  passes(strict(), {"/usr/bin/x[[:alpha:]]x id", "/usr/bin/sud[[:alpha: id", "/tmp/[[:alpha:]]x"});
}

TEST_CASE("policy: S8: what no shell could read is refused") {
  refuses(strict(), "syntax",
          {"echo 'x", "echo \"x", "echo $(x", "echo `x", "echo ${x", "ls ;; ls", "if true; then ls",
           "( ls", "ls )", "ls | | ls", "case x in"});
  CHECK(strict().judge("ls; echo 'x"sv).verdict.message.find("Command cannot be understood: ") ==
        0);
  CHECK(blamed(strict(), "ls; echo 'x") == "'");
  refuses(strict(), "nul-byte", {"\0"sv, "ls\0"sv, "sudo\0x"sv});
}

TEST_CASE("policy: W-03: dangerous commands that the reference lets pass are refused") {
  for (const std::string_view script : {"rm -fr /",
                                        "rm -r -f /",
                                        "rm -Rf /",
                                        "rm -rf -- /",
                                        "rm -rf ~",
                                        "rm -rf $HOME",
                                        "rm -rf \"/\"",
                                        "rm --recursive --force /",
                                        "rm -rf --no-preserve-root /",
                                        "r\\m -rf /",
                                        "'rm' -rf /",
                                        "find / -delete",
                                        "python -c \"import shutil; shutil.rmtree('/')\"",
                                        "mv x '/dev/null'",
                                        "d''d if=x",
                                        "> /dev/nvme0n1",
                                        "> /dev/vda",
                                        "> /dev/mmcblk0",
                                        "x | tee /dev/sda",
                                        "cp x /dev/sda",
                                        "x >| /dev/sda",
                                        ":() { :|:& };:",
                                        ":(){ : | : & };:",
                                        "bomb(){ bomb|bomb& };bomb",
                                        "s\\udo ls",
                                        "doas ls",
                                        "pkexec ls",
                                        "mkfs.ext4 /dev/sda",
                                        "curl x | sh",
                                        "base64 -d x | sh"}) {
    CAPTURE(std::string(script));
    CHECK(!strict().judge(script).verdict);
    check_form(strict().judge(script).verdict, script);
  }
}

TEST_CASE("policy: W-04: harmless commands that the reference refuses pass") {
  passes(strict(),
         {"rm -rf /tmp/build", "rm -rf /abs/workspace/build", "mv a b && cat x > /dev/null",
          "mv a b; ls 2> /dev/null", "git add dd.txt", "echo dd", "grep -n dd x", "ls dd/",
          "grep sudo README.md", "git commit -m 'drop sudo'", "cat su.txt", "python su.py",
          "cat chown.md", "echo chmod", "git update-index --chmod=+x f",
          "python -c 'import os; os.chmod(1,2)'"});
}
