"""The keys of MassGen's configuration, as the installed package has them, as JSON.

    python keys.py > keys.json

keys.json is what unit tests feed to examples/from_massgen.py; run.sh compares it with the package.
"""
import contextlib
import importlib.metadata
import json
import sys


def keys():
    with contextlib.redirect_stdout(sys.stderr):
        from massgen.agent_config import AgentConfig, CoordinationConfig
        from massgen.backend._excluded_params import BASE_EXCLUDED_CONFIG_PARAMS
    # Read by key where they are used, and in no list of the package.
    agent = ["backend", "enable_nlip", "id", "memory", "nlip", "subagent_agents", "system_message",
             "voting_sensitivity"]
    top = ["agent", "agents", "enable_nlip", "hooks", "memory", "nlip", "orchestrator",
           "timeout_settings", "ui"]
    permissions = ["audit", "automation_default", "enabled", "max_consecutive_auto",
                   "persist_approvals", "role", "rules", "settings_path"]
    return {
        "version": importlib.metadata.version("massgen"),
        "top": top,
        "agent": agent,
        "backend": sorted({*BASE_EXCLUDED_CONFIG_PARAMS, "model", "command_line_srt_read_only"}),
        "orchestrator": sorted(AgentConfig.valid_orchestrator_keys()),
        "coordination": sorted(CoordinationConfig.valid_coordination_keys()),
        "permissions": permissions,
        "context_paths": ["path", "permission", "protected_paths"],
    }


if __name__ == "__main__":
    print(json.dumps(keys(), indent=1))
