"""The page that shows the phone in a browser, and the switches behind its buttons."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from mcpboard.simulator.phone import display, frames
from mcpboard.simulator.phone.phone import Phone
from mcpboard.simulator.phone.view import View

PAGE = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Simulated phone</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>
body{margin:0;height:100vh;display:grid;grid-template-rows:1fr auto;place-items:center;overflow:hidden;
background:radial-gradient(circle at 50% 30%,#3a4358,#12141a);font:15px system-ui,sans-serif}
#phone{max-height:90vh;max-width:94vw;border-radius:46px;border:9px solid #07080a;touch-action:none;
box-shadow:0 0 0 2px #565c6b,0 26px 90px #000b;-webkit-user-drag:none;user-select:none;cursor:pointer}
nav{display:flex;gap:8px;padding:0 0 14px}
button{font:inherit;color:#dfe4ee;background:#fff2;border:0;border-radius:99px;padding:7px 15px;cursor:pointer}
button:hover{background:#fff4}
</style></head>
<body><img src="/screen.jpg" id="phone" alt="the screen of the simulated phone" draggable="false">
<nav><button data-do="back">Back</button><button data-do="home">Home</button><button data-do="app_switch">Apps</button>
<button data-do="notification_center">Shade</button><button data-turn="landscape">Turn</button>
<button data-turn="dark">Dark</button></nav>
<script>
const phone=document.getElementById("phone"),post=(path,body)=>fetch(path,{method:"POST",body:JSON.stringify(body)});
const tool=(name,input)=>post("/api/tools/"+name,{input});
const again=()=>setTimeout(()=>phone.src="/screen.jpg?"+Date.now(),document.hidden?1000:80);
phone.onload=again;phone.onerror=()=>setTimeout(again,1000);if(phone.complete)again();
const place=e=>{const box=phone.getBoundingClientRect(),rim=phone.clientLeft,
part=(at,from,long)=>Math.round(1000*Math.min(1,Math.max(0,(at-from-rim)/(long-2*rim))));
return{x:part(e.clientX,box.left,box.width),y:part(e.clientY,box.top,box.height)}};
let down,hold,held;
phone.onpointerdown=e=>{phone.setPointerCapture(e.pointerId);down=place(e);held=false;const point=down;
hold=setTimeout(()=>{held=true;tool("touch_gesture",{type:"drag_start",point})},600)};
phone.onpointermove=e=>{if(down){const p=place(e);if(Math.abs(p.x-down.x)+Math.abs(p.y-down.y)>15)clearTimeout(hold)}};
phone.onpointerup=e=>{if(!down)return;clearTimeout(hold);const end=place(e),start=down;down=null;
if(held)tool("touch_gesture",{type:"drag_release",point:end});
else if(Math.abs(end.x-start.x)+Math.abs(end.y-start.y)<16)tool("touch_gesture",{type:"tap",point:start});
else tool("touch_gesture",{type:"swipe",start,end})};
const keys={Enter:"enter",Backspace:"backspace",Escape:"escape"};
onkeydown=e=>{if(e.ctrlKey||e.metaKey||e.altKey)return;
if(keys[e.key])tool("keyboard_tap",{keys:[keys[e.key]]});
else if(e.key.length===1&&e.key<="~"){e.preventDefault();tool("keyboard_text",{text:e.key})}};
document.querySelector("nav").onclick=async e=>{const{do:action,turn}=e.target.dataset;e.target.blur();
if(action)tool("quick_action",{action});
if(turn)post("/simulator/phone",{[turn]:!(await(await fetch("/simulator/phone")).json())[turn]})};
</script>
<noscript><meta http-equiv="refresh" content="1"></noscript>
</body></html>
"""
TURNS: Mapping[str, Callable[[Phone, bool], None]] = {"landscape": Phone.rotate, "dark": Phone.darken}


def picture(phone: Phone) -> bytes:
    """Return the screen as JPEG, with a ring that fades where it was touched last."""
    view, touch = phone.view(), phone.touched()
    if touch is None:
        return _plain(view)
    place, share = touch  # the ring gets wider and paler as its time passes
    image = frames.rippled(display.picture(view), *place, radius=14 + 26 * share, strength=0.8 * (1 - share))
    return frames.jpeg(image)


@functools.lru_cache(maxsize=2)
def _plain(view: View) -> bytes:
    return frames.jpeg(display.picture(view))


def state(phone: Phone) -> dict[str, Any]:
    """Return the state of the phone as JSON: its app, the text in its field, how it lies, and the tree."""
    return {
        "app": phone.app, "text": phone.text, "landscape": phone.landscape, "dark": phone.dark,
        "tree": phone.tree().as_json(),
    }  # fmt: skip


def turn(phone: Phone, post: object) -> None:
    """Set the switches that are named; ValueError for a name or a value that is none."""
    if not isinstance(post, dict) or not post or not all(isinstance(value, bool) for value in post.values()):
        raise ValueError('expected an object of booleans such as {"landscape": true}')
    if unknown := sorted(set(post) - set(TURNS)):
        raise ValueError(f"no switch is called {unknown[0]!r}; there are: {', '.join(TURNS)}")
    for name, on in post.items():
        TURNS[name](phone, on)
