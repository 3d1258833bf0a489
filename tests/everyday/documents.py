"""Keys, archives, pictures, documents, and what no sandbox gives."""

from task import task

task("ssh-keygen: keys, fingerprints, known hosts", r'''
mkdir -p -m 700 ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id &&
ssh-keygen -lf ~/.ssh/id.pub |
  grep -c ED25519 && ssh-keygen -q -t rsa -b 1024 -N x -f k && ssh-keygen -y -P x -f k | cut -c 1-7
''', "1\nssh-rsa\n", "ssh-keygen")
task("ssh-agent: a key in it", r'''
ssh-keygen -q -t ed25519 -N '' -f k && ssh-agent sh -c 'ssh-add -q k && ssh-add -l | wc -l'
''', "1\n", ("ssh-agent", "ssh-add", "ssh-keygen"), wants="unix sockets")
task("gpg: a key, a signature, a secret", r'''
export GNUPGHOME=$PWD/g; mkdir -m 700 g
gpg -q --batch --passphrase '' --quick-gen-key a@example.com ed25519 2> log || {
  cat log >&2; exit 1; }
echo text > f && gpg -q --batch --sign --armor f && gpg -q --verify f.asc 2>&1 | grep -c Good
gpg -q --batch --passphrase x --symmetric f && gpg -q --batch --passphrase x -d f.gpg
''', "1\ntext\n", ("gpg", "gpg-agent"), wants="unix sockets")
task("openssl: a certificate and its check", r'''
openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -subj /CN=a -days 1 2> log &&
openssl verify -CAfile c c && echo data | openssl dgst -sha256 | cut -d ' ' -f 2 | wc -c &&
openssl rand -hex 4 | wc -c
''', "c: OK\n65\n9\n", "openssl")
task("archives: tar, gzip, xz, zip", r'''
mkdir a; echo data > a/f; tar czf a.tgz a; tar cJf a.txz a; rm a/f; tar xzf a.tgz; cat a/f
python3 -m zipfile -c a.zip a && python3 -m zipfile -l a.zip | grep -c a/f && sha256sum a/f | wc -l
''', "data\n1\n1\n", ("tar", "gzip", "xz", "python3"))
task("rsync: a copy, and one more", r'''
mkdir a && echo x > a/f && rsync -a a/ b && echo y > a/g && rsync -ai --delete a/ b |
  grep -c '>f' && ls b
''', "1\nf\ng\n", "rsync")
task("files: find, xargs -P, sort, locks, links", r'''
mkdir d; for i in 1 2 3 4; do echo $i > d/$i; done
find d -type f -print0 | xargs -0 -P 4 -n 1 cat | sort | tr -d '\n'; echo
seq 300000 -1 1 | sort -n -S 512K | head -n 1; flock lock echo locked; ln -s d l; readlink l
df . > x
''', "1234\n1\nlocked\nd\n", ("find", "sort", "flock"))
task("sort and mktemp in /tmp", r'''
f=$(mktemp /tmp/everyday.XXXXXX) || exit 1; seq 100000 -1 1 | sort -n -S 100K -T /tmp > $f &&
head -n 1 $f
rm $f; d=$(mktemp -d -p /tmp) && rmdir $d && echo made
''', "1\nmade\n", ("sort", "mktemp"), wants="/tmp")
task("/tmp: what one command writes, the next one reads", (
    "echo handed on > /tmp/everyday-$(id -u)-handed",
    "f=/tmp/everyday-$(id -u)-handed; cat $f && rm $f"),
    "handed on\n", (), wants="/tmp")
task("jq, sed and awk", r'''
echo '{"a": [1, 2, 3]}' > f; jq -c '.a | add' f; sed -i 's/1/4/' f; cat f; seq 4 |
  awk '{ s += $1 } END { print s }'
''', "6\n{\"a\": [4, 2, 3]}\n10\n", ("jq", "awk"), heavy=True)
task("perl: one-liners and processes", r'''
echo abc > f; perl -pi -e 's/b/B/' f; cat f
perl -e '$p = fork; exit 3 if !$p; waitpid $p, 0; print $? >> 8, "\n"'
''', "aBc\n3\n", "perl")
task("ruby: a script and a gem of one's own", r'''
cat > tiny.gemspec <<'EOF'
Gem::Specification.new { |s| s.name = "tiny"; s.version = "1.0"; s.summary = "x"
s.authors = ["a"]; s.files = ["lib/tiny.rb"] }
EOF
mkdir lib && echo 'puts "tiny runs"' > lib/tiny.rb && gem build -q tiny.gemspec > log 2>&1 &&
gem install -q --local --user-install --no-document tiny-1.0.gem > log 2>&1
ruby -e 'require "tiny"'
''', "tiny runs\n", ("ruby", "gem"), heavy=True)
task("ffmpeg: a film, its sound and a picture of it", r'''
ffmpeg -v error -f lavfi -i testsrc=duration=1:size=64x48:rate=5 \
  -f lavfi -i sine=duration=1 -y a.mp4 && ffmpeg -v error -i a.mp4 -frames:v 1 -y a.png &&
ffprobe -v error -show_entries stream=codec_type -of csv=p=0 a.mp4
''', "video\naudio\n", ("ffmpeg", "ffprobe"), heavy=True)
task("latex: a document of two runs", r'''
cat > a.tex <<'EOF'
\documentclass{article}
\begin{document}\tableofcontents\section{One}$x^2$\end{document}
EOF
pdflatex -interaction=nonstopmode a.tex > log && pdflatex -interaction=nonstopmode a.tex > log &&
head -c 5 a.pdf && grep -c One a.toc
''', "%PDF-1", "pdflatex", heavy=True)
task("chromium: a page becomes a picture", r'''
echo '<h1>hello</h1>' > a.html && chromium --headless --no-sandbox --disable-gpu --no-first-run \
  --disable-background-networking --disable-component-update --user-data-dir="$PWD/profile" \
  --screenshot="$PWD/a.png" "file://$PWD/a.html" > log 2>&1; cat log >&2; test -s a.png &&
head -c 4 a.png | tail -c 3
''', "PNG", "chromium", network="loopback", wants=("loopback", "unix sockets"), heavy=True)
task("playwright: a click in Debian's Chromium", r'''
cat > a.js <<'EOF'
const { chromium } = require(process.env.PATH.split(':').find(p => p.endsWith('node_modules/.bin'))
  .replace('.bin', 'playwright-core'));
(async () => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const page = await browser.newPage();
  await page.setContent('<button onclick="this.textContent = 6 * 7">go</button>');
  await page.click('button');
  console.log(await page.textContent('button'), (await page.screenshot()).length > 100);
  await browser.close();
})();
EOF
node a.js
''', "42 true\n", ("node", "chromium", "test -n \"$(find $(echo $PATH | tr : ' ') -maxdepth 1 "
                     "-name playwright-core 2> /dev/null)\""), network="loopback",
     wants=("loopback", "unix sockets"), heavy=True)
task("curl: the world is away", "curl -sS https://example.com", needs="curl", fails="network: none")
task("apt: the system cannot be changed", "apt-get install -y hello", needs="apt-get",
     fails="allowed_paths")
task("docker: its socket is closed", "docker ps", needs="docker", fails="option unix_sockets",
     heavy=True)
task("the user's keys are closed", "cat /etc/shadow", needs="test -e /etc/shadow",
     fails="allowed_paths")
