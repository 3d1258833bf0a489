// Commands that carry on where the last one ended, and a job in the background beside them.
//
//   c++ -std=c++17 -I. examples/sessions.cpp -o sessions -pthread
//
// Prints what each command printed, what the session has become, and a conversation with the job.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>

int main() {
  codeexec::LocalOptions options;
  options.workspace = "/tmp";
  auto here = codeexec::LocalExecutor::create(options);
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;

  // Each command has a shell of its own. The session hands the folder and the exported variables
  // on to the next one. Copies of a session share its state.
  codeexec::Session session;
  const auto in_session = [&session](const char* script) {
    codeexec::Command command = codeexec::Command::shell(script);
    command.session = session;
    return command;
  };
  for (const char* script : {"cd /usr/bin && export STAGE=test", "echo \"$STAGE in $PWD\"",
                             "unset STAGE; cd ..", "echo \"${STAGE:-nothing} in $PWD\""})
    std::printf("> %s\n%s", script, here->run(in_session(script)).out.c_str());
  std::printf("the session is in %s\n", session.work_dir().c_str());
  session.reset();
  std::printf("after a reset: %s", here->run(in_session("pwd")).out.c_str());

  // A job runs on while other commands do. It ends with `jobs` at the latest.
  codeexec::Jobs jobs(*here);
  codeexec::Command echo =
      codeexec::Command::shell("echo ready; while read -r line; do echo \"got $line\"; done");
  echo.keep_input_open = true;
  const auto job = jobs.start(echo);
  if (!job) return std::fprintf(stderr, "%s\n", job.error().message.c_str()), 1;

  // wait() returns as soon as a line matches. read() returns what is new since the last offset.
  std::uint64_t seen = 0;
  codeexec::Jobs::Wait until;
  until.time = std::chrono::seconds(10);
  for (const char* word : {"ready", "apples", "pears"}) {
    if (seen > 0 && !jobs.write(job->id, std::string(word) + "\n")) return 1;
    until.out = seen;
    until.pattern = *codeexec::Regex::compile(word);
    const auto met = jobs.wait(job->id, until);
    const auto read = jobs.read(job->id, seen);
    if (!met || !read) return 1;
    std::printf("%s: %s", name(*met), read->out.text.c_str());
    seen = read->out.next;
  }

  // kill() ends it with all that it has started.
  if (!jobs.kill(job->id)) return 1;
  for (const codeexec::JobStatus& status : jobs.list())
    std::printf("the job is %s\n", name(status.state));
}
