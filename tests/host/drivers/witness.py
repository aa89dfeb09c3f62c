"""What facebook-wda sees and does at a URL: one step a line on standard input, its result a line on standard output."""

import base64
import json
import sys
from typing import Any

import wda  # type: ignore[import-not-found, unused-ignore]

client = wda.Client(sys.argv[1])
STEPS: dict[str, Any] = {
    "size": lambda: list(client.window_size()),
    "scale": lambda: client.scale,
    "app": lambda: client.app_current()["bundleId"],
    "source": lambda: client.source(format="json"),
    "picture": lambda: base64.b64encode(client.screenshot(format="raw")).decode(),
    "tap": lambda x, y: client.tap(x, y) and None,
    "swipe": lambda *ends: client.swipe(*ends) and None,
    "type": lambda text: client.send_keys(text) and None,
    "launch": lambda bundle: client.app_launch(bundle) and None,
    "alert": lambda: [client.alert.text, client.alert.buttons()],
    "session": lambda: client.session_id,
    "new session": lambda: client.session().session_id,
}
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(STEPS[name](*arguments)), flush=True)
