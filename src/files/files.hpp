// Files that a model reads, writes and lists, within the roots.
#pragma once

#include "base/base.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

// The part of a file that is wanted.
struct FileRange {
  static constexpr std::uint64_t all = ~std::uint64_t{0};  // as many as max_bytes holds
  bool by_bytes = false;                         // the unit of offset and count; else lines
  std::uint64_t offset = 0;                      // from the start of the file
  std::uint64_t count = all;                     // from there on; 0: none
  std::size_t max_bytes = std::size_t{1} << 18;  // of what is returned; at least 1
};

// What was read.
//
// By lines, only whole ones are given, except for a first one that is longer than max_bytes: of
// that the beginning is given and cut_line is set. `next` is then the line after it; the rest of
// it is read by bytes, from begin + bytes.size() on.
// An offset beyond the end is no error: there are no bytes, `begin` is the size of the file and
// `next` is the end in the unit of the range, so that it gives the number of lines.
struct FileContent {
  std::string path = {};    // canonical
  std::string bytes = {};   // as they are in the file
  std::uint64_t size = 0;   // of the whole file, in bytes
  std::uint64_t begin = 0;  // where `bytes` begins in the file, in bytes
  std::uint64_t lines = 0;  // in `bytes`, the last of which may lack its line end
  std::uint64_t next = 0;   // the offset, in the unit of the range, that goes on after this
  bool more = false;        // there is more after it
  bool cut_line = false;    // by lines: the only line is not whole, it did not fit
  // `bytes` has a NUL or is not UTF-8. A character that the range cuts in two does not count; where
  // max_bytes is what cuts, the cut is before that character.
  bool binary = false;
  std::string mime_type = {};  // of png, jpeg, gif, webp, by the file's first bytes; else empty
};

struct FileWrite {
  // Directories of the path that are missing are made. They stay when the file then cannot be.
  bool make_directories = true;
  // Only when there is nothing of that name: invalid_argument with EEXIST otherwise, also when it
  // comes meanwhile.
  bool only_new = false;
  bool remove = false;  // nothing is written, and the file goes away
  // When set: a canonical directory, to which the roots are confined for this call.
  std::string below = {};
};

// What edit() changes in a file: `old_text` becomes `new_text`.
struct FileEdit {
  std::string old_text = {};  // not empty, exactly as in the file but for its line ends
  std::string new_text = {};
  bool all = false;  // wherever it is; else it must be at one place alone
};

// What edit() has done.
struct FileEdited {
  std::string path = {};       // canonical
  std::uint64_t replaced = 0;  // places
  // The hunks of a unified diff, at most max_diff bytes of them.
  std::string diff = {};
};

struct FileEntry {
  enum class Type { file, directory, link, other };
  std::string path = {};  // relative to the directory that was listed; bytes, mostly UTF-8
  Type type = Type::file;
  std::uint64_t size = 0;     // bytes, of files
  std::string modified = {};  // UTC, RFC 3339
  // A directory that `depth` reaches and that was not looked into: it may not be read, or it is of
  // a kind that holds nothing of interest (see Files::list).
  bool closed = false;
};
const char* name(FileEntry::Type type) noexcept;

struct FileList {
  std::string path = {};                // canonical
  std::vector<FileEntry> entries = {};  // by path, byte by byte; a directory before what is in it
  bool more = false;  // there are more than max_entries, or deeper ones that could not be read
  std::uint64_t ignored = 0;  // were left out, as a .gitignore says
};

// What search() looks for.
struct FileSearch {
  std::string pattern = {};  // see Regex; each line is a text of its own, without its end
  // Of names, or with a / of paths from `path`; `**` and {a,b}, too. At most 4 KiB.
  std::string glob = {};
  std::size_t context = 0;                       // lines around each that matches, at most 100
  bool files_only = false;                       // paths alone, one a line
  std::size_t max_matches = 1000;                // lines that match, or files
  std::size_t max_bytes = std::size_t{1} << 16;  // of FileMatches::text
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::optional<CancelToken> cancel = {};
  // Masks secrets in a line before a part of it is taken: of half a secret nothing knows later that
  // it is one. For files here; those elsewhere are searched without it.
  Function<std::string(std::string_view)> mask = {};
};

// What was found, by path, with the path of each file before its lines:
//   src/a.c
//   12:a line that matches, of which at most 300 bytes are given
//   13-a line of its context
//   --
//   40:the next one
struct FileMatches {
  std::string path = {};  // canonical, where it was searched
  std::string text = {};
  std::uint64_t matches = 0;     // lines, or with files_only files
  std::uint64_t ignored = 0;     // files and directories left out, as a .gitignore says
  std::uint64_t binary = 0;      // files that were left out, as they have a NUL
  std::uint64_t unreadable = 0;  // files and directories
  bool more = false;             // a bound was reached, and the rest was not searched
};

// Internal: files on another machine, and a question about them.
class FilesElsewhere;
struct FileMessage;
struct MovedDirectory;  // that commands have at another path

// Files below the roots, for tools that need no command. Does not change after it is made; any
// thread may use it.
//
// A path is absolute or relative to `base`, and does not begin with `~/`; symbolic links in it are
// followed to where they lead, and that place must lie in a root. What is opened has the path that
// was checked: each directory on the way is opened from the one before, following no link, so that
// neither `..` nor a link nor one that is exchanged meanwhile leads elsewhere. Only regular files
// are read and written, and nothing of /proc, where this program's own memory is, nor of the other
// file systems in which the kernel speaks of itself (/sys and those below it). A hard link is a
// name like any other.
//   Errors: permission_denied outside of the roots, for a change where a root may only be read, and
//   where the system says so; not_found; invalid_argument for a path that is empty or has a NUL,
//   and for what is no regular file, or no directory; limit; io.
class Files {
 public:
  static constexpr std::size_t max_entries = 2000;  // listed at once
  static constexpr std::size_t max_write = std::size_t{64} << 20;
  static constexpr std::size_t max_edits = 100;                     // of a file at once
  static constexpr std::size_t max_edited = std::size_t{16} << 20;  // bytes of a file to be edited
  static constexpr std::size_t max_diff = 8192;
  static constexpr std::size_t max_searched = 4000000;
  // Looked through for the offset of a range in lines; beyond it only bytes can be read.
  static constexpr std::uint64_t max_scan = std::uint64_t{1} << 30;

  // With `elsewhere`, which is borrowed, they are there.
  // With `moved`, paths are those that commands see, and the rules are for what is here.
  Files(PathRules rules, std::string base, const FilesElsewhere* elsewhere = nullptr,
        std::shared_ptr<const MovedDirectory> moved = {});

  // Memory: max_bytes of the range and a buffer; time: up to the end of the range.
  Expected<FileContent> read(std::string_view path, const FileRange& range = {}) const;

  // Replaces the file as a whole, or makes it, and returns its canonical path: at no moment is
  // there a file of that name with anything but the old or the new bytes, also after a crash (a
  // new file beside it is written, flushed to the disk and renamed). The file and its directory
  // must be writable by the rules, and by the system: one that is write-protected is not replaced.
  // Rights, and owner and group as far as this process may give them, stay; set-id bits, access
  // lists and other hard links do not, and a group that cannot be kept loses what others may not. A
  // new file gets 0666 without the umask, a new directory 0777 likewise, and what root makes
  // belongs to the owner of the directory it is made in. The last name of a path may be a link:
  // what it leads to is replaced.
  Expected<std::string> write(std::string_view path, std::string_view bytes,
                              const FileWrite& how = {}) const;

  // Changes a text as write() replaces a file: all of the edits, or none. Each is looked for in the
  // text as it was. What both texts of an edit begin and end with stays; the rest of two edits may
  // not overlap. Where the file has \r\n, a \n of an edit stands for it, in both texts. The file is
  // left as it is when it was changed meanwhile.
  //   Memory: a few times the file. Time: edits x file.
  //   Errors, beside those of write(): not_found for an old_text that is not there, with the
  //   nearest lines; invalid_argument for one at several places without `all`, with their lines,
  //   for edits that are empty, change nothing or overlap, and for what is no text (it has a NUL);
  //   limit for more than max_edited bytes or 100,000 places; io when it was changed meanwhile.
  Expected<FileEdited> edit(std::string_view path, const std::vector<FileEdit>& edits) const;

  // What a directory holds, `depth` levels deep, at least 1; hidden files, too. Links are shown and
  // not followed. The upper levels come first when there are too many. Not looked into: .git, .hg,
  // .svn, the directories that is_auto_generated() knows by their names alone (__pycache__,
  // node_modules ...), those that a root forbids, and /proc and its like. What a .gitignore names
  // is left out: that of the directory, of those in it, and of those around it in its repository.
  Expected<FileList> list(std::string_view path, std::size_t depth = 1) const;

  // Searches a file, or a directory and what list() would look into, by lines. Links are not
  // followed. Depth: 128; names: max_searched files and directories.
  //   Memory: 1 MiB of a file, the names of the directories on the way to it, and the pattern.
  //   Time: that of reading the files; a pattern that takes longer stops at the timeout.
  //   Errors, beside those of list(): those of Regex for the pattern.
  Expected<FileMatches> search(std::string_view path, const FileSearch& search) const;

  // Carries out what was asked of FilesElsewhere.
  void answer(FileMessage& message) const;

 private:
  void answer_read(FileMessage& message) const;
  void answer_list(FileMessage& message) const;
  void answer_search(FileMessage& message) const;
  const FilesElsewhere* elsewhere(std::string_view path) const;
  // The path here of what lies in the moved directory; empty: it does not.
  std::string moved_path(std::string_view path) const;
  PathRules rules_;
  std::string base_;
  const FilesElsewhere* elsewhere_;
  std::shared_ptr<const MovedDirectory> moved_;
};

// The docstring of a Python function, class or method in a source text, by reading it: nothing is
// imported or run. `name` is a dotted path from the top of the module ("f", "Class.method"); empty
// is the module itself. Only classes nest: a function in a function has no name from outside.
// Cleaned as inspect.cleandoc of Python 3.13 does; empty when there is none, or when it is an
// f-string or bytes. Of several definitions of a name the last one counts, as when it runs; those
// inside of `if`, `try`, `with`, loops and `match` count, too, and @name.setter and @name.deleter
// do not: a property has the text of its getter.
//   The source is UTF-8. An escape \N{...} stays as it is written. Linear in the source.
//   Errors: not_found when there is no such function or class; parse when the source is not
//   understood, with the offset. For the module itself only its first statement is read.
Expected<std::string> python_docstring(std::string_view source, std::string_view name);

}  // namespace v0_1
}  // namespace codeexec
