// Helpers for the tests of copied workspaces.
#ifndef CODEEXEC_TESTS_COPY_HELPERS_HPP
#define CODEEXEC_TESTS_COPY_HELPERS_HPP

#include "../../helpers/place_support.hpp"

namespace support {

// A workspace here, and a place on this host that has its copies below `cache`: the folder of the
// same path is not empty.
class Copied {
 public:
  TempDir folder = {};
  codeexec::PlaceOptions options = {};

  Copied() {
    folder.directory("ws");
    folder.directory("cache");
    options = place_options(workspace());
    options.workspace_mode = codeexec::PlaceWorkspace::copy;
    options.transport = {"env", "XDG_CACHE_HOME=" + cache(), CODEEXEC_MCP, "--place"};
    // Something is always there, so that the copy has another path.
    write_file(here(".keep"), "");
  }
  std::string workspace() const { return folder / "ws"; }
  std::string cache() const { return folder / "cache"; }
  std::string here(const std::string& file) const { return workspace() + "/" + file; }
};

// All notes of a result, a line each.
inline std::string notes_of(const codeexec::Result& r) {
  std::string text;
  for (const std::string& note : r.notes) text += note + "\n";
  return text;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_COPY_HELPERS_HPP
