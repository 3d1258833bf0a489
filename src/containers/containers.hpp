// The tools of a user's container, and what a model has to know of it.
#pragma once

#include "base/base.hpp"
#include "docker/docker.hpp"
#include "mcp/mcp.hpp"

namespace codeexec {
inline namespace v0_1 {

// Adds the tools of a user's container, all of them for the user `user_id`. The containers are
// borrowed. Errors are those of add_execution_tools().
//   execute_bash(command, timeout?)                 to_json(Result)
//   read_file(file_path, offset?, line_count?)      {file_path, content}; lines, the first is 0
//   write_file(file_path, content)                  {success, file_path, bytes, message}
//   read_docstring(file_path, function_name)        {file_path, function_name, docstring}
//     file_path is a path, or a module of /tools.
//   list_artifacts()                                {artifacts: [{name, size}]}
//   get_artifact(name)                              {name, size, encoding: "base64", content}
// json_text: see ToolOptions.
Expected<void> add_user_container_tools(mcp::Server& server, const UserContainers& containers,
                                        const std::string& user_id, bool json_text = false);

// Describes to a model its container, for ServerOptions::instructions: its directories, and the
// skills there are.
std::string describe(const UserContainers& containers);

}  // namespace v0_1
}  // namespace codeexec
