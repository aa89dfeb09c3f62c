#!/bin/sh
# Run by the feed's CI on the installed package: test.sh PACKAGE VERSION

[ "$1" = python3-waitress ] || exit 0

python3 -c 'import waitress; waitress.create_server'
