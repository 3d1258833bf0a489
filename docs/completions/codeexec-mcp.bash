# bash completion of codeexec-mcp. Made by docs/options.py from src/*/option_table.cpp: change those, then run it.
_codeexec_mcp() {
  local IFS=$'\n' current=${COMP_WORDS[COMP_CWORD]} option= i words=
  COMPREPLY=()
  # A value may stand behind a `=`, which is then a word of its own.
  [ "$current" = = ] && current=
  case $current in
    -*)
      COMPREPLY=($(compgen -W '--allowed-paths
--read-only
--workspace
--execution-mode
--policy
--allowed-commands
--allow-usual
--blocked-commands
--disable-rule
--ask-commands
--ask-rule
--ask-timeout
--delete-guard
--sandbox
--network
--allow-domains
--deny-domains
--private-home
--no-private-tmp
--unix-sockets
--shared-memory
--terminals
--devices
--pid-namespace
--protected-paths
--hidden-paths
--no-watch-files
--allow-later
--put-back-dir
--no-supervisor
--timeout
--max-timeout
--idle-timeout
--max-output-size
--limit-cpu
--limit-memory
--limit-address-space
--limit-processes
--limit-open-files
--limit-file-size
--limit-disk
--max-concurrent
--calls-per-minute
--running-time
--keep-env
--set-env
--secret-env
--venv-path
--no-auto-venv
--command-prefix
--no-git-identity
--shell
--local-skills-directory
--run-in-background-after
--answer-within
--max-background-shells
--max-background-time
--disable-tool
--full-results
--result-text
--audit-file
--audit-key
--audit-syslog
--audit-output
--transcript
--spill-dir
--agent-id
--docker-image
--docker-image-policy
--docker-network-mode
--docker-network
--docker-dns
--docker-add-host
--docker-program
--docker-context
--docker-host
--docker-runtime
--docker-gpus
--docker-option
--docker-memory-limit
--docker-cpu-limit
--docker-pids-limit
--docker-shm-size
--docker-tmp-size
--docker-read-only-root
--docker-user
--docker-mount
--tools-path
--skills-path
--enable-sudo
--docker-credentials
--docker-packages
--docker-packages-required
--docker-cache
--docker-persistent
--instance-id
--docker-log-file
--docker-start-timeout
--docker-call-timeout
--docker-run-timeout
--docker-pull-timeout
--profile
--user-id
--workspace-size
--artifacts-size
--max-artifact-size
--place-host
--place-command
--place-agent-path
--place-agent
--place-workspace
--place-copy-files
--place-copy-size
--place-copy-exclude
--place-copy-gitignore
--place-start-timeout
--place-pool
--place-keep-alive
--slurm-option
--kubernetes-option
--kubernetes-image
--kubernetes-pod-template
--kubernetes-warm-pool
--kubernetes-limit
--kubernetes-claim
--kubernetes-lifetime
--config
--run
--check
--client-config
--write
--only-shell
--remove
--massgen-path
--doctor
--sandbox-report
--explain
--list-rules
--list-domains
--verify-audit
--last-hash
--report
--output
--replay
--places
--places-remove
--json
--place
--help
--help-all
--version' -- "$current"))
      return
      ;;
  esac
  # The value belongs to the last option before it.
  for ((i = COMP_CWORD - 1; i > 0; i--)); do
    case ${COMP_WORDS[i]} in --*) option=${COMP_WORDS[i]} && break ;; esac
  done
  case $option in
    --allowed-paths|--read-only|--workspace|--put-back-dir|--venv-path|--local-skills-directory|--spill-dir|--tools-path|--skills-path) compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -d -- "$current")) ;;
    --execution-mode) words='local docker ssh slurm kubernetes command' ;;
    --policy) words='strict compat' ;;
    --disable-rule|--ask-rule) words='sudo su chmod chown dd mkfs disk-tools mount device-write rm-protected rm-unset-variable mv-dev-null fork-bomb end-machine kill-all machine-settings accounts host-access plant opaque-shell-input unknown-command' ;;
    --sandbox) words='off best-effort strict' ;;
    --network) words='host none loopback allow' ;;
    --private-home) words='off command executor' ;;
    --hidden-paths|--allow-later|--shell|--audit-file|--audit-key|--transcript|--docker-log-file|--place-agent-path|--place-agent|--kubernetes-pod-template|--config|--write|--verify-audit|--report|--output|--replay) compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -f -- "$current")) ;;
    --result-text) words='auto plain json' ;;
    --docker-image-policy) words='never missing always' ;;
    --docker-network-mode) words='none bridge host' ;;
    --profile) words='commands user-container' ;;
    --place-workspace) words='shared remote copy' ;;
    --client-config) words='claude-code claude-desktop cursor vscode codex gemini qwen opencode cline continue copilot zed windsurf massgen' ;;
  esac
  IFS=$' \n'
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _codeexec_mcp codeexec-mcp
