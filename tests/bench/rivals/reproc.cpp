// reproc, by its interface in C, which that in C++ is made of.
#include <reproc/drain.h>
#include <reproc/reproc.h>
#include <reproc/run.h>

#include "driver.hpp"

namespace {

const char* const true_argv[] = {"/bin/true", nullptr};

int add(REPROC_STREAM, const uint8_t* bytes, size_t size, void* text) {
  static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), size);
  return 0;
}

reproc_options discarding() {
  reproc_options options = {};
  options.redirect.discard = true;
  return options;
}

}  // namespace

void run() { check(reproc_run(true_argv, discarding()) == 0); }

std::string capture() {
  const char* const argv[] = {"/bin/echo", "hello", nullptr};
  std::string text;
  check(reproc_run_ex(argv, {}, {add, &text}, REPROC_SINK_NULL) == 0);
  return text;
}

void many() {
  std::vector<reproc_t*> all;
  for (int i = 0; i < at_once; ++i) {
    all.push_back(reproc_new());
    check(reproc_start(all.back(), true_argv, discarding()) >= 0);
  }
  for (reproc_t* const one : all) {
    check(reproc_wait(one, REPROC_INFINITE) == 0);
    reproc_destroy(one);
  }
}

int main() { return drive(); }
