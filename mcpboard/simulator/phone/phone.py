"""The pretend phone: one view that touches, keys and commands change, safe to use from several threads.

Places are normalised as in the Agent's API: x and y from 0 to 1000, whatever the pixels.
Time comes from the clock that is handed in, so that a seed and a clock decide everything.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace

from mcpboard.simulator.phone import display, moves, strokes
from mcpboard.simulator.phone.elements import Node
from mcpboard.simulator.phone.view import APPS, FRAMES, HOME, HUES, App, Move, Place, View, app_named

__all__ = ["APPS", "HOME", "App", "Phone", "View", "app_named"]

ANIMATION_S = 0.3  # seconds that a screen is in motion, as on a phone
TOAST_S = 1.5  # seconds that a short message stays
LIFT_S = 0.4  # seconds that a finger rests before an icon hangs on it
RING_S = 0.6  # seconds that a touch can be seen in the live picture
BOARD_OFFSET_S = 8 * 3600  # of the board's zone against UTC


class Phone:
    """A phone in memory.

    `clock` gives seconds since 1970; `seed` chooses wallpaper and battery. `bridge_connected`, `platform`
    and `device_type` are plain attributes that a test may set.
    """

    def __init__(self, clock: Callable[[], float], seed: int = 0) -> None:
        chance = random.Random(seed)
        self.bridge_connected = True
        self.platform = "ios"
        self.device_type = "iOS"
        self._clock = clock
        self._lock = threading.RLock()
        self._animated = (clock() - ANIMATION_S, ANIMATION_S)  # start and length in seconds
        self._state = View(battery=chance.randint(35, 98), hue=chance.choice(HUES))
        self._clipboard = ""
        self._told = clock() - TOAST_S  # when the last short message came
        self._began = ((0.0, 0.0), 0.0)  # where and when the finger that is down was laid
        self._touched: tuple[Place, float] | None = None  # where and when the last tap was

    @property
    def app(self) -> str:
        """The name of the app on the screen, `Home` for none."""
        return self._state.app

    @property
    def text(self) -> str:
        """What the text field of the current app holds; empty where there is none."""
        return self._state.text

    @property
    def clipboard(self) -> str:
        """What copy and cut left, and paste will write; may be set from outside."""
        return self._clipboard

    @clipboard.setter
    def clipboard(self, text: str) -> None:
        self._clipboard = text

    @property
    def pressed(self) -> Place | None:
        """Where a finger still lies between `drag_start` and `drag_release`."""
        return self._state.pressed

    @property
    def animating(self) -> bool:
        """Whether the screen is in motion."""
        return self._frame() < FRAMES

    @property
    def landscape(self) -> bool:
        """Whether the phone lies on its side."""
        return self._state.landscape

    @property
    def dark(self) -> bool:
        """Whether its dark colours are on."""
        return self._state.dark

    def view(self) -> View:
        """A frozen picture of the state at this moment."""
        with self._lock:
            now, frame, before = self._clock(), self._frame(), self._state.before
            minute = int((now + BOARD_OFFSET_S) // 60)
            toast = self._state.toast if now < self._told + TOAST_S else ""
            view = replace(self._state, minute=minute, toast=toast)
            if frame >= FRAMES or before is None:
                return view.still()
            return replace(view, frame=frame, before=replace(before, minute=minute, toast=""))

    def tree(self) -> Node:
        """The elements on the screen as a tree, boxes in pixels of the picture.

        While the screen moves, the tree is the one it is moving to.
        """
        return display.tree(self.view().still())

    def touched(self) -> tuple[Place, float] | None:
        """The last tap and the share of its time that has passed, None when it is over."""
        with self._lock:
            if self._touched is None:
                return None
            place, when = self._touched
            share = (self._clock() - when) / RING_S
            return (place, share) if share < 1 else None

    # --- what is done to it ------------------------------------------------------------------------------------

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

    def browse(self, url: str) -> None:
        """Open an address in the browser."""
        self.do(lambda view: moves.browsed(view, url))

    def pull_shade(self) -> None:
        """Bring the notification shade down."""
        self.do(moves.shade)

    def rotate(self, landscape: bool) -> None:
        """Lay the phone on its side or put it upright."""
        self._turn("Landscape", landscape)

    def darken(self, dark: bool) -> None:
        """Choose its dark colours or its light ones."""
        self._turn("Dark Mode", dark)

    def _turn(self, switch: str, on: bool) -> None:
        self.do(lambda view: view if (switch in view.on) is on else moves.toggled(view, switch))

    # --- fingers -----------------------------------------------------------------------------------------------

    def tap(self, x: float, y: float) -> None:
        """Touch and let go: opens an icon, presses a key, turns a switch, focuses a field."""
        with self._lock:
            self._touched = ((x, y), self._clock())
            self.do(lambda view: strokes.tapped(view, (x, y)))

    def swipe(self, start: Place, end: Place) -> None:
        """A stroke: up from the lower edge goes home, down from the upper edge pulls the shade, else it scrolls."""
        with self._lock:
            self._touched = (end, self._clock())
            self.do(lambda view: strokes.stroked(view, start, end))

    def press(self, x: float, y: float, *, held: bool = False) -> None:
        """Lay a finger down; it stays until `release`. One that was `held` lifts the icon under it."""
        with self._lock:
            self._began = ((x, y), self._clock())
            app = strokes.lifted(self._state, (x, y)) if held else ""
            self.do(lambda view: replace(view, pressed=(x, y), lifted=app))

    def move(self, x: float, y: float) -> None:
        """Move the finger that lies on the screen, if one does; a slider under it follows."""
        with self._lock:
            if self._state.pressed is not None:
                place, when = self._began
                rested = self._clock() - when >= LIFT_S and self._state.pressed == place
                app = self._state.lifted or (strokes.lifted(self._state, place) if rested else "")
                self.do(lambda view: strokes.slid(replace(view, pressed=(x, y), lifted=app), place, (x, y)))

    def release(self, x: float, y: float) -> None:
        """Lift the finger: drops what hung on it; a stroke from where it was laid, a tap when it never moved."""
        with self._lock:
            (place, _), app = self._began, self._state.lifted
            self.do(lambda view: replace(view, pressed=None, lifted=""))
            if place == (x, y):
                self.tap(x, y)
            elif app:
                self.do(lambda view: strokes.dropped(view, app, (x, y)))
            else:
                self.swipe(place, (x, y))

    # --- text --------------------------------------------------------------------------------------------------

    def write(self, text: str) -> bool:
        """Add text to the focused field; False when none has the focus."""
        with self._lock:
            self.do(lambda view: moves.typed(view, text))
            return self._state.focused

    def copy(self) -> None:
        """The text of the field goes to the clipboard, whole."""
        with self._lock:
            if self._state.text:
                self._clipboard = self._state.text
                self._tell("Copied")

    def cut(self) -> None:
        """The text of the focused field moves to the clipboard."""
        with self._lock:
            if self._state.focused and self._state.text:
                self._clipboard = self._state.text
                self.do(moves.emptied)
                self._tell("Cut")

    def paste(self) -> None:
        """The clipboard goes into the focused field."""
        self.write(self._clipboard)

    def _tell(self, word: str) -> None:
        self._told = self._clock()
        self.do(lambda view: replace(view, toast=word))

    def _frame(self) -> int:
        began, length = self._animated
        return max(0, min(FRAMES, int((self._clock() - began) / length * FRAMES + 1e-6)))
