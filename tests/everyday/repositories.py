"""git: commits, worktrees, submodules, remotes, signatures."""

from task import task

GIT = r'''
git config --global user.name A && git config --global user.email a@example.com
git config --global init.defaultBranch main && git config --global protocol.file.allow always
git init -q a && cd a && echo one > f && git add f && git commit -qm first
'''
task("git: commit, branch, merge, log", GIT + r'''
git checkout -qb side && git mv f g && git commit -qm moved && git checkout -q main &&
echo two > h && git add h && git commit -qm second && git merge -q -m merged side && ls &&
git log --oneline | wc -l && git status --short | wc -l && git blame g | wc -l
''', "g\nh\n4\n0\n1\n", "git")
task("git: a conflict, resolved", GIT + r'''
git checkout -qb side && echo side > f && git commit -qam side && git checkout -q main &&
echo main > f && git commit -qam main; git merge side > log || git checkout -q --theirs f
git add f && git commit -qm merged && cat f
''', "side\n", "git")
task("git: rebase, stash, cherry-pick, bisect", GIT + r'''
for i in 1 2 3 4; do echo $i > n && git add n && git commit -qm $i; done
echo dirty >> f && git stash -q && git checkout -qb side HEAD~2 && echo s > s && git add s &&
git commit -qm s && git rebase -q main && git stash pop -q && git checkout -q f &&
git cherry-pick -n HEAD && git reset -q --hard && git bisect start HEAD HEAD~4 > log &&
git bisect run sh -c 'test $(cat n) -lt 3' | grep -c 'is the first bad commit'
git bisect reset > log 2>&1
git log --oneline | wc -l
''', "1\n6\n", "git")
task("git: worktrees", GIT + r'''
git worktree add -q ../tree -b other && cd ../tree && echo two >> f && git commit -qam second &&
git worktree list | wc -l && cd ../a && git merge -q other && cat f &&
git worktree remove ../tree &&
git worktree list | wc -l && git branch -d other
''', "2\none\ntwo\n1\n", "git")
task("git: submodules", GIT + r'''
cd .. && git init -q all && cd all && git submodule --quiet add "$PWD/../a" lib &&
git commit -qm sub &&
cd .. && git clone -q --recurse-submodules all copy && cat copy/lib/f && cd copy/lib &&
git checkout -q -b work && echo two >> f && git commit -qam second && git push -q origin work &&
cd .. && git add lib && git commit -qm bump && git submodule status | wc -l
''', "one\n1\n", "git")
task("git: clone, push to a bare one, fetch, tags", GIT + r'''
cd .. && git clone -q --bare a bare.git && git clone -q bare.git b && cd b && echo two >> f &&
git commit -qam second && git tag -a v1 -m v1 && git push -q --follow-tags && cd ../a &&
git remote add origin ../bare.git && git fetch -q --tags origin && git merge -q origin/main &&
cat f &&
git describe && git clone -q --depth 1 "file://$PWD/../bare.git" ../shallow && ls ../shallow
''', "one\ntwo\nv1\nf\n", "git")
task("git: hooks run", GIT + r'''
printf '#!/bin/sh\necho hooked\n' > h && install -m 755 h .git/hooks/pre-commit && rm h
echo two >> f && git commit -qam second 2>&1
''', "hooked\n", "git")
task("git: gc, repack, fsck, archive", GIT + r'''
git gc -q --aggressive && git repack -adq && git fsck && git archive main | tar t &&
git bundle create -q ../b.bundle main && git clone -q ../b.bundle ../c && cat ../c/f
''', "f\none\n", "git")
task("git: patches by mail, and a dirty tree", GIT + r'''
echo two >> f && git commit -qam second && git format-patch -q -1 && git reset -q --hard HEAD~1 &&
git am -q 0001-second.patch && cat f && git diff HEAD~1 > d && git apply -R d && cat f &&
git add -A && git clean -nfdx | wc -l
''', "one\ntwo\none\n", "git")
task("git: commits signed with an ssh key", GIT + r'''
ssh-keygen -q -t ed25519 -N '' -f ~/key && git config gpg.format ssh &&
git config user.signingkey ~/key.pub && echo two >> f && git commit -q -S -a -m signed &&
echo "a@example.com $(cat ~/key.pub)" > ~/allowed &&
git config gpg.ssh.allowedSignersFile ~/allowed &&
git log -1 --format='%G?'
''', "G\n", ("git", "ssh-keygen"))
task("git: sparse checkout and grep", GIT + r'''
mkdir x y && echo in x > x/f && echo in y > y/f && git add . && git commit -qm dirs &&
git sparse-checkout set --cone x && ls && git grep -c in && git sparse-checkout disable && ls
''', "f\nx\nx/f:1\nf\nx\ny\n", "git")
task("git: a remote over the network is away", GIT + "git fetch https://example.com/a.git",
     needs="git", fails="network: none")
task("git: two agents in two worktrees of one repository", (
    GIT + "git worktree add -q ../left && git worktree add -q ../right",
    "cd left && echo l > l && git add l && git commit -qm l && git log --oneline | wc -l",
    "cd right && echo r > r && git add r && git commit -qm r && git rebase -q left && ls"),
    "f\nl\nr\n", "git")
