"""A real Weaviate of one node, on ports and in a directory of its own."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / ".tools" / "weaviate-server"
START_SECONDS = 90.0
_SETTINGS = {
    "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
    "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
    "CLUSTER_BIND_ADDR": "127.0.0.1",
    "CLUSTER_HOSTNAME": "one",
    "CLUSTER_IN_LOCALHOST": "true",
    "DEFAULT_VECTORIZER_MODULE": "none",
    "DISABLE_TELEMETRY": "true",
    "GOMAXPROCS": "2",
    "GOMEMLIMIT": "1GiB",
    "GO_PROFILING_DISABLE": "true",
    "LOG_LEVEL": "warning",
    "PROMETHEUS_MONITORING_ENABLED": "false",
    "RAFT_BOOTSTRAP_EXPECT": "1",
}


class WeaviateServer:
    """It keeps its ports and what it stores when it is started again."""

    def __init__(self, home: Path, free_port: Callable[[], int], settings: Mapping[str, str] | None = None) -> None:
        if not PROGRAM.exists():
            pytest.skip("there is no Weaviate here: run `make weaviate`, which needs Go")
        self._home = home
        self._port = free_port()
        raft, gossip = _two_free_ports(free_port), _two_free_ports(free_port)
        self._settings = {
            **_SETTINGS,
            "GRPC_PORT": str(free_port()),
            "RAFT_PORT": str(raft),
            "RAFT_INTERNAL_RPC_PORT": str(raft + 1),  # the only one where a node finds itself on this machine
            "RAFT_JOIN": f"one:{raft}",
            "CLUSTER_GOSSIP_BIND_PORT": str(gossip),
            "CLUSTER_DATA_BIND_PORT": str(gossip + 1),
            "PERSISTENCE_DATA_PATH": str(home / "weaviate"),
            **(settings or {}),
        }
        self.url = f"http://127.0.0.1:{self._port}"
        self.grpc_port = int(self._settings["GRPC_PORT"])
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, where it isn't running, and wait until it is ready."""
        if self._child is None:
            self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            assert self._child is not None and self._child.poll() is None, f"Weaviate ended:\n{self.log()[-4000:]}"
            assert time.monotonic() < deadline, f"Weaviate isn't ready after {START_SECONDS} s:\n{self.log()[-4000:]}"
            time.sleep(0.05)

    def launch(self) -> None:
        """Start it without waiting until it is ready."""
        place = ["--host", "127.0.0.1", "--port", str(self._port), "--scheme", "http"]
        with (self._home / "weaviate.log").open("ab") as log:
            self._child = subprocess.Popen(
                [PROGRAM, *place], cwd=self._home, env=self._settings, stdout=log, stderr=subprocess.STDOUT
            )

    def terminate(self) -> None:
        """As an operator stops it: what it has taken is on its disk. Doesn't wait for its end."""
        if self._child is not None:
            self._child.terminate()

    def kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()

    def log(self) -> str:
        return (self._home / "weaviate.log").read_text(errors="replace")

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/v1/.well-known/ready", timeout=1) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _two_free_ports(free_port: Callable[[], int]) -> int:
    """The first of two that follow each other."""
    port, following = free_port(), free_port()
    while following != port + 1:
        port, following = following, free_port()
    return port
