"""JavaScript, C and C++, Go, Rust, Java: packages, builds and tests."""

from task import task

# JavaScript ---------------------------------------------------------------------------------------

PACKAGE = r'''
mkdir left && echo 'module.exports = text => "<" + text' > left/index.js
echo '{"name": "left", "version": "1.2.3", "main": "index.js"}' > left/package.json
'''
APP = PACKAGE + r'''
echo 'console.log(require("left")("text"))' > app.js
echo '{"name": "app", "version": "1.0.0", "scripts": {"test": "node app.js", "start": "echo ran"},
"dependencies": {"left": "file:./left"}}' > package.json
'''
NPM = ("node", "npm")
task("npm: install, ci, test and run", APP + r'''
npm install --no-audit --no-fund > log 2>&1 && npm ci --no-audit --no-fund >> log 2>&1 &&
npm test --silent && npm run --silent start && npm ls --depth=0 | grep -c left
''', "<text\nran\n1\n", NPM)
task("npm: pack, and a global install of it", PACKAGE + r'''
cd left && npm pack --silent && npm install --silent -g --prefix ~/.local ./left-1.2.3.tgz &&
ls ~/.local/lib/node_modules
''', "left-1.2.3.tgz\nleft\n", NPM)
task("npm: workspaces and npx", r'''
mkdir -p packages/one && echo '#!/usr/bin/env node
console.log("one runs")' > packages/one/cli.js && chmod +x packages/one/cli.js
echo '{"name": "one", "version": "1.0.0", "bin": "cli.js"}' > packages/one/package.json
echo '{"name": "all", "private": true, "workspaces": ["packages/*"]}' > package.json
npm install --silent --no-audit --no-fund && npx --no one
''', "one runs\n", NPM)
task("npm: init and node --test", r'''
npm init -y > log && echo 'const test = require("node:test"); const assert = require("assert");
test("sum", () => assert.equal(1 + 1, 2)); test("late", async () => { await null; });' > a.test.js
node --test 2>&1 | grep -c "pass 2"
''', "1\n", NPM)
task("npm: the registry is away", "npm install --no-audit left-pad", needs=NPM,
     fails="network: none")
task("pnpm: install and run", APP + r'''
pnpm install --silent --offline && pnpm --silent test && pnpm --silent run start &&
test -L node_modules/left && echo linked
''', "<text\nran\nlinked\n", ("node", "pnpm"), wants="/tmp")
task("pnpm: a workspace", APP + r'''
printf 'packages:\n  - left\n' > pnpm-workspace.yaml
sed -i 's|file:./left|workspace:*|' package.json
pnpm install --silent --offline && pnpm --silent test && pnpm -r exec pwd | wc -l
''', "<text\n", ("node", "pnpm"), wants="/tmp")
task("pnpm: the registry is away", "pnpm add left-pad@1.3.0", needs=("node", "pnpm"),
     fails="network: none")
PAGE = r'''
echo '<div id="a"></div><script type="module" src="/main.js"></script>' > index.html
echo 'import { text } from "./text.js"; document.querySelector("#a").textContent = text' > main.js
echo 'export const text = "bundled text"' > text.js
'''
task("vite: build", PAGE + "vite build --logLevel warn && grep -l 'bundled text' dist/assets/*.js",
     "dist/assets/", ("node", "vite"))
task("node: workers and a cluster", r'''
cat > main.js <<'EOF'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const cluster = require('cluster');
if (!isMainThread) parentPort.postMessage(workerData * workerData);
else if (cluster.isPrimary) {
  Promise.all([1, 2, 3].map(i => new Promise(done =>
    new Worker(__filename, { workerData: i }).on('message', done)))).then(all => {
      console.log('squares', all.join());
      cluster.fork().on('message', m => console.log('from', m));
    });
} else { process.send('a process'); process.disconnect(); }
EOF
node main.js
''', "squares 1,4,9\nfrom a process\n", "node")
# The program changes itself until it is seen: it runs before its folder is watched.
task("node: --watch starts again", r'''
cat > main.js <<'EOF'
const fs = require('fs');
if (fs.existsSync('started')) console.log('again');
fs.writeFileSync('started', '');
setInterval(() => fs.appendFileSync(__filename, '\n'), 500);
EOF
mkfifo lines; node --watch main.js > lines 2>&1 &
grep -m 1 again < lines; kill $!
''', "again\n", "node")

# C and C++ ----------------------------------------------------------------------------------------

HELLO = r'''
printf '#include <stdio.h>\nint main(void) { return puts("hello from C") < 0; }\n' > hello.c
'''
PROJECT = HELLO + r'''
cat > CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.13)
project(hello C)
find_package(Threads REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello Threads::Threads)
enable_testing()
add_test(NAME hello COMMAND hello)
install(TARGETS hello DESTINATION bin)
EOF
'''
task("gcc and g++: programs and libraries", HELLO + r'''
printf '#include <iostream>\n#include <thread>\nint main() { std::thread([] {\n' > t.cpp
printf ' std::cout << "from a thread\\n"; }).join(); }\n' >> t.cpp
gcc -O1 -g -pipe hello.c -o hello && ./hello && g++ -O1 t.cpp -o t -pthread && ./t &&
echo 'int f(void) { return 1; }' > f.c && gcc -shared -fPIC f.c -o libf.so && gcc -c f.c &&
ar rc libf.a f.o && nm libf.a | grep -c ' T f'
''', "hello from C\nfrom a thread\n1\n", ("gcc", "g++", "ar"))
task("gcc: precompiled headers, profiles and coverage", HELLO + r'''
echo '#include <stdio.h>' > all.h && gcc all.h && gcc --coverage hello.c -o hello && ./hello &&
gcov -n *.gcda | grep -c "^Lines executed:100" && gcc -flto -O2 hello.c -o lto && ./lto
''', "hello from C\n2\nhello from C\n", ("gcc", "gcov"))
task("gcc: address sanitizer and its leaks", r'''
printf '#include <stdlib.h>\nint main(void) { return malloc(7) == 0; }\n' > leak.c
printf '#include <stdlib.h>\nint main(void) { char* p = malloc(7); p[7] = 1; free(p); }\n' > over.c
gcc -fsanitize=address -g leak.c -o leak && gcc -fsanitize=address -g over.c -o over
./leak 2>&1 | grep -o 'detected memory leaks'; ./over 2>&1 | grep -o heap-buffer-overflow |
  head -n 1
''', "detected memory leaks\nheap-buffer-overflow\n",
     "echo 'int main(void){}' | gcc -fsanitize=address -x c -o /dev/null -")
task("make -j with a jobserver", HELLO + r'''
printf 'all: one two three\none two three:\n\t+$(MAKE) -s -f sub.mk NAME=$@\n' > Makefile
printf '$(NAME): hello.c\n\tgcc hello.c -o $@ && ./$@\n' > sub.mk
make -s -j4 && make -q one && echo up to date
''', "hello from C\nup to date\n", ("make", "gcc"))
task("make: an autoconf-like configure", HELLO + r'''
cat > configure <<'EOF'
#!/bin/sh
tmp=${TMPDIR-/tmp}/conf$$ && mkdir "$tmp" && trap 'rm -rf "$tmp"' 0
echo 'int main(void) { return 0; }' > "$tmp/c.c" && cc "$tmp/c.c" -o "$tmp/c" && "$tmp/c" &&
  echo 'checking whether the C compiler works... yes'
sed "s|@CC@|cc|" Makefile.in > Makefile
EOF
printf 'hello: hello.c\n\t@CC@ hello.c -o $@\n' > Makefile.in
sh ./configure && make -s && ./hello
''', "works... yes\nhello from C\n", ("make", "gcc"))
task("cmake: configure, build, test, install", PROJECT + r'''
cmake -S . -B build > log && cmake --build build -j2 >> log && (cd build && ctest >> ../log) &&
cmake --install build --prefix out >> log && out/bin/hello
''', "hello from C\n", ("cmake", "make", "gcc"))
task("cmake: ninja", PROJECT + r'''
cmake -S . -B build -G Ninja > log && cmake --build build >> log && build/hello
''', "hello from C\n", ("cmake", "ninja", "gcc"))
task("ccache: the second build is a hit", HELLO + r'''
ccache gcc -c hello.c && ccache gcc -c hello.c &&
ccache --print-stats | grep -E '^(direct|local_storage)_(cache_)?hit'
''', "hit\t1\n", ("ccache", "gcc"))
task("clang: a program and its format", HELLO + "clang -O1 hello.c -o hello && ./hello",
     "hello from C\n", "clang")

# Go, Rust, Java -----------------------------------------------------------------------------------

GO = r'''
mkdir sum && echo 'module example.com/app
go 1.18' > go.mod
echo 'package sum
func Of(a, b int) int { return a + b }' > sum/sum.go
echo 'package sum
import "testing"
func TestOf(t *testing.T) { if Of(1, 2) != 3 { t.Fatal() } }
func BenchmarkOf(b *testing.B) { for i := 0; i < b.N; i++ { Of(i, i) } }' > sum/sum_test.go
echo 'package main
import ("example.com/app/sum"; "fmt"; "os"; "os/exec")
func main() { out, _ := exec.Command("echo", "child").Output(); fmt.Print(string(out))
fmt.Fprintln(os.Stdout, sum.Of(40, 2)) }' > main.go
'''
task("go: vet, test and run", GO + r'''
go vet ./... && go test ./sum | cut -f 1 && go run .
''', "ok  \nchild\n42\n", "go", heavy=True)
task("go: build, and a second build from its cache", GO + r'''
go build -o app . && ./app && go build -o app . && go list ./... | wc -l
''', "child\n42\n2\n", "go")
task("go: a workspace, its replaced module, a tool", GO + r'''
mkdir other && cd other && echo 'module example.com/other
go 1.18' > go.mod && echo 'package other
const Name = "other"' > other.go && cd .. &&
echo 'package main
import "example.com/other"
func init() { println(other.Name) }' > init.go &&
go mod edit -require example.com/other@v0.0.0 -replace example.com/other=./other &&
go mod tidy && go install . && ~/go/bin/app 2>&1
''', "other\nchild\n42\n", "go", heavy=True)
task("go: the proxy is away", r'''
echo 'module a' > go.mod && go get example.com/none@v1.0.0
''', needs="go", fails="network: none")
CARGO = r'''
cargo new -q --vcs none app 2> log && cd app && echo 'pub fn twice(n: i32) -> i32 { 2 * n }
#[test] fn it() { assert_eq!(twice(2), 4); }
/// ```
/// assert_eq!(app::twice(1), 2);
/// ```
pub fn documented() {}' > src/lib.rs
echo 'fn main() { println!("{}", app::twice(21)); }' > src/main.rs
'''
task("cargo: build, run and test", CARGO + r'''
cargo run -q --offline && cargo test -q --offline 2>&1 | grep -c '1 passed'
''', "42\n2\n", ("cargo", "gcc"))
task("cargo: a workspace with a build script", CARGO + r'''
mkdir -p inner/src && printf '[package]\nname = "inner"\nversion = "0.1.0"\n' > inner/Cargo.toml &&
echo 'fn main() { println!("cargo:rustc-env=WORD=built"); }' > inner/build.rs &&
echo 'fn main() { println!("{}", env!("WORD")); }' > inner/src/main.rs &&
printf '[workspace]\nmembers = ["inner"]\n' >> Cargo.toml &&
cargo run -q --offline -p inner && cargo fmt --version > log && cargo metadata --offline \
  --format-version 1 --no-deps | grep -o '"name":"inner"' | head -n 1
''', 'built\n"name":"inner"\n', ("cargo", "gcc"))
task("cargo: the registry is away", CARGO + "cargo add itoa@1 && cargo build",
     needs=("cargo", "gcc"), fails="network: none")
JAVA = r'''
mkdir -p src/app && cat > src/app/Main.java <<'EOF'
package app;
public class Main {
  public static void main(String[] words) throws Exception {
    Thread thread = new Thread(() -> System.out.println("from a thread"));
    thread.start();
    thread.join();
    java.nio.file.Path file = java.nio.file.Files.createTempFile("x", "y");
    System.out.println(java.nio.file.Files.exists(file));
  }
}
EOF
'''
task("java: compile, pack and run", JAVA + r'''
javac -d out src/app/Main.java && jar cfe app.jar app.Main -C out . && java -jar app.jar
''', "from a thread\ntrue\n", ("javac", "java", "jar"), heavy=True, wants="/tmp")
task("java: jcmd sees its own processes", JAVA + r'''
sed -i 's/thread.join();/thread.join(); System.out.println(new ProcessBuilder("jps", "-q").start()\
.inputReader().lines().count() > 1);/' src/app/Main.java
java src/app/Main.java
''', "from a thread\ntrue\ntrue\n", ("javac", "java", "jps"), heavy=True, wants="/tmp")
task("gradle: build of a plain project", JAVA + r'''
mkdir -p src/main/java && mv src/app src/main/java/ && echo "apply plugin: 'java'" > build.gradle
echo "rootProject.name = 'app'" > settings.gradle
GRADLE_USER_HOME=~/.gradle gradle --offline --no-daemon -q jar &&
java -cp build/libs/app.jar app.Main
''', "from a thread\ntrue\n", ("gradle", "javac"), network="loopback", wants="loopback", heavy=True)
task("maven: a build offline", r'''
cat > pom.xml <<'EOF'
<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>app</artifactId>
<version>1</version><packaging>pom</packaging></project>
EOF
mvn -q -o validate && echo valid && mvn -o help:effective-pom > log 2>&1; grep -c offline log
''', "valid\n", "mvn", heavy=True)
