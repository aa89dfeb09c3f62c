"""The simulated phone: one view that touches, keys and commands change, safe to use from several threads.

Places are normalized as in the Agent's API: x and y from 0 to 1000, whatever the pixels.
Time comes from the clock that is handed in, so that a seed and a clock decide everything.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from mcpboard.simulator.phone import display, moves
from mcpboard.simulator.phone.apps import extent, home_screen
from mcpboard.simulator.phone.elements import Node
from mcpboard.simulator.phone.view import FRAMES, HOME, HUES, Move, Place, View

ANIMATION_S = 0.3  # seconds that a screen is in motion, as on a phone
TOAST_S = 1.5  # seconds that a short message stays
LIFT_S = 0.4  # seconds that a finger rests before an icon hangs on it
RING_S = 0.6  # seconds that a touch can be seen in the live picture
LOWER_EDGE, UPPER_EDGE, LEFT_EDGE = 950, 40, 30  # thousandths; strokes from there belong to the system
THROW = 100  # thousandths that a card must climb to be thrown away


class Phone:
    """A phone in memory.

    `clock` gives seconds since 1970, of which the phone shows the time `zone_s` seconds east of Greenwich, this
    machine's own where it is None; `seed` chooses wallpaper and battery. `bridge_connected`, `platform`,
    `device_type` and `clipboard` (what copy and cut left, and paste will write) are plain attributes that a test
    may set.
    """

    def __init__(self, clock: Callable[[], float], seed: int = 0, zone_s: int | None = None) -> None:
        chance = random.Random(seed)
        self.bridge_connected = True
        self.platform = "ios"
        self.device_type = "iOS"
        self._clock = clock
        self._zone_s = zone_s
        self._lock = threading.RLock()
        self._animated = (clock() - ANIMATION_S, ANIMATION_S)  # start and length in seconds
        self._state = View(battery=chance.randint(35, 98), hue=chance.choice(HUES))
        self.clipboard = ""
        self._toasted = clock() - TOAST_S  # when the last short message came
        self._began = ((0.0, 0.0), 0.0)  # where and when the finger that is down was laid
        self._touched: tuple[Place, float] | None = None  # where and when the last tap was

    @property
    def app(self) -> str:
        """The name of the app on the screen, `Home` for none."""
        return self._state.app

    @property
    def text(self) -> str:
        """The content of the current app's text field; empty where there is none."""
        return self._state.text

    def view(self) -> View:
        """Return the frozen state of this moment."""
        with self._lock:
            now, before, (began, length) = self._clock(), self._state.before, self._animated
            frame = max(0, min(FRAMES, int((now - began) / length * FRAMES + 1e-6)))
            zone_s = time.localtime(now).tm_gmtoff if self._zone_s is None else self._zone_s
            minute = int((now + zone_s) // 60)
            toast = self._state.toast if now < self._toasted + TOAST_S else ""
            view = replace(self._state, minute=minute, zone=zone_s // 60, toast=toast)
            if frame >= FRAMES or before is None:
                return view.still()
            return replace(view, frame=frame, before=replace(before, minute=minute, toast=""))

    def tree(self) -> Node:
        """Return the elements on the screen as a tree, boxes in pixels of the picture.

        While the screen moves, the tree is the one it is moving to.
        """
        return display.tree(self.view().still())

    def touched(self) -> tuple[Place, float] | None:
        """Return the last tap and the share of its time that has passed, None when it is over."""
        with self._lock:
            if self._touched is None:
                return None
            place, when = self._touched
            share = (self._clock() - when) / RING_S
            return (place, share) if share < 1 else None

    # --- commands ----------------------------------------------------------------------------------------------

    def do(self, move: Move) -> None:
        """Carry out a move, with its animation when it has one."""
        with self._lock:
            before, self._state = self._state.before, move(self._state)
            if self._state.before is not before:
                self.animate()

    def animate(self, seconds: float = ANIMATION_S) -> None:
        """Set the screen in motion for that long; until then it is not stable."""
        with self._lock:
            self._animated = (self._clock(), max(seconds, 1e-3))

    def show(self, app: str) -> None:
        """Bring an app to the front, with its opening animation."""
        self.do(lambda view: moves.shown(view, app))

    def turn(self, switch: str, on: bool) -> None:
        """Turn a switch on or off, such as `Landscape` (the phone on its side) or `Dark Mode`."""
        self.do(lambda view: view if (switch in view.on) is on else moves.toggled(view, switch))

    # --- fingers -----------------------------------------------------------------------------------------------

    def tap(self, x: float, y: float) -> None:
        """Touch and let go: opens an icon, presses a key, turns a switch, focuses a field."""
        with self._lock:
            self._touched = ((x, y), self._clock())
            element = display.element_at(self._state, (x, y))
            move = element.touched(self._state.point((x, y))[0]) if element else None
            if move:
                self.do(move)

    def swipe(self, start: Place, end: Place) -> None:
        """Draw a finger across: from the lower edge up goes home, from the upper edge down pulls the shade."""
        with self._lock:
            self._touched = (end, self._clock())
            self.do(lambda view: _stroked(view, start, end))

    def press(self, x: float, y: float, *, held: bool = False) -> None:
        """Lay a finger down; it stays until `release`. One that was `held` lifts the icon under it."""
        with self._lock:
            self._began = ((x, y), self._clock())
            app = home_screen.icon_under(self._state, (x, y)) if held else ""
            self.do(lambda view: replace(view, pressed=(x, y), lifted=app))

    def move(self, x: float, y: float) -> None:
        """Move the finger that lies on the screen, if one does; a slider under it follows."""
        with self._lock:
            if self._state.pressed is not None:
                place, when = self._began
                rested = self._clock() - when >= LIFT_S and self._state.pressed == place
                app = self._state.lifted or (home_screen.icon_under(self._state, place) if rested else "")
                self.do(lambda view: _slid(replace(view, pressed=(x, y), lifted=app), place, (x, y)))

    def release(self, x: float, y: float) -> None:
        """Lift the finger: drops what hung on it; a stroke from where it was laid, a tap when it never moved."""
        with self._lock:
            (place, _), app = self._began, self._state.lifted
            self.do(lambda view: replace(view, pressed=None, lifted=""))
            if place == (x, y):
                self.tap(x, y)
            elif app:
                under = home_screen.slot_at(self._state, (x, y))
                slot = self._state.order.index(app) if under is None else under  # beside all, it goes back to its own
                self.do(lambda view: moves.reordered(view, app, slot))
            else:
                self.swipe(place, (x, y))

    # --- text --------------------------------------------------------------------------------------------------

    def write(self, text: str) -> bool:
        """Add text to the focused field; False when none has the focus."""
        with self._lock:
            self.do(lambda view: moves.typed(view, text))
            return self._state.focused

    def copy(self) -> None:
        """Copy the text of the field to the clipboard, whole."""
        with self._lock:
            if self._state.text:
                self.clipboard, self._toasted = self._state.text, self._clock()
                self.do(lambda view: replace(view, toast="Copied"))

    def cut(self) -> None:
        """Move the text of the focused field to the clipboard."""
        with self._lock:
            if self._state.focused and self._state.text:
                self.copy()
                self.do(lambda view: replace(moves.filled(view, ""), toast="Cut"))


def _stroked(view: View, start: Place, end: Place) -> View:
    """Draw a finger across: the system's edges first, then what lies under it, then the page scrolls."""
    climb, element = start[1] - end[1], display.element_at(view, start)
    if start[1] >= LOWER_EDGE and climb > 0:
        return moves.home(view)
    if start[1] <= UPPER_EDGE and climb < 0:
        return moves.shade(view)
    if abs(start[0] - end[0]) > abs(climb):  # sideways a slider follows, and the left edge leads back
        if element is not None and element.slide is not None:
            return _slid(view, start, end)
        back = start[0] <= LEFT_EDGE and end[0] > start[0] and (view.app != HOME or view.layer)
        return moves.back(view) if back else view
    if view.layer == "shade":
        return moves.dismissed(view) if climb > 0 else view
    if view.layer:
        if element is not None and element.role == "card" and climb > THROW:
            return moves.forgotten(view, element.text)
        return view
    return moves.scrolled(view, climb, extent(view))


def _slid(view: View, start: Place, end: Place) -> View:
    """Set the slider under `start`, if there is one, to where the finger is now."""
    element = display.element_at(view, start)
    move = element.touched(view.point(end)[0]) if element is not None and element.slide is not None else None
    return move(view) if move else view
