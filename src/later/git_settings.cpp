// Settings of a repository: which of them start programs.
//
// A setting that is not on this list does not come through. So a new one of a later git is held
// until somebody has looked at it.

#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// With any value: the value is data for git alone.
constexpr auto harmless_settings = NameSet{
    "advice.addemptypathspec",
    "author.email",
    "author.name",
    "blame.date",
    "blame.ignorerevsfile",
    "blame.showemail",
    "branch.*.description",
    "branch.*.gh-merge-base",
    "branch.*.merge",
    "branch.*.rebase",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "clone.defaultremotename",
    "color.branch",
    "color.diff",
    "color.status",
    "color.ui",
    "column.ui",
    "commit.cleanup",
    "commit.gpgsign",
    "commit.status",
    "commit.verbose",
    "committer.email",
    "committer.name",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.commentchar",
    "core.commitgraph",
    "core.compression",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.multipackindex",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.whitespace",
    "credential.*.username",
    "credential.username",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.ignoresubmodules",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.submodule",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "feature.experimental",
    "feature.manyfiles",
    "fetch.parallel",
    "fetch.prune",
    "fetch.prunetags",
    "fetch.recursesubmodules",
    "fetch.writecommitgraph",
    "format.pretty",
    "gc.auto",
    "gc.autodetach",
    "gc.autopacklimit",
    "gc.pruneexpire",
    "gc.reflogexpire",
    "gc.reflogexpireunreachable",
    "grep.linenumber",
    "grep.patterntype",
    "http.postbuffer",
    "http.version",
    "index.sparse",
    "index.threads",
    "index.version",
    "init.defaultbranch",
    "lfs.repositoryformatversion",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "maintenance.auto",
    "maintenance.strategy",
    "merge.autostash",
    "merge.conflictstyle",
    "merge.ff",
    "merge.log",
    "merge.renamelimit",
    "merge.renames",
    "merge.stat",
    "notes.displayref",
    "pack.threads",
    "pack.windowmemory",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "push.recursesubmodules",
    "rebase.abbreviatecommands",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.stat",
    "rebase.updaterefs",
    "remote.*.fetch",
    "remote.*.gh-resolved",
    "remote.*.mirror",
    "remote.*.partialclonefilter",
    "remote.*.promisor",
    "remote.*.prune",
    "remote.*.prunetags",
    "remote.*.push",
    "remote.*.skipdefaultupdate",
    "remote.*.skipfetchall",
    "remote.*.tagopt",
    "rerere.autoupdate",
    "rerere.enabled",
    "stash.showpatch",
    "status.branch",
    "status.short",
    "status.showuntrackedfiles",
    "status.submodulesummary",
    "submodule.*.active",
    "submodule.*.branch",
    "submodule.*.fetchrecursesubmodules",
    "submodule.*.ignore",
    "submodule.*.shallow",
    "submodule.active",
    "submodule.fetchjobs",
    "submodule.recurse",
    "tag.gpgsign",
    "tag.sort",
    "user.email",
    "user.name",
    "user.useconfigonly",
};

// Whose value names a repository.
constexpr auto address_settings =
    NameSet{"branch.*.pushremote", "branch.*.remote",    "remote.*.pushurl",
            "remote.*.url",        "remote.pushdefault", "submodule.*.url"};

// `ext::sh -c ...` and its like start what the address says.
bool names_a_helper(std::string_view address) {
  std::size_t at = 0;
  while (at < address.size() &&
         (is_name_char(address[at]) || is_any(address.substr(at, 1), "+", "-", ".")))
    ++at;
  return at > 0 && starts_with(address.substr(at), "::"sv);
}

bool starts_nothing(const GitSetting& setting, IsSafePlace is_safe) {
  if (harmless_settings.has(setting.key)) return true;
  if (address_settings.has(setting.key))
    return !starts_with(setting.value, "-"sv) && !names_a_helper(setting.value) &&
           is_safe(GitPlace::repository, setting.value);
  if (setting.key == "submodule.*.update"sv)
    return is_any(setting.value, "checkout", "rebase", "merge", "none");
  return setting.key == "core.worktree"sv && is_safe(GitPlace::work_tree, setting.value);
}

bool is_git_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads settings from a text, each as the bytes that it takes.
class GitSettingsReader {
 public:
  explicit GitSettingsReader(std::string_view text) : text_(text) {}

  std::optional<std::vector<GitSetting>> read() {
    if (has_nul(text_)) return {};
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (starts_with(text_, byte_order_mark)) at_ = byte_order_mark.size();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_git_blank(c) || c == '\n') {
        ++at_;
      } else if (c == '#' || c == ';') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '[' ? !read_section() : !read_setting()) {
        return {};
      }
    }
    return std::move(settings_);
  }

 private:
  bool read_section();
  bool read_setting();
  bool read_value(std::string& value);

  std::string_view text_;
  std::size_t at_ = 0;
  std::string section_ = {};  // with a dot at the end, or ".*."
  std::string subsection_ = {};
  std::vector<GitSetting> settings_ = {};
};

// [name] or [name "subsection"]. The old form [name.subsection] is not read.
bool GitSettingsReader::read_section() {
  const std::size_t begin = ++at_;
  while (at_ < text_.size() && (is_name_char(text_[at_]) || text_[at_] == '-')) ++at_;
  section_ = in_lower_case(text_.substr(begin, at_ - begin)) + '.';
  subsection_.clear();
  if (at_ == begin || at_ == text_.size()) return false;
  if (text_[at_] == ']') {
    ++at_;
    return true;
  }
  while (at_ < text_.size() && is_shell_blank(text_[at_])) ++at_;
  if (at_ == text_.size() || text_[at_] != '"') return false;
  for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\n') return false;
    if (text_[at_] == '\\' && ++at_ == text_.size()) return false;
    subsection_ += text_[at_];
  }
  section_ += "*.";
  at_ += 2;
  return at_ <= text_.size() && text_[at_ - 1] == ']';
}

bool GitSettingsReader::read_value(std::string& value) {
  bool quoted = false;
  bool comment = false;
  std::size_t size = 0;  // without the blanks at its end
  for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
    char c = text_[at_];
    if (comment) continue;
    if (c == '\\') {
      if (++at_ == text_.size()) return false;
      c = text_[at_];
      // Releases of git differ in what they make of blanks before it.
      if (c == '\n' && value.size() != size) return false;
      if (c == '\n') continue;
      constexpr std::string_view known = "nt\"\\b";
      if (known.find(c) == std::string_view::npos) return false;
      value += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'b' ? '\b' : c;
      size = value.size();
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '#' || c == ';')) {
      comment = true;
    } else if (quoted || !is_git_blank(c)) {
      value += c;
      size = value.size();
    } else if (!value.empty()) {
      value += c;
    }
  }
  value.resize(size);
  return !quoted;
}

bool GitSettingsReader::read_setting() {
  GitSetting setting;
  const std::size_t name = at_;
  setting.begin = at_;
  while (setting.begin > 0 && is_git_blank(text_[setting.begin - 1])) --setting.begin;
  if (section_.empty() || !is_letter(text_[at_])) return false;
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '-'))
    ++at_;
  setting.key = section_ + in_lower_case(text_.substr(name, at_ - name));
  setting.subsection = subsection_;
  while (at_ < text_.size() && is_git_blank(text_[at_])) ++at_;
  if (at_ < text_.size() && text_[at_] == '=') {
    ++at_;
    if (!read_value(setting.value)) return false;
  } else if (at_ < text_.size() && text_[at_] != '\n') {
    return false;
  } else {
    setting.value = "true";
  }
  if (at_ < text_.size()) ++at_;
  setting.end = at_;
  settings_.push_back(std::move(setting));
  return true;
}

bool is_same_setting(const GitSetting& a, const GitSetting& b) {
  return a.key == b.key && a.subsection == b.subsection && a.value == b.value;
}

// Those that may start programs, in their order.
class RiskySettings {
 public:
  RiskySettings(const std::vector<GitSetting>& settings, IsSafePlace is_safe) {
    for (const GitSetting& setting : settings)
      if (!starts_nothing(setting, is_safe)) all.push_back(&setting);
  }
  bool operator==(const RiskySettings& other) const {
    return std::equal(
        all.begin(), all.end(), other.all.begin(), other.all.end(),
        [](const GitSetting* a, const GitSetting* b) { return is_same_setting(*a, *b); });
  }
  std::vector<const GitSetting*> all = {};
};

// `key` without the star, with the subsection in its place.
std::string full_name(const GitSetting& setting) {
  const std::size_t star = setting.key.find(".*.");
  if (star == std::string::npos) return setting.key;
  return concat("%.%.%",
                {setting.key.substr(0, star), setting.subsection, setting.key.substr(star + 3)});
}

// A section of its own, for a setting that is gone.
void append_setting(std::string& text, std::string_view bytes, const GitSetting& setting) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  append_all(text, "[%", {setting.key.substr(0, setting.key.find('.'))});
  if (setting.key.find(".*.") != std::string::npos) {
    text += " \"";
    for (const char c : setting.subsection) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  append_all(text, "]\n%", {bytes});
  if (text.back() != '\n') text += '\n';
}

}  // namespace

inline namespace inner {

std::optional<std::vector<GitSetting>> read_git_settings(std::string_view text) {
  return GitSettingsReader(text).read();
}

std::string safe_git_settings(std::string_view before, std::string_view now, IsSafePlace is_safe,
                              std::vector<std::string>& names) {
  const auto had = read_git_settings(before);
  const auto has = read_git_settings(now);
  if (!had || !has) {
    if (before != now) names.push_back("what cannot be read as settings");
    return std::string(before);
  }
  const RiskySettings wanted(*had, is_safe);
  const RiskySettings found(*has, is_safe);
  if (wanted == found) return std::string(now);
  constexpr std::size_t most_names = 20;
  const auto add_name = [&names](const GitSetting& setting) {
    std::string name = full_name(setting);
    if (names.size() < most_names && !is_one_of(name, names)) names.push_back(std::move(name));
  };
  std::string text;
  std::size_t at = 0;
  auto next = wanted.all.begin();
  for (const GitSetting* risk : found.all) {
    if (next != wanted.all.end() && is_same_setting(**next, *risk)) {
      ++next;
      continue;
    }
    text += now.substr(at, risk->begin - at);
    at = risk->end;
    add_name(*risk);
  }
  text += now.substr(at);
  for (; next != wanted.all.end(); ++next) {
    append_setting(text, before.substr((*next)->begin, (*next)->end - (*next)->begin), **next);
    add_name(**next);
  }
  // Where that is not enough, as what is left stands in another order, nothing comes through.
  const auto result = read_git_settings(text);
  return result && RiskySettings(*result, is_safe) == wanted ? text : std::string(before);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
