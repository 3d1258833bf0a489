// main() of the test program, and a listener that counts the cases by what became of them.
//
// A case that cannot run on this machine says MESSAGE("SKIPPED: why") and returns; doctest takes it
// for a passed one. The last line printed here is what tests/run.sh adds up:
//   codeexec-tests: 41 passed, 0 failed, 1 skipped
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Tally : doctest::IReporter {
  explicit Tally(const doctest::ContextOptions& options) : quiet_(options.count) {}

  void test_case_start(const doctest::TestCaseData& data) override {
    case_ = data.m_name;
    skipped_ = false;
  }

  // A MESSAGE may come from any thread of a test.
  void log_message(const doctest::MessageData& message) override {
    if (std::strncmp(message.m_string.c_str(), "SKIPPED:", 8) != 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    skipped_ = true;
    reasons_.push_back(case_ + ":" + (message.m_string.c_str() + 8));
  }

  // Also called for a case that throws: test_case_exception only tells why.
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    ++(!stats.testCaseSuccess ? failed_count_ : skipped_ ? skipped_count_ : passed_count_);
  }

  void test_run_end(const doctest::TestRunStats&) override {
    if (quiet_) return;
    for (const std::string& reason : reasons_) std::printf("SKIPPED: %s\n", reason.c_str());
    std::printf("codeexec-tests: %d passed, %d failed, %d skipped\n", passed_count_, failed_count_,
                skipped_count_);
    std::fflush(stdout);
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  bool quiet_;
  std::mutex mutex_ = {};
  std::string case_ = {};
  bool skipped_ = false;
  int passed_count_ = 0, failed_count_ = 0, skipped_count_ = 0;
  std::vector<std::string> reasons_ = {};
};

REGISTER_LISTENER("tally", 1, Tally);

}  // namespace
