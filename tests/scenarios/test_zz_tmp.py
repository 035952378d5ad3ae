from __future__ import annotations
import time, asyncio, urllib.request
from tests.scenarios.stage import Channel, Player, Post, Stage
from tests.scenarios.web_stage import WebPlayer
async def test_x(ada: Player, stage: Stage, team: Channel, bot) -> None:
    def readers(): return [l for l in urllib.request.urlopen(bot.url+"/metrics").read().decode().splitlines() if "reader" in l and not l.startswith("#")]
    out = [str(readers())]
    for n in range(20):
        async with WebPlayer(bot.url, f"x{n}"): pass
    out.append(f"20 closed: {readers()}")
    for n in range(6):
        await asyncio.sleep(5); p = await stage.person(f"q{n}"); await p.ask(ada.direct if False else p.direct, "thanks")
        out.append(f"after {5*(n+1)} s with somebody talking: {readers()}")
    await asyncio.sleep(20); out.append(f"20 s of silence: {readers()}")
    await asyncio.sleep(20); out.append(f"40 s of silence: {readers()}")
    raise AssertionError("\n".join(out))
