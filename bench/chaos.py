"""Kills a bot over and over under a mixed load: is anything lost, is anything done twice?

    python -m bench.chaos --kills 200 --seed 1

Each kill is a SIGKILL at a random instant, one in five while the bot starts. Ten of them run in the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
from pathlib import Path

from tests.crashes.chaos import chaos
from tests.crashes.crashing import CrashingBot


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=3.0, help="seconds from ready to kill, at most")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as home:
        bot = CrashingBot(Path(home), _free_port(), {})
        try:
            result = asyncio.run(chaos(bot, asked.kills, asked.seed, asked.longest))
        finally:
            bot.kill()
    print("kills  messages  sent again  given up  seconds  faults")
    print(
        f"{result.kills:5}  {result.messages:8}  {result.repeated:10}  {result.given_up:8}  {result.seconds:7.0f}"
        f"  {len(result.faults):6}"
    )
    print("\n".join(result.faults))
    return 1 if result.faults else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
