// What git starts for a setting, an alias, an address, or under another name.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "helpers.hpp"

using support::lists;
using support::passes;
using support::refuses;
using support::rule_of;
using support::strict;

TEST_CASE("policy: what an alias of git stands for is judged with its arguments") {
  refuses(
      strict(lists({}, {"git push -f"})), "blocked-commands",
      {"git -c alias.p=push p -f", "git config alias.p push; git p -f",
       "git config --global alias.p 'push -f'", "git config set alias.p '!git push -f'",
       "git -c alias.p='!git push' p -f", "git config alias.P push && git -C . p -f",
       "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p -f",
       "env GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push -f' git p",
       "export GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0='push -f'",
       "GIT_CONFIG_PARAMETERS=\"'alias.p=push -f'\" git p",
       "GIT_CONFIG_PARAMETERS=\"'alias.p'='push -f'\" git p",
       "P='push -f' git --config-env=alias.p=P p", "env P=push git --config-env alias.p=P p -f"});
  passes(strict(lists({}, {"git push -f"})),
         {"git -c alias.p=pull p -f", "git config alias.p pull; git p -f",
          "git -c alias.push=push push", "git config --get alias.p",
          "GIT_CONFIG_KEY_0=push.default GIT_CONFIG_VALUE_0=current git status"});
  // One alias that leads to another, and back.
  CHECK(rule_of(strict(), "git -c alias.a=b -c alias.b=a a") != "sudo");
}

TEST_CASE("policy: programs of git are git under other names") {
  refuses(strict(lists({}, {"git push.*"})), "blocked-commands",
          {"git-push -f", "/usr/lib/git-core/git-push", "/usr/lib/git-core/git push",
           "git --exec-path=/x push", "git send-pack origin main", "git-send-pack x",
           "git receive-pack .", "git http-push x", "git for-each-repo --config=x push",
           "git for-each-repo --config x push -f", "/usr/lib/git-core/git -c alias.p=push p"});
  passes(strict(lists({}, {"git push.*"})),
         {"git-lfs push", "git for-each-repo --config=x pull", "git-upload-pack .",
          "git stash push", "git subtree push"});
}

TEST_CASE("policy: an address of git may be a command") {
  refuses(strict(), "sudo",
          {"git clone 'ext::sudo id' x", "git clone 'ext::sh -c sudo% id' x",
           "git -c protocol.ext.allow=always fetch 'ext::sudo id'",
           "git remote add x 'ext::sudo id'", "git ls-remote 'ext::sudo id'",
           "git archive --remote='ext::sudo id' HEAD", "git config remote.x.url 'ext::sudo id'",
           "git submodule add 'ext::sudo id'", "git -c 'url.ext::sudo id.insteadOf=x' fetch x"});
  passes(strict(), {"git clone https://example.org/ext::x y", "git remote add x git@h:sudo",
                    "git clone 'ext::ssh host git-upload-pack x'"});
}

TEST_CASE("policy: settings, variables and options of git that are commands") {
  refuses(strict(), "sudo",
          {"git -c core.sshCommand='sudo id' fetch",
           "git -c core.pager='sudo id' log",
           "git -c core.editor='sudo id' commit",
           "git -c core.fsmonitor='sudo id' status",
           "git -c credential.helper='!sudo id' fetch",
           "git -c diff.external='sudo id' diff",
           "git -c gpg.program='sudo id' commit -S",
           "git -c gpg.ssh.program='sudo id' commit",
           "git -c gpg.ssh.defaultKeyCommand='sudo id' commit",
           "git -c core.alternateRefsCommand='sudo id' fetch",
           "git -c sendemail.sendmailCmd='sudo id' send-email x",
           "git config web.browser 'sudo x'",
           "git -c instaweb.httpd='sudo x' instaweb",
           "GIT_SSH_COMMAND='sudo id' git fetch",
           "GIT_EDITOR='sudo id' git commit",
           "GIT_SEQUENCE_EDITOR='sudo id' git rebase -i x",
           "GIT_EXTERNAL_DIFF='sudo id' git diff",
           "git send-email --sendmail-cmd='sudo id' x",
           "git daemon --access-hook='sudo id' /srv",
           "git instaweb --httpd='sudo id'",
           "git instaweb -d 'sudo id'",
           "git shell -c 'sudo id'",
           "git rebase -x 'sudo id' x",
           "git bisect run sudo id",
           "git submodule foreach 'sudo id'",
           "X='sudo id' git --config-env=core.pager=X log",
           "GIT_CONFIG_PARAMETERS=\"'core.pager=sudo id'\" git log"});
  passes(strict(), {"git -c core.editor=true commit", "git -c user.name='sudo id' commit",
                    "git config core.pager cat", "git config alias.st status && git st",
                    "git -c color.ui=always log", "git send-email --to=a@b.c x",
                    "GIT_CONFIG_PARAMETERS=\"'a.b=sudo id'\" git log"});
}
