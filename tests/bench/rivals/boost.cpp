// Boost.Process v2.

// The headers of Boost 1.81 use these and do not include them.
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/process/v2.hpp>

#include "driver.hpp"

namespace process = boost::process::v2;

namespace {

boost::asio::io_context context;

}  // namespace

void run() {
  process::process one(context, "/bin/true", {});
  check(one.wait() == 0);
}

std::string capture() {
  boost::asio::readable_pipe pipe(context);
  process::process one(context, "/bin/echo", {"hello"}, process::process_stdio{{}, pipe, {}});
  std::string text;
  boost::system::error_code end;
  boost::asio::read(pipe, boost::asio::dynamic_buffer(text), end);
  check(one.wait() == 0);
  return text;
}

void many() {
  std::vector<std::unique_ptr<process::process>> all;
  for (int i = 0; i < at_once; ++i)
    all.push_back(
        std::make_unique<process::process>(context, "/bin/true", std::vector<std::string>()));
  for (const auto& one : all) check(one->wait() == 0);
}

int main() { return drive(); }
