"""Everything that decides how the simulated phone looks: its apps, its colors and the frozen state of its screen.

Places are normalized as in the Agent's API, x and y from 0 to 1000. Layout is in points: one pixel each while the
phone stands upright, more when it lies on its side and fills the width of the video frame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

HOME = "Home"
FRAMES = 12  # steps an animation is drawn in; fewer would jump, more would never repeat
SHORT, LONG = 498, 1080  # points of the sides: a 1179x2556 phone in a video frame 1080 high
FRAME_WIDTH = 1920  # pixels of the video frame, which a phone on its side fills
HUES = (262, 168, 18, 212)  # degrees; the wallpapers to choose from
FIELDS = {"Notes": "notes", "Browser": "address", "Messages": "draft"}  # app -> the part of the view its field fills
GREETING = ((False, "Welcome! This phone is simulated."), (False, "Write something, and I will answer."))
# Names, words and colors, where they decide nothing.
CONTENT: Mapping[str, Any] = json.loads(Path(__file__).with_name("content.json").read_text("utf-8"))
USUALLY_ON = frozenset(("Wi-Fi", "Bluetooth", "Mobile Data"))

Place = tuple[float, float]
Wall = tuple[int, int, int, bool]  # what a wallpaper depends on: width and height in pixels, hue, dark
Box = tuple[float, float, float, float]  # left, top, right, bottom


APPS: Mapping[str, list[str]] = CONTENT["apps"]  # name -> other names it answers to
NAMES = tuple(APPS)
DOCK = 4  # the last four stand in the dock


def app_named(name: str) -> str:
    """Return the app of that name or other name, in any case; "" for none."""
    wanted = name.strip().casefold()
    return next((app for app, others in APPS.items() if wanted in (app.casefold(), *others)), "")


@dataclass(frozen=True)
class Theme:
    """One palette; a page names what it paints, never a color of its own where one of these will do."""

    paper: str  # behind everything
    card: str  # groups, fields, bars
    ink: str
    pale: str  # secondary text
    line: str
    accent: str
    on: str  # a switch that is on
    off: str
    board: str  # behind the keys
    key: str
    dull_key: str  # keys that write nothing
    shadow: float  # strength, 0 to 1


LIGHT, DARK = (Theme(**CONTENT["themes"][name]) for name in ("light", "dark"))


@dataclass(frozen=True)
class View:
    """Everything that decides how the screen looks; equal views give equal pictures.

    While `frame` is below FRAMES the screen is on its way from the view `before`, in the manner of `motion`.
    """

    app: str = HOME
    page: str = ""  # inside the app; "" for its first
    layer: str = ""  # over the app: "shade", "cards" or none
    recent: tuple[str, ...] = ()  # apps for the switcher, newest first
    order: tuple[str, ...] = NAMES  # of the icons, the dock last
    scroll: int = 0  # thousandths of the screen's height
    under: int = 0  # the scroll of the page that this one covers
    on: frozenset[str] = USUALLY_ON  # switches
    brightness: int = 70  # percent
    notes: str = ""
    draft: str = ""  # of a message
    thread: tuple[tuple[bool, str], ...] = GREETING  # of messages, each as (sent by this phone, text)
    address: str = ""  # in the browser's bar
    url: str = ""  # of the page that is shown
    figures: str = ""  # in the calculator
    focused: bool = False  # the app's text field
    marked: bool = False  # all of its text is selected
    keys: str = "abc"  # what the keyboard shows: "abc", "ABC" or "123"
    toast: str = ""  # a word that goes by itself
    pressed: Place | None = None  # where a finger lies
    lifted: str = ""  # the icon that hangs on it
    minute: int = 0  # since 1970, as the phone shows it
    zone: int = 480  # minutes that it is ahead of UTC
    battery: int = 80  # percent
    hue: int = HUES[-1]
    before: View | None = None
    motion: str = ""
    frame: int = FRAMES

    @property
    def dark(self) -> bool:
        """True in dark mode."""
        return "Dark Mode" in self.on

    @property
    def theme(self) -> Theme:
        """The palette in use."""
        return DARK if self.dark else LIGHT

    @property
    def landscape(self) -> bool:
        """True while the phone lies on its side."""
        return "Landscape" in self.on

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in points."""
        return (LONG, SHORT) if self.landscape else (SHORT, LONG)

    @property
    def scale(self) -> float:
        """Pixels of one point."""
        return FRAME_WIDTH / LONG if self.landscape else 1.0

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the picture; the height of a lying phone is made even, as video wants it."""
        return (FRAME_WIDTH, round(SHORT * self.scale / 2) * 2) if self.landscape else (SHORT, LONG)

    @property
    def wall(self) -> Wall:
        """The wallpaper in use."""
        return *self.pixels, self.hue, self.dark

    @property
    def moment(self) -> datetime:
        """Date and time on the phone, to the minute."""
        return datetime(1970, 1, 1) + timedelta(minutes=self.minute)

    @property
    def clock(self) -> str:
        """The time as the status bar shows it."""
        return f"{self.moment:%H:%M}"

    @property
    def text(self) -> str:
        """The content of the current app's text field; empty where there is none."""
        return str(getattr(self, FIELDS[self.app])) if self.app in FIELDS else ""

    def still(self) -> View:
        """Return the view once its motion is over."""
        return replace(self, before=None, motion="", frame=FRAMES)

    def point(self, place: Place) -> Place:
        """Return the layout point of a normalized place."""
        width, height = self.size
        return place[0] * (width - 1) / 1000, place[1] * (height - 1) / 1000


Move = Callable[[View], View]  # what a touch, a key or a command makes of a view
Slide = Callable[[View, float], View]  # the same for a slider, with the share of its length
