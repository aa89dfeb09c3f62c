"""Make the pictures of the README and the site (`make pages`); the phone is the simulated one, driven over its API."""

from __future__ import annotations

import io
import json
import urllib.request
from pathlib import Path

from PIL import Image

from mcpboard.simulator import Simulator

FOLDER = Path(__file__).parent / "images"
NOON = 1_780_315_200.0  # seconds since 1970: a fixed moment, so that the clocks in the pictures never change
HEIGHT = 640  # px of each phone in the picture
GAP = 24  # px between two phones

# What is done before each of the three screenshots, as (tool, input).
STEPS: list[list[tuple[str, dict[str, object]]]] = [
    [],
    [
        ("open_app", {"app": "Notes"}),
        ("enter_text", {"text": "Written by an AI client: café, 你好 🎉", "focus": {"x": 500, "y": 300}}),
    ],
    [("open_app", {"app": "Settings"}), ("touch_gesture", {"type": "tap", "point": {"x": 500, "y": 418}})],
]

# The boxes of the drawing: title, second line, x, y. All are 190 x 56 px.
BOXES = [
    ("AI client", "Claude, Cursor, Codex …", 10, 60),
    ("mcpboard", "the board's MCP server", 290, 60),
    ("Agent", "looks (HDMI), acts (USB HID)", 570, 10),
    ("Config Web", "settings, support bundle", 570, 110),
    ("phone", "with its companion app", 850, 60),
]
# The arrows: from x, y to x, y, and what is written above.
ARROWS = [
    (200, 88, 288, 88, "MCP"),
    (480, 80, 568, 40, "HTTP"),
    (480, 96, 568, 136, "HTTP"),
    (760, 40, 848, 80, "USB"),
]


def phones() -> Image.Image:
    """Return three screens of one session side by side."""
    shots = []
    moments = [NOON]  # the board's time is the last one
    with Simulator(clock=lambda: moments[-1], sleep=lambda seconds: moments.append(moments[-1] + seconds)) as board:
        for steps in STEPS:
            for tool, given in steps:
                body = json.dumps({"input": given}).encode()
                request = urllib.request.Request(f"{board.agent_url}/api/tools/{tool}", body)
                urllib.request.urlopen(request, timeout=30).close()
            with urllib.request.urlopen(f"{board.agent_url}/screen.jpg", timeout=30) as answer:
                shot = Image.open(io.BytesIO(answer.read())).convert("RGB")
            shots.append(shot.resize((shot.width * HEIGHT // shot.height, HEIGHT), Image.Resampling.LANCZOS))
    width = sum(shot.width for shot in shots) + GAP * (len(shots) - 1)
    sheet = Image.new("RGB", (width, HEIGHT), "#8a8f98")
    x = 0
    for shot in shots:
        sheet.paste(shot, (x, 0))
        x += shot.width + GAP
    return sheet


def drawing() -> str:
    """Return the drawing of the way from a client to the phone as SVG, readable on light and on dark pages."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1050 176" font-family="sans-serif" font-size="13">',
        "<title>The way from an AI client to the phone</title>",
        '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0 0 9 4 0 8z" fill="#5b7fb5"/></marker></defs>',
    ]
    for title, line, x, y in BOXES:
        parts.append(f'<rect x="{x}" y="{y}" width="190" height="56" rx="8" fill="#eef3fb" stroke="#5b7fb5"/>')
        parts.append(
            f'<text x="{x + 95}" y="{y + 24}" text-anchor="middle" font-weight="bold" fill="#1b2a41">{title}</text>'
        )
        parts.append(
            f'<text x="{x + 95}" y="{y + 43}" text-anchor="middle" font-size="12" fill="#3b4a61">{line}</text>'
        )
    for x, y, to_x, to_y, words in ARROWS:
        middle = f'x="{(x + to_x) // 2}" y="{(y + to_y) // 2 - 8}"'
        parts.append(f'<path d="M{x} {y} {to_x} {to_y}" stroke="#5b7fb5" stroke-width="2" marker-end="url(#tip)"/>')
        parts.append(f'<text {middle} text-anchor="middle" font-size="11" fill="#5b7fb5">{words}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write both pictures into docs/images."""
    FOLDER.mkdir(exist_ok=True)
    phones().save(FOLDER / "phone.jpg", quality=85, optimize=True)
    (FOLDER / "way.svg").write_text(drawing(), "utf-8")


if __name__ == "__main__":
    main()
