"""What the pretend phone remembers, and what a touch, a key or a command does to it.

Places are normalised as in the Agent's API: x and y from 0 to 1000, whatever the pixels.
Time comes from the clock that is handed in, so that a seed and a clock decide everything.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

HOME = "Home"
ANIMATION_S = 0.3  # seconds an opening app is in motion, as long as a phone's own
FRAMES = 12  # steps an animation is drawn in; fewer would jump, more would never repeat


@dataclass(frozen=True)
class App:
    """One icon: its name, its colours, and the other names it answers to."""

    name: str
    colour: str
    glyph: str
    aliases: tuple[str, ...] = ()


APPS = (
    App("Settings", "#8e9196", "gear", ("preferences", "system settings")),
    App("Notes", "#f5c542", "lines", ("notepad", "memo")),
    App("Browser", "#2f7df6", "globe", ("safari", "chrome", "web")),
    App("Messages", "#34c759", "bubble", ("sms",)),
    App("Photos", "#ff6f91", "flower"),
    App("Maps", "#4fb06d", "pin"),
    App("Weather", "#38a3f1", "sun"),
    App("Clock", "#1c1c1e", "clock"),
    App("Calendar", "#e5534b", "calendar"),
    App("Music", "#fb3b63", "note", ("player",)),
    App("Camera", "#5b5f67", "lens"),
    App("Mail", "#3c8df5", "letter", ("email",)),
)
DOCK = 4  # the last four stand in the dock
SETTINGS = (
    "Airplane Mode", "Wi-Fi", "Bluetooth", "Mobile Data", "Personal Hotspot", "Notifications", "Sounds", "Focus",
    "Screen Time", "General", "Control Centre", "Display & Brightness", "Home Screen", "Accessibility", "Wallpaper",
    "Search", "Security", "Battery", "Privacy", "Storage", "Accounts", "Passwords", "Language & Region", "About",
)  # fmt: skip
ROW_HEIGHT = 60  # normalised height of one line of the Settings list
LIST_TOP = 150  # where the Settings list begins

# Text fields as (left, top, right, bottom), normalised.
FIELDS = {"Notes": (30, 90, 970, 600), "Browser": (30, 70, 970, 130)}


def icon_place(index: int) -> tuple[int, int]:
    """The centre of an icon: four columns of icons from the top, the dock below."""
    in_dock = index - (len(APPS) - DOCK)
    column, row = (in_dock, None) if in_dock >= 0 else (index % 4, index // 4)
    return 152 + 232 * column, 922 if row is None else 330 + 135 * row


def app_at(x: float, y: float) -> App | None:
    """The app whose icon covers the place, None between the icons."""
    for index, app in enumerate(APPS):
        centre_x, centre_y = icon_place(index)
        if abs(x - centre_x) <= 95 and abs(y - centre_y) <= 50:
            return app
    return None


def app_named(name: str) -> App | None:
    """The app of that name or alias, in any case."""
    wanted = name.strip().casefold()
    return next((app for app in APPS if wanted == app.name.casefold() or wanted in app.aliases), None)


@dataclass(frozen=True)
class View:
    """Everything that decides how the screen looks; equal views give equal pictures."""

    app: str = HOME
    previous: str = HOME
    frame: int = FRAMES  # of FRAMES; smaller while the app is still opening
    scroll: int = 0
    selected: int = -1
    notes: str = ""
    url: str = ""
    focused: bool = False
    shade: bool = False
    pressed: tuple[float, float] | None = None
    minute: int = 0  # of the day, board time
    battery: int = 80
    hue: int = 210  # of the wallpaper, degrees


class Phone:
    """A phone in memory, safe to use from several threads.

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
        self._state = View(battery=chance.randint(35, 98), hue=chance.choice((205, 265, 160, 20)))
        self._clipboard = ""
        self._began = (0.0, 0.0)  # where the finger that is down was laid

    @property
    def app(self) -> str:
        """The name of the app on the screen, `Home` for none."""
        return self._state.app

    @property
    def text(self) -> str:
        """What the text field of the current app holds; empty where there is none."""
        return {"Notes": self._state.notes, "Browser": self._state.url}.get(self._state.app, "")

    @property
    def clipboard(self) -> str:
        return self._clipboard

    @clipboard.setter
    def clipboard(self, text: str) -> None:
        self._clipboard = text

    @property
    def pressed(self) -> tuple[float, float] | None:
        """Where a finger still lies between `drag_start` and `drag_release`."""
        return self._state.pressed

    @property
    def animating(self) -> bool:
        return self._frame() < FRAMES

    def view(self) -> View:
        """A frozen picture of the state at this moment."""
        with self._lock:
            minute = int(self._clock() // 60) % 1440
            return replace(self._state, frame=self._frame(), minute=minute)

    def animate(self, seconds: float = ANIMATION_S) -> None:
        """Set the screen in motion for that long; until then it is not stable."""
        with self._lock:
            self._animated = (self._clock(), max(seconds, 1e-3))

    def show(self, app: str) -> None:
        """Bring an app to the front, with its opening animation."""
        with self._lock:
            self._change(previous=self._state.app, app=app, focused=False, shade=False)
            self.animate()

    def tap(self, x: float, y: float) -> None:
        """Touch and let go: opens an icon, selects a line, focuses a field."""
        with self._lock:
            app = app_at(x, y) if self._state.app == HOME else None
            if self._state.shade:
                self._change(shade=False)
            elif app is not None:
                self.show(app.name)
            elif self._state.app == "Settings":
                self._select(y)
            else:
                self._change(focused=self.field_at(x, y))

    def swipe(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A stroke: up from the lower edge goes home, down from the upper edge pulls the shade, else it scrolls."""
        with self._lock:
            climb = start[1] - end[1]
            if start[1] >= 950 and climb > 0:
                self.show(HOME)
            elif start[1] <= 40 and climb < 0:
                self._change(shade=True)
            elif self._state.shade:
                self._change(shade=climb <= 0)
            elif self._state.app == "Settings":
                self._scroll(climb)

    def press(self, x: float, y: float) -> None:
        """Lay a finger down; it stays until `release`."""
        with self._lock:
            self._began = (x, y)
            self._change(pressed=(x, y))

    def move(self, x: float, y: float) -> None:
        """Move the finger that lies on the screen, if one does."""
        with self._lock:
            if self._state.pressed is not None:
                self._change(pressed=(x, y))

    def release(self, x: float, y: float) -> None:
        """Lift the finger: a stroke from where it was laid down, a tap when it never moved."""
        with self._lock:
            self._change(pressed=None)
            if self._began == (x, y):
                self.tap(x, y)
            else:
                self.swipe(self._began, (x, y))

    def field_at(self, x: float, y: float) -> bool:
        """Whether the current app has a text field at that place."""
        left, top, right, bottom = FIELDS.get(self._state.app, (1, 1, 0, 0))
        return left <= x <= right and top <= y <= bottom

    def write(self, text: str) -> bool:
        """Add text to the focused field; False when none has the focus."""
        with self._lock:
            if not self._state.focused:
                return False
            self._fill(self.text + text)
            return True

    def erase(self, count: int | None = 1) -> None:
        """Take characters from the end of the focused field, all of them for None."""
        with self._lock:
            if self._state.focused:
                self._fill(self.text[:-count] if count else "")

    def dismiss(self) -> None:
        """Leave the text field and push the shade up."""
        with self._lock:
            self._change(focused=False, shade=False)

    def switch_back(self) -> None:
        """Bring the app that was shown before to the front."""
        self.show(self._state.previous)

    def pull_shade(self) -> None:
        with self._lock:
            self._change(shade=True)

    def browse(self, url: str) -> None:
        with self._lock:
            self._change(url=url)
            self.show("Browser")

    def _frame(self) -> int:
        began, length = self._animated
        return max(0, min(FRAMES, int((self._clock() - began) / length * FRAMES + 1e-6)))

    def _change(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]

    def _fill(self, text: str) -> None:
        self._change(**{"notes" if self._state.app == "Notes" else "url": text})

    def _select(self, y: float) -> None:
        line = int((y - LIST_TOP + self._state.scroll) // ROW_HEIGHT)
        self._change(selected=line if y >= LIST_TOP and 0 <= line < len(SETTINGS) else -1)

    def _scroll(self, climb: float) -> None:
        lowest = len(SETTINGS) * ROW_HEIGHT - (960 - LIST_TOP)
        self._change(scroll=max(0, min(lowest, round(self._state.scroll + climb))))
