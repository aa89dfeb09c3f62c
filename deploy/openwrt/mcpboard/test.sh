#!/bin/sh
# Run by the feed's CI on the installed package: test.sh PACKAGE VERSION

[ "$1" = mcpboard ] || exit 0

set -e

# An apk version writes 1.2.0_rc1 for 1.2.0rc1.
[ "$(mcpboard --version | sed -E 's/(rc|a|b)([0-9])/_\1\2/; s/_a([0-9])/_alpha\1/; s/_b([0-9])/_beta\1/')" = "${2%-r*}" ]

mcpboard config > /dev/null

mcpboard serve --listen 127.0.0.1:8099 --log stderr &
server=$!
trap 'kill "$server"' EXIT

python3 - << 'PYTHON'
import json, time, urllib.request

def health():
    with urllib.request.urlopen("http://127.0.0.1:8099/health", timeout=10) as answer:
        return json.load(answer)

for attempt in range(60):
    try:
        assert health()["name"] == "mcpboard"
        break
    except OSError:
        time.sleep(1)
else:
    raise SystemExit("no answer from mcpboard within 60 s")
PYTHON
