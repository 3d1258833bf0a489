// Programs that start another one in a container, on another machine or on a cluster.
// wrapper_columns_internal.hpp says how a row is written.
#pragma once

#include "policy/wrapper_columns_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

struct ElsewhereRows : WrapperColumns {
  static constexpr WrapperRow rows[] = {
      {"adb", has_commands, letters("sHPt")},
      {"adb shell", elsewhere, joins_words},
      {"ansible", no_command, elsewhere, letters("aimufMtTCK"),
       longs("args module-name inventory user extra-vars limit"), scripts("a args")},
      {"apptainer", has_commands},
      {"apptainer exec", word_before, elsewhere, letters("BH"),
       switches("cleanenv contain containall fakeroot nv writable writable-tmpfs no-home")},
      {"autossh", word_before, elsewhere, reads_input, joins_words, options_again,
       letters("BbcDEeFIiJLlMmOoPpQRSWw"), scripts("o")},
      {"buildah", has_commands},
      {"buildah run", word_before, elsewhere, options_again, letters("v"),
       longs("volume mount user workingdir")},
      {"bwrap",
       longs("args chdir cap-add cap-drop dev proc tmpfs mqueue dir uid gid hostname unsetenv "
             "seccomp add-seccomp-fd exec-label file-label sync-fd info-fd json-status-fd block-fd "
             "perms size lock-file remount-ro overlay-src tmp-overlay ro-overlay userns userns2 "
             "pidns argv0"),
       longs_with_two("bind bind-try dev-bind dev-bind-try ro-bind ro-bind-try setenv symlink file "
                      "bind-data ro-bind-data chmod")},
      {"colima", has_commands, letters("p")},
      {"colima ssh", behind_dashes, no_command, elsewhere},
      {"crictl", has_commands, letters("r")},
      {"crictl exec", word_before, elsewhere},
      {"crun", same_as("runc")},
      {"dagger", has_commands},
      {"dagger run"},
      {"dapr", has_commands},
      {"dapr run", behind_dashes, no_command},
      {"devcontainer", has_commands},
      {"devcontainer exec", elsewhere,
       longs("workspace-folder container-id config id-label remote-env docker-path")},
      {"distrobox", has_commands},
      {"distrobox enter", behind_dashes, no_command, elsewhere},
      {"distrobox-enter", same_as("distrobox enter")},
      {"docker", has_commands, letters("cHl"),
       longs("config context host log-level tlscacert tlscert tlskey connection identity root "
             "runroot storage-driver url")},
      {"docker compose", has_commands, letters("fp"),
       longs("file profile project-name project-directory env-file ansi parallel progress")},
      {"docker compose exec", word_before, elsewhere, letters("euw"),
       longs("env index user workdir")},
      {"docker compose run", word_before, elsewhere, letters("eluvwp"),
       longs(
           "env env-from-file label name publish user volume workdir entrypoint cap-add cap-drop"),
       programs("entrypoint")},
      {"docker container", same_as("docker")},
      {"docker create", same_as("docker run")},
      {"docker exec", word_before, elsewhere, letters("euw"),
       longs("env env-file user workdir detach-keys")},
      // Most of its options take an argument, so that the others are named here.
      {"docker run", word_before, elsewhere, letters("acehlmpuvw"),
       switches("detach help init interactive no-healthcheck oom-kill-disable privileged "
                "publish-all quiet read-only replace rm rmi sig-proxy tty disable-content-trust"),
       programs("entrypoint")},
      {"docker-compose", same_as("docker compose")},
      {"flatpak-spawn"},
      {"fly", has_commands},
      {"fly ssh", has_commands},
      {"fly ssh console", no_command, elsewhere, letters("Cas"), longs("command app"),
       scripts("C command")},
      {"flyctl", same_as("fly")},
      {"gcloud", has_commands, longs("project zone")},
      {"gcloud compute", has_commands},
      {"gcloud compute ssh", no_command, elsewhere, longs("command zone project"),
       scripts("command")},
      {"heroku", has_commands, letters("a")},
      {"heroku run", elsewhere, joins_words, letters("a"), longs("app")},
      {"incus", same_as("lxc")},
      {"k3s", has_commands},
      {"k3s kubectl", same_as("kubectl")},
      {"kubectl", has_commands, letters("ns"),
       switches("help warnings-as-errors insecure-skip-tls-verify match-server-version")},
      {"kubectl debug", same_as("kubectl run")},
      {"kubectl exec", word_before, elsewhere, options_again, letters("cfn"),
       switches("stdin tty quiet help")},
      {"kubectl run", word_before, elsewhere, options_again, letters("nlfoc"),
       switches("command stdin tty rm attach quiet privileged expose help leave-stdin-open")},
      {"lima", elsewhere},
      {"limactl", has_commands},
      {"limactl shell", word_before, elsewhere, options_again, longs("workdir shell")},
      {"lxc", has_commands},
      {"lxc exec", word_before, elsewhere, options_again, longs("env user group cwd")},
      {"machinectl", has_commands},
      {"machinectl shell", word_before, elsewhere, letters("E"), longs("uid setenv")},
      {"microk8s", same_as("k3s")},
      {"minikube", has_commands, letters("p"), longs("profile")},
      {"minikube ssh", elsewhere, joins_words, letters("n"), longs("node")},
      {"mosh", word_before, elsewhere, options_again, letters("p"), longs("ssh port"),
       scripts("ssh")},
      {"multipass", has_commands},
      {"multipass exec", word_before, elsewhere, options_again},
      {"nerdctl", same_as("docker")},
      {"nomad", has_commands},
      {"nomad alloc", has_commands},
      {"nomad alloc exec", word_before, elsewhere, options_again, letters("ie"), longs("task job")},
      {"oc", same_as("kubectl")},
      {"podman", same_as("docker")},
      {"podman-compose", same_as("docker compose")},
      {"railway", has_commands},
      {"railway run", letters("se"), longs("service environment")},
      {"rsync", no_command, known_in_part, letters("efTBM"),
       longs(
           "rsh rsync-path filter include exclude include-from exclude-from files-from partial-dir "
           "temp-dir backup-dir suffix compare-dest copy-dest link-dest log-file password-file "
           "bwlimit max-size min-size timeout port chmod chown info debug out-format"),
       scripts("e rsh rsync-path")},
      {"runc", has_commands},
      {"runc exec", word_before, elsewhere, options_again, letters("eupd"),
       longs("cwd env user pid-file process")},
      {"salloc", same_as("srun")},
      // Without --wrap it reads a file.
      {"sbatch", no_command, known_in_part, letters("ApJtNncCoeDw"), longs("wrap"),
       scripts("wrap")},
      {"scp", no_command, known_in_part, letters("cDFiJloPSX"), scripts("o S")},
      {"sftp", no_command, known_in_part, letters("BbcDFiJloPRsSX"), scripts("o S s")},
      {"singularity", same_as("apptainer")},
      {"srun", letters("ApJtNncCoeDwGqiK"),
       longs("account partition job-name time nodes ntasks cpus-per-task mem gres output error")},
      {"ssh", word_before, elsewhere, reads_input, joins_words, options_again,
       letters("BbcDEeFIiJLlmOoPpQRSWw"), scripts("o")},
      {"systemd-nspawn", elsewhere, letters("DiMuUxEp"),
       longs("directory image machine user bind bind-ro setenv property")},
      {"tailscale", has_commands},
      {"tailscale ssh", same_as("ssh")},
      {"toolbox", has_commands},
      {"toolbox run", letters("cdr"), longs("container distro release")},
      {"tsh", has_commands},
      {"tsh ssh", same_as("ssh")},
      {"vagrant", has_commands},
      {"vagrant ssh", no_command, elsewhere, letters("c"), longs("command"), scripts("c command")},
      {"wsl", elsewhere, letters("du"), longs("distribution user cd")},
  };
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
