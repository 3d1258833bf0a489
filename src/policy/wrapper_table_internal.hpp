// Programs that start another one, or hand a script to a shell: what the rows say of them.
#pragma once

#include "policy/tables_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What the rows say besides names of options. The rows stand in wrappers_*_internal.hpp.
struct WrapperTerms {
  // How a program is peeled off. Most are plain: options, and then the command. Each of the others
  // has a function of its own, which peel() calls.
  enum class Kind : unsigned char {
    plain,
    capsh,
    console,  // editors and the like: options have commands of its own language
    env,
    fd,
    files,  // does with files what another program does, whose name its row has
    find,
    git,
    git_config,
    group,
    input_only,   // what it does, it reads from standard input
    interpreter,  // of a Language, which its row has
    keys,         // its words are typed into another terminal
    make,
    nested,  // commands of tmux that have commands of tmux
    parallel,
    runuser,
    screen,
    script,
    sed,
    su,
    tar,
    xargs,
  };
  enum Flag : std::uint32_t {
    // What stands before the command.
    word_before = 1u << 0,         // a word, between the options and the command
    options_again = 1u << 1,       // behind that word, more options
    assignments_before = 1u << 2,  // NAME=value words
    behind_dashes = 1u << 3,       // a word --, if there is one
    maybe_word = 1u << 22,         // a word, perhaps: the command may be the word behind it
    // What follows its options.
    has_commands = 1u << 4,  // a command of its own: the row to go on with is "name command"
    command_list = 1u << 5,  // the same, and a word ; begins the next one
    joins_words = 1u << 6,   // the words of the command are joined to a script
    no_command = 1u << 7,    // none; its options may stand anywhere; but see behind_dashes
    operands_are_scripts = 1u << 8,  // of no_command: each of them
    reads_input = 1u << 9,           // if nothing follows, the script is standard input
    operand_is_code = 1u << 10,      // of an interpreter: the first, if no option gives code
    // How its scripts are read.
    known_in_part = 1u << 11,  // what is unknown in them is no reason to refuse
    elsewhere = 1u << 12,     // the same; they run on another machine, in a container or a terminal
    for_shell = 1u << 13,     // of a console: they are those of a shell
    git_settings = 1u << 14,  // its options -c and --config hold a setting of git
    reaches_host = 1u << 19,  // its options may open the host to what it runs
    feeds_input = 1u << 20,   // what its programs read comes from elsewhere
    runs_input = 1u << 21,    // without an operand, it runs what it reads
    // What options of Wrapper::programs do.
    toggles_joining = 1u << 15,  // they take no argument, and turn joins_words on, or off
    shows = 1u << 16,            // and where they turn it on, nothing runs
    // Of the row alone.
    optional_arguments = 1u << 17,  // a script may be there only in the same word: --option=SCRIPT
    longs_are_switches = 1u << 18,  // see Syntax
  };
};

struct Wrapper : WrapperTerms {
  std::string_view name = {};  // of the row; that of another program after same_as()
  Kind kind = Kind::plain;
  Language language = Language::awk;
  std::uint32_t flags = 0;  // bits of Flag
  Syntax syntax = {};
  Names scripts = {};   // options whose argument is a script
  Names programs = {};  // options whose argument is the program, or switches: see Flag

  bool has(Flag flag) const { return (flags & flag) != 0; }
};

// The row of a name: of a program, or "program command" for one of its commands. False: there is
// none.
bool find_wrapper(std::string_view name, Wrapper& wrapper);
NameTable wrapper_table();

// Variables whose value is a command.
inline constexpr auto command_variables = NameSet{"BROWSER",
                                                  "EDITOR",
                                                  "FCEDIT",
                                                  "GIT_ASKPASS",
                                                  "GIT_EDITOR",
                                                  "GIT_EXTERNAL_DIFF",
                                                  "GIT_PAGER",
                                                  "GIT_PROXY_COMMAND",
                                                  "GIT_SEQUENCE_EDITOR",
                                                  "GIT_SSH",
                                                  "GIT_SSH_COMMAND",
                                                  "LESSCLOSE",
                                                  "LESSOPEN",
                                                  "MANPAGER",
                                                  "PAGER",
                                                  "PROMPT_COMMAND",
                                                  "PS4",
                                                  "RSYNC_RSH",
                                                  "SSH_ASKPASS",
                                                  "SUDO_ASKPASS",
                                                  "VISUAL"};

// Variables whose value a shell at a terminal expands or runs by itself.
inline constexpr auto prompt_variables = NameSet{"PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"};

// The last parts of the names of git's and tmux's settings whose value is a command, besides
// pager.* and alias.*, in small letters.
inline constexpr auto command_settings = NameSet{"alternaterefscommand",
                                                 "askpass",
                                                 "browser",
                                                 "cccmd",
                                                 "clean",
                                                 "cmd",
                                                 "command",
                                                 "copy-command",
                                                 "default-command",
                                                 "default-shell",
                                                 "defaultkeycommand",
                                                 "difffilter",
                                                 "driver",
                                                 "editor",
                                                 "external",
                                                 "fsmonitor",
                                                 "gitproxy",
                                                 "headercmd",
                                                 "helper",
                                                 "httpd",
                                                 "lock-command",
                                                 "packobjectshook",
                                                 "pager",
                                                 "process",
                                                 "program",
                                                 "receivepack",
                                                 "sendmailcmd",
                                                 "smudge",
                                                 "sshcommand",
                                                 "textconv",
                                                 "tocmd",
                                                 "tunnel",
                                                 "update",
                                                 "uploadpack"};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
