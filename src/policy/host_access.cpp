// Programs that open the host to what they start: containers with folders, devices or rights of the
// host, namespaces of its first process, commands that its service manager runs.
//
//   docker run -v /:/h alpine        a folder that the system needs
//   docker run --privileged alpine   the rights of root on the host
//   nsenter -t 1 -m                  the namespaces of the host
//   systemd-run id                   outside of any sandbox
//
// The rows of such programs have Wrapper::reaches_host.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Capabilities with which a container reaches the host, without `cap_`.
constexpr auto container_capabilities =
    NameSet{"all", "bpf", "dac_read_search", "sys_admin", "sys_module", "sys_rawio"};

// The sockets of engines: what can write to one may start any container.
constexpr auto engine_sockets =
    NameSet{"containerd.sock", "crio.sock", "docker.sock", "podman.sock"};

// Folders of / that give the host away, besides the protected trees.
constexpr auto host_folders = NameSet{"home", "run", "var"};

// The value of a key in a list such as type=bind,source=/; empty: it is not there.
std::string_view value_behind(std::string_view list, std::string_view key) {
  while (!list.empty()) {
    std::string_view value = take_part(list, ',');
    if (take_part(value, '=') == key) return value;
  }
  return {};
}

// Looks at the arguments of one program.
class HostAccess {
 public:
  HostAccess(Subject& subject, const Wrapper& wrapper, const Form& form)
      : subject_(subject), wrapper_(wrapper), form_(form) {}

  bool is_found() {
    const std::string_view name = wrapper_.name;
    if (name == "nsenter"sv) return enters_host();
    if (name == "chroot"sv) return changes_to_host();
    if (name == "systemd-run"sv) return leaves_sandbox();
    if (name == "flatpak-spawn"sv) return has_option("host");
    if (name == "distrobox-host-exec"sv) return true;
    if (starts_with(name, "machinectl"sv)) return is_host_machine();
    return starts_with(name, "lxc"sv) ? opens_system_container() : opens_container();
  }

 private:
  Arguments arguments() const { return {form_, wrapper_.syntax, Order::stop_at_operand}; }
  bool has_option(std::string_view option) const {
    for (Arguments each = arguments(); each.next();)
      if (each.is_option && each.option == option) return true;
    return false;
  }

  bool opens_container();
  void note_option(const Arguments& each);
  bool opens_system_container() const;
  bool mounts_host(const Part& source, bool writes) const;
  bool enters_host() const;
  bool changes_to_host() const;
  bool leaves_sandbox() const;
  bool is_host_machine() const;

  Subject& subject_;
  const Wrapper& wrapper_;
  const Form& form_;

  // Of a container.
  bool opens_ = false;
  bool traces_ = false;          // it may look into processes
  bool sees_processes_ = false;  // those of the host
};

// containers --------------------------------------------------------------------------------------

// True if a folder of the host that a container gets gives the host away.
bool HostAccess::mounts_host(const Part& source, bool writes) const {
  // A name without a slash is that of a volume.
  const std::string_view text = source.text;
  if (text.empty() || (!source.home() && text[0] != '/' && text[0] != '.')) return false;
  const PathText path = subject_.path_of(source, true);
  if (path.root == PathText::Root::relative) return false;
  if (engine_sockets.has(path.names.empty() ? ""sv : path.names.back())) return true;
  if (subject_.in_workspace(path)) return false;
  if (path.root == PathText::Root::slash) {
    if (path.names.empty()) return true;
    const std::string_view top = path.names[0];
    const bool folder =
        host_folders.has(top) || protected_trees.has(top) || starts_with(top, "lib"sv);
    if (path.names.size() == 1 && folder) return true;
  }
  bool plants = false;
  if (writes) each_keeper(path, false, [&](Rule rule) { plants |= rule == Rule::plant; });
  return plants;
}

// One option of docker run, or of what is like it.
void HostAccess::note_option(const Arguments& each) {
  const Part& part = each.part;
  if (each.has("privileged")) opens_ |= part.text != "false"sv;
  if (!each.is_option || !part.word) return;
  std::string_view text = part.text;
  if (each.has("v", "volume", "bind", "bind-ro", "D", "directory")) {
    const std::string_view source = take_part(text, ':');
    const std::string_view options = text.substr(std::min(text.find(':'), text.size()));
    const bool reads = each.has("bind-ro") || options.find("ro") != std::string_view::npos;
    opens_ |= mounts_host({source, part.word}, !reads);
  } else if (each.has("mount")) {
    const bool reads = text.find("readonly") != std::string_view::npos;
    for (const std::string_view key : {"source"sv, "src"sv})
      opens_ |= value_behind(text, "type"sv) != "volume"sv &&
                mounts_host({value_behind(text, key), part.word}, !reads);
  } else if (each.has("cap-add")) {
    const std::string names = in_lower_case(text);
    std::string_view name = names;
    if (starts_with(name, "cap_"sv)) name.remove_prefix(4);
    traces_ |= name == "sys_ptrace"sv;
    opens_ |= container_capabilities.has(name);
  } else if (each.has("pid")) {
    sees_processes_ |= text == "host"sv;
  } else if (each.has("overrides")) {
    for (const char* key : {"\"privileged\"", "\"hostPath\"", "\"hostPID\""})
      opens_ |= text.find(key) != std::string_view::npos;
  }
}

bool HostAccess::opens_container() {
  Arguments each = arguments();
  while (each.next()) note_option(each);
  if (wrapper_.has(Wrapper::options_again)) {
    Arguments more(form_.from(each.at()), wrapper_.syntax, Order::stop_at_operand);
    while (more.next()) note_option(more);
  }
  return opens_ || (traces_ && sees_processes_);
}

// lxc config device add C D disk source=/ path=/h
bool HostAccess::opens_system_container() const {
  for (std::size_t i = 1; i < form_.size; ++i) {
    std::string_view value = form_.words[i].text;
    const std::string_view key = take_part(value, '=');
    if (key == "source"sv && mounts_host({value, &form_.words[i]}, true)) return true;
    if (is_any(key, "security.privileged", "raw.lxc") && value != "false"sv) return true;
  }
  return false;
}

// the host itself ---------------------------------------------------------------------------------

// With namespaces of the process 1, among them that of mounts. Without any that is named, nsenter
// takes those for which it gets files, or all.
bool HostAccess::enters_host() const {
  bool first_process = false, mounts = false, others = false;
  Arguments each = arguments();
  while (each.next()) {
    first_process |= each.has("t", "target") && each.part.text == "1"sv;
    mounts |= each.has("m", "mount", "a", "all");
    others |= each.has("u", "uts", "i", "ipc", "n", "net", "p", "pid", "C", "cgroup", "U", "user",
                       "T", "time");
  }
  for (std::size_t i = 1; i < std::min(each.at(), form_.size); ++i)
    if (form_.words[i].text.find("/proc/1/ns/mnt") != std::string::npos) return true;
  return first_process && (mounts || !others);
}

bool HostAccess::changes_to_host() const {
  const std::size_t i = arguments().skip();
  if (i >= form_.size) return false;
  const PathText path = subject_.path_of(part_of(form_.words[i]));
  bool found = false;
  each_keeper(path, false, [&](Rule rule) { found |= rule == Rule::host_access; });
  return found;
}

// What the manager of the system starts is in no sandbox of ours. A scope stays where it is.
bool HostAccess::leaves_sandbox() const {
  bool as_root = false, stays = false, starts = false;
  Arguments each = arguments();
  while (each.next()) {
    as_root |= each.has("uid") && is_any(each.part.text, "0", "root");
    stays |= each.has("user", "scope", "help", "version", "h");
    starts |= each.has("t", "pty", "S", "shell");
  }
  return as_root || (!stays && (starts || each.at() < form_.size));
}

// Without a machine, or as root@ and root@.host, it is the host.
bool HostAccess::is_host_machine() const {
  const std::size_t i = arguments().skip();
  if (i >= form_.size) return true;
  const std::string_view name = form_.words[i].text;
  const std::size_t at = name.find('@');
  const std::string_view machine = at == std::string_view::npos ? name : name.substr(at + 1);
  return is_any(machine, "", ".host");
}

}  // namespace

inline namespace inner {

void check_host_access(Subject& subject, const Wrapper& wrapper, const Form& form) {
  if (!subject.judged.wants(Rule::host_access)) return;
  if (HostAccess(subject, wrapper, form).is_found())
    subject.refuse(Rule::host_access, form.words[0], form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
