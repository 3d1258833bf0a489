// The options of other places.

#include "places/places_internal.hpp"

#include "base/base.hpp"
#include "cluster/cluster.hpp"
#include "place/place.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Members of what PlaceConfig has.
template <auto... members>
constexpr Option of_places(std::string_view name) {
  return Option::of<&ServerConfig::places, members...>(name);
}

constexpr Choice workspace_modes[] = {{"shared", PlaceWorkspace::shared},
                                      {"remote", PlaceWorkspace::remote},
                                      {"copy", PlaceWorkspace::copy}};

constexpr Option place_rows[] = {
    of_places<&PlaceConfig::host>("place-host")
        .value("HOST")
        .in(Option::elsewhere)
        .where(Option::ssh)
        .often()
        .help("mode ssh: the machine, as ssh calls it"),
    of_places<&PlaceConfig::command>("place-command")
        .value("WORDS")
        .in(Option::elsewhere)
        .where(Option::command)
        .often()
        .help("mode command: leads to codeexec-mcp --place. A program that gives the streams of "
              "one elsewhere. Split into words as a shell does; no shell reads it"),
    of_places<&PlaceConfig::agent_path>("place-agent-path")
        .value("PATH")
        .usual("codeexec-mcp")
        .in(Option::elsewhere)
        .where(Option::installed)
        .help("of this program there"),
    Option::of<&ServerConfig::agent>("place-agent")
        .value("FILE")
        .usual("this program for containers, none for other places")
        .in(Option::elsewhere)
        .where(Option::agents)
        .help("a static codeexec-mcp of the processor there. It is copied to places that have "
              "none, and mounted into containers"),
    of_places<&PlaceConfig::workspace>("place-workspace")
        .value("MODE")
        .usual("shared, in pods remote")
        .in(Option::elsewhere)
        .where(Option::places)
        .one_of(workspace_modes)
        .help("shared: here and there, with the same files; remote: only there; copy: here, and "
              "copied there for each command"),
    of_places<&PlaceConfig::place, &PlaceOptions::copy_max_files>("place-copy-files")
        .value("N")
        .usual("100000")
        .in(Option::elsewhere)
        .where(Option::places)
        .help("with copy: files and folders, at most. A workspace of more is refused before "
              "anything is sent"),
    of_places<&PlaceConfig::place, &PlaceOptions::copy_max_bytes>("place-copy-size")
        .bytes()
        .value("SIZE")
        .usual("1g")
        .in(Option::elsewhere)
        .where(Option::places)
        .help("with copy: of all files together, at most"),
    of_places<&PlaceConfig::place, &PlaceOptions::copy_exclude>("place-copy-exclude")
        .value("PATTERN...")
        .in(Option::elsewhere)
        .where(Option::places)
        .help("with copy: what is not copied, as lines of a .gitignore: node_modules/ /build "
              "'*.iso'"),
    of_places<&PlaceConfig::place, &PlaceOptions::copy_gitignore>("place-copy-gitignore")
        .in(Option::elsewhere)
        .where(Option::places)
        .help("with copy: what .gitignore files name is not copied"),
    of_places<&PlaceConfig::start_timeout>("place-start-timeout")
        .value("SECONDS")
        .usual("60")
        .in(Option::elsewhere)
        .where(Option::made)
        .help("that a command waits for its job to begin, or its pod to be ready"),
    of_places<&PlaceConfig::pool>("place-pool")
        .value("N")
        .usual("0")
        .in(Option::elsewhere)
        .where(Option::made)
        .help("places kept ready beside the one in use, with modes slurm and kubernetes"),
    of_places<&PlaceConfig::place, &PlaceOptions::keep_alive>("place-keep-alive")
        .value("SECONDS")
        .usual("30")
        .in(Option::elsewhere)
        .where(Option::places)
        .help(
            "without a sign of life for so long each end gives up. Commands there are then killed"),
    of_places<&PlaceConfig::slurm, &SlurmOptions::options>("slurm-option")
        .value("WORD...")
        .in(Option::elsewhere)
        .where(Option::slurm)
        .help("more options of salloc, without dashes: partition=debug mem=4G"),
    of_places<&PlaceConfig::kubernetes, &KubernetesOptions::options>("kubernetes-option")
        .value("WORD...")
        .in(Option::elsewhere)
        .where(Option::kubernetes)
        .help("more options of kubectl, without dashes: context=lab namespace=agents"),
    of_places<&PlaceConfig::kubernetes, &KubernetesOptions::image>("kubernetes-image")
        .value("NAME")
        .in(Option::elsewhere)
        .where(Option::kubernetes)
        .help("of the pod that is made. Or one of the next two"),
    of_places<&PlaceConfig::kubernetes, &KubernetesOptions::pod_template>("kubernetes-pod-template")
        .value("FILE")
        .in(Option::elsewhere)
        .where(Option::kubernetes)
        .help("a Pod of your own, as JSON or YAML"),
    of_places<&PlaceConfig::kubernetes, &KubernetesOptions::warm_pool>("kubernetes-warm-pool")
        .value("NAME")
        .in(Option::elsewhere)
        .where(Option::kubernetes)
        .help("a SandboxWarmPool of agent-sandbox, which has pods ready"),
    of_places<&PlaceConfig::kubernetes, &KubernetesOptions::limits>("kubernetes-limit")
        .value("NAME=QUANTITY...")
        .in(Option::elsewhere)
        .where(Option::kubernetes)
        .help("what the pod gets and may have: memory=1Gi cpu=2"),
    of_places<&PlaceConfig::kubernetes, &KubernetesOptions::claim>("kubernetes-claim")
        .value("NAME")
        .in(Option::elsewhere)
        .where(Option::kubernetes)
        .help("a PersistentVolumeClaim for its /workspace. Without it that is the pod's own"),
    of_places<&PlaceConfig::kubernetes_lifetime>("kubernetes-lifetime")
        .value("SECONDS")
        .usual("86400")
        .in(Option::elsewhere)
        .where(Option::kubernetes)
        .help("after which Kubernetes ends the pod"),
    place_option,
};
static_assert(are_complete(place_rows),
              "a row lacks a column, or has one that its kind has no use for");

}  // namespace

inline namespace inner {

Rows<Option> place_feature_options() { return place_rows; }

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
