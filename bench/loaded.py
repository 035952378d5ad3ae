"""The bot, which tells what third-party modules it has loaded: `python -m bench.loaded FILE ARGUMENT …`.

Writes their names into the file, in the order in which they were loaded, at SIGUSR1 and at its end.
"""

from __future__ import annotations

import atexit
import runpy
import signal
import sys
from pathlib import Path


def third_party() -> list[str]:
    loaded = list(sys.modules.items())
    return [name for name, module in loaded if "site-packages" in (getattr(module, "__file__", None) or "")]


def main() -> None:
    target = Path(sys.argv.pop(1))
    brought_by_python = set(third_party())

    def write(*_: object) -> None:
        partial = target.with_suffix(".part")
        partial.write_text("\n".join(name for name in third_party() if name not in brought_by_python))
        partial.replace(target)

    atexit.register(write)
    signal.signal(signal.SIGUSR1, write)
    runpy.run_module("bot", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
