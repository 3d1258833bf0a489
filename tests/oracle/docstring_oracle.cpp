// What python_docstring says, for docstring_oracle.py. Reads one JSON object in each line,
// {"path": ..., "names": [...]}, and answers each with one line, a list: a string is a docstring,
// an object {"code", "offset", "message"} is an error.
#include "../helpers/support.hpp"
#include "codeexec.hpp"

#include <iostream>
#include <string>

using codeexec::Json;

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto question = Json::parse(line);
    if (!question) support::fail("not JSON:", line);
    const std::string source = support::read_file((*question)["path"].as_string());
    Json answers = Json::array();
    for (const Json& name : (*question)["names"].items()) {
      const auto docstring = codeexec::python_docstring(source, name.as_string());
      if (docstring)
        answers.push_back(*docstring);
      else
        answers.push_back(Json::object({{"code", codeexec::name(docstring.error().code)},
                                        {"offset", docstring.error().offset},
                                        {"message", docstring.error().message}}));
    }
    std::cout << answers.dump() << std::endl;
  }
}
