"""An Android phone's output and input: screenshots, text, apps, elements, status, each by table."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.drivers import app_names, images
from mcpboard.host.drivers.android import BLACK, AndroidDriver, shell_commands, uiautomator
from mcpboard.host.vision.tree import UiNode
from tests.host.drivers import lab
from tests.host.drivers.fake_adb import PHONE, fake_adb, shell

PICTURE = lab.png(30, 60)

# --- screenshots ----------------------------------------------------------------------------------

MANY = b"[Warning] Multiple displays were found, but no display id was specified!\n"
WHOLE = [
    pytest.param(PICTURE, id="as it should be"),
    pytest.param(MANY + PICTURE, id="behind a warning"),
    pytest.param(PICTURE + b"\n", id="with a line end behind it"),
]


@pytest.mark.parametrize("output", WHOLE)
def test_the_picture_is_cut_out_of_what_a_phone_prints(output: bytes) -> None:
    assert images.extract_png(output) == PICTURE


@pytest.mark.parametrize("output", [b"", b"<html>", PICTURE[:-1], PICTURE[:40], b"\xff\xd8\xff" + PICTURE[8:]])
def test_what_is_no_whole_png_is_refused(output: bytes) -> None:
    with pytest.raises(ToolFailed, match="is no PNG|broke off"):
        images.extract_png(output)


def test_a_secure_window_is_explained_beside_its_black_picture() -> None:
    with fake_adb({"shell": shell(lab.png(30, 60, light=0))}) as server:
        shot = AndroidDriver(PHONE, server.adb).take_screenshot()
        assert (shot.width, shot.height, shot.note) == (30, 60, BLACK)
        server.script["shell"] = shell(PICTURE)
        assert AndroidDriver(PHONE, server.adb).take_screenshot().note == ""


@pytest.mark.parametrize("reply", [shell(exit_code=1), shell(b"", b"Capturing failed", 1), shell()])
def test_no_picture_at_all_is_explained(reply: Any) -> None:
    with fake_adb({"shell": reply}) as server, pytest.raises(ToolFailed, match="a secure window"):
        AndroidDriver(PHONE, server.adb).take_screenshot()


IDS = b'Display 4619827259835644672 (HWC display 0): port=0 pnpId=GGL displayName=""\nDisplay 2 (virtual)\n'


@pytest.mark.parametrize("reply", [shell(MANY + PICTURE), shell(PICTURE, MANY)], ids=["printed", "complained"])
def test_of_several_displays_the_first_is_named_from_then_on(reply: Any) -> None:
    script = {
        "shell,v2,raw:screencap -p": reply,
        "shell,v2,raw:screencap -p -d": shell(PICTURE),
        "shell,v2,raw:dumpsys SurfaceFlinger": shell(IDS),
    }
    with fake_adb(script) as server:
        phone = AndroidDriver(PHONE, server.adb)
        phone.take_screenshot()
        phone.take_screenshot()
        named = "screencap -p -d 4619827259835644672"
        assert server.scripts == ["screencap -p", "dumpsys SurfaceFlinger --display-id", named, named]


def test_a_display_that_is_gone_is_not_asked_for_again() -> None:
    script = {
        "shell,v2,raw:screencap -p": shell(MANY + PICTURE),
        "shell,v2,raw:screencap -p -d": shell(b"", b"Display Id is not valid", 1),
        "shell,v2,raw:dumpsys SurfaceFlinger": shell(IDS),
    }
    with fake_adb(script) as server:
        phone = AndroidDriver(PHONE, server.adb)
        with pytest.raises(ToolFailed, match="Display Id is not valid"):
            phone.take_screenshot()
        server.script["shell,v2,raw:screencap -p"] = shell(PICTURE)
        assert phone.take_screenshot().content == PICTURE


def test_displays_that_are_not_named_are_told() -> None:
    with fake_adb({"shell": shell(MANY + PICTURE)}) as server, pytest.raises(ToolFailed, match="several displays"):
        AndroidDriver(PHONE, server.adb).take_screenshot()


# --- points ------------------------------------------------------------------------------------

SCREENS = [
    pytest.param(b"Physical size: 30x60\n", (29, 59), id="as large as its picture"),
    pytest.param(b"Physical size: 60x120\nOverride size: 15x30\n", (14, 29), id="an override of the size"),
    pytest.param(b"Physical size: 60x120\n  init=60x120 cur=300x600 app=1x1\n", (290, 590), id="what is current wins"),
    pytest.param(b"Display: mDisplayId=2\n cur=9x9 app\nDisplay: mDisplayId=0 x\n cur=60x120 app\n", (58, 118), id="another display first"),
    pytest.param(b"", (29, 59), id="a phone that does not tell"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "point"), SCREENS)
def test_pixels_of_the_screenshot_become_points_of_the_screen(output: bytes, point: tuple[int, int]) -> None:
    with fake_adb({"shell,v2,raw:wm size": shell(output), "shell,v2,raw:screencap": shell(PICTURE)}) as server:
        phone = AndroidDriver(PHONE, server.adb)
        phone.take_screenshot()
        phone.tap((29, 59))
        phone.swipe((0, 0), (29, 59), 250)
        x, y = point
        assert [line for line in server.scripts if line.startswith("input")] == [
            f"input tap {x} {y}", f"input swipe 0 0 {x} {y} 250",
        ]  # fmt: skip


# --- text --------------------------------------------------------------------------------------

TYPED = [
    pytest.param("hello", "input text hello", id="a word"),
    pytest.param("a b", "input text a%sb", id="a space"),
    pytest.param("%s", "input text % && input text s", id="what `input` takes for a space"),
    pytest.param("100%%sure", "input text 100%% && input text sure", id="two per cent signs before an s"),
    pytest.param("it's", "input text 'it'\"'\"'s'", id="a quote"),
    pytest.param('$(x) `y` "z" \\', "input text '$(x)%s`y`%s\"z\"%s\\'", id="what a shell would run"),
    pytest.param("a\n\tb", "input text a && input keyevent 66 && input keyevent 61 && input text b", id="keys"),
    pytest.param("-n", "input text -n", id="what looks like an option"),
]


@pytest.mark.parametrize(("text", "script"), TYPED)
def test_text_becomes_commands(text: str, script: str) -> None:
    assert shell_commands.input_script(text) == script


def test_long_text_goes_in_pieces_that_a_phone_takes() -> None:
    text = "0123456789 %s" * 800
    commands = [shlex.split(command) for command in shell_commands.input_script(text).split(" && ")]
    assert {tuple(arguments[:2]) for arguments in commands} == {("input", "text")}
    assert "".join(arguments[2].replace("%s", " ") for arguments in commands) == text
    assert max(len(arguments[2]) for arguments in commands) <= 2 * shell_commands.PIECE


UNTYPEABLE = [
    pytest.param("שלום", "U+05E9 HEBREW LETTER SHIN (ש)", id="Hebrew"),
    pytest.param("你好", "U+4F60 CJK UNIFIED IDEOGRAPH-4F60 (你)", id="Chinese"),
    pytest.param("👨‍👩‍👧", "U+1F468 MAN (👨), U+200D ZERO WIDTH JOINER, U+1F469 WOMAN", id="a family"),
    pytest.param("e\u0301", "U+0301 COMBINING ACUTE ACCENT", id="a combining mark"),
    pytest.param("a\0b", "U+0000 control character", id="NUL"),
    pytest.param("a\r\nb", "U+000D control character", id="a carriage return"),
    pytest.param("\ud83d", "U+D83D control character", id="half of a pair"),
    pytest.param("אבגדהוזחט", "and more", id="more than anybody reads"),
]


@pytest.mark.parametrize(("text", "named"), UNTYPEABLE)
def test_what_no_android_phone_can_type_is_named(text: str, named: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        shell_commands.input_script(text)
    assert named in str(refused.value)
    assert "nothing was typed" in str(refused.value)
    assert refused.value.data == {"delivery": NOT_SENT}


# --- apps --------------------------------------------------------------------------------------

INSTALLED = [
    "com.android.settings", "com.android.settings.intelligence", "com.google.android.apps.maps", "com.android.vending",
    "com.google.android.youtube", "org.one.notes", "org.two.notes", "com.android.chrome",
]  # fmt: skip
APPS = [
    pytest.param("com.android.chrome", "com.android.chrome", id="a package"),
    pytest.param("Settings", "com.android.settings", id="the end of a package's name"),
    pytest.param("YouTube", "com.google.android.youtube", id="a name in another case"),
    pytest.param(" maps ", "com.google.android.apps.maps", id="a name with spaces around it"),
    pytest.param("Play Store", "com.android.vending", id="a label that its package does not have"),
    pytest.param("intelligence", "com.android.settings.intelligence", id="a part of a name"),
]
NO_APPS = [
    pytest.param("Notes", "'Notes' may mean org.one.notes, org.two.notes; launch it by its package", id="several"),
    pytest.param("Utube", "near it: com.google.android.youtube", id="a slip of the pen"),
    pytest.param("zzz", "'zzz' is no app here; 8 packages are installed", id="nothing like it"),
]


@pytest.mark.parametrize(("name", "package"), APPS)
def test_an_app_is_found_by_what_people_call_it(name: str, package: str) -> None:
    assert app_names.find_package(name, INSTALLED) == package


@pytest.mark.parametrize(("name", "message"), NO_APPS)
def test_an_app_is_never_guessed(name: str, message: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        app_names.find_package(name, INSTALLED)
    assert message in str(refused.value)
    assert refused.value.data == {"delivery": NOT_SENT}


def test_an_activity_that_is_not_there_is_told_though_the_phone_ends_well() -> None:
    output = b"Starting\nError: Activity class {a/a.B} does not exist.\n"
    with (
        fake_adb({"shell": shell(output)}) as server,
        pytest.raises(ToolFailed, match=r"Activity class \{a/a.B\} does not"),
    ):
        AndroidDriver(PHONE, server.adb).launch_app("a/a.B")


def test_a_package_with_nothing_to_launch_is_told() -> None:
    output = b"** No activities found to run, monkey aborted.\n"
    script = {"shell,v2,raw:pm": shell(b"package:a.b\n"), "shell,v2,raw:monkey": shell(output, exit_code=252)}
    with fake_adb(script) as server, pytest.raises(ToolFailed, match="that package has nothing to launch"):
        AndroidDriver(PHONE, server.adb).launch_app("a.b")


# --- elements ----------------------------------------------------------------------------------


def dump(inner: str) -> str:
    return f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{inner}</hierarchy>"


def element(view: str, bounds: str, inner: str = "", **attributes: str) -> str:
    written = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<node class="{view}" bounds="{bounds}"{written}>{inner}</node>'


ROLES = [
    ("android.widget.TextView", "text"), ("android.widget.EditText", "field"), ("android.widget.ImageButton", "button"),
    ("android.widget.Button", "button"), ("androidx.recyclerview.widget.RecyclerView", "list"), ("com.x.Odd$Inner", "inner"),
    ("", "view"),
]  # fmt: skip


@pytest.mark.parametrize(("view", "role"), ROLES)
def test_every_view_has_a_role(view: str, role: str) -> None:
    (node,) = uiautomator.parse_tree(dump(element(view, "[0,0][5,5]")), (10, 10), (10, 10)).children
    assert node.role == role


def test_boxes_are_in_pixels_of_the_picture_and_inside_it() -> None:
    inner = element(
        "android.widget.Button",
        "[-5,10][50,20]",
        text="A &lt;b&gt;",
        content_desc="d",
        resource_id="i",
        clickable="true",
    )
    off = element("android.view.View", "[0,200][50,220]") + element("android.view.View", "[3,3][3,9]")
    (node,) = uiautomator.parse_tree(dump(inner + off), (100, 200), (50, 100)).children
    assert node == UiNode("button", (0, 20, 100, 40), "A <b>", "d", "i", clickable=True)


@pytest.mark.parametrize(
    "document", ["<?xml", dump("<node>"), '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>']
)
def test_a_broken_document_is_told(document: str) -> None:
    with pytest.raises(ToolFailed, match="UI tree"):
        uiautomator.parse_tree(document, (1, 1), (1, 1))


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (b"ERROR: could not get idle state.", "wait until it is still"),
        (b"ERROR: null root node returned", "is off, locked"),
    ],
)
def test_a_tree_that_does_not_come_is_explained(stderr: bytes, message: str) -> None:
    with fake_adb({"shell": shell(b"", stderr, 1)}) as server, pytest.raises(ToolFailed, match=message):
        AndroidDriver(PHONE, server.adb).ui_tree()


# --- status ------------------------------------------------------------------------------------

FRONT = [
    ("  mCurrentFocus=Window{1 u0 com.a/com.a.B}\n", {"id": "com.a", "activity": "com.a.B"}),
    ("  mCurrentFocus=null\n  mFocusedApp=ActivityRecord{9 u0 com.a/.B t12}\n", {"id": "com.a", "activity": ".B"}),
    ("  mFocusedApp=Token{1 ActivityRecord{9 u0 com.a/.B t12}}\n", {"id": "com.a", "activity": ".B"}),
    ("  mCurrentFocus=Window{1 u0 NotificationShade}\n", {}),
    ("", {}),
]


@pytest.mark.parametrize(("output", "front"), FRONT)
def test_the_app_in_front_is_read_from_every_androids_output(output: str, front: dict[str, str]) -> None:
    assert shell_commands.parse_foreground(output) == front


OTHER = "Display: mDisplayId=2\n mRotation=2\nDisplay: mDisplayId=0\n"
TURNS = [
    (f"{OTHER}mRotation=1", 90),
    ("mRotation=1", 90),
    ("mCurrentRotation=ROTATION_270", 270),
    ("mRotation=ROTATION_0", 0),
]


@pytest.mark.parametrize(("line", "degrees"), TURNS)
def test_rotation_is_in_degrees(line: str, degrees: int) -> None:
    assert shell_commands.parse_status(f"@window\n    {line}\n") == {"rotation": degrees}


def test_a_phone_that_tells_nothing_has_no_status_and_no_fault() -> None:
    assert shell_commands.parse_status("") == {}
    assert shell_commands.parse_status("@model\n\n@battery\nCan't find service: battery\n@power\n") == {}


def test_a_sleeping_screen_is_told() -> None:
    assert shell_commands.parse_status("@power\n  mWakefulness=Dozing\n") == {"screen_on": False}
