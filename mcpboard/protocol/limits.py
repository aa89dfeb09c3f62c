"""Every limit of a request and of a reply, with what reaching it costs a board with 64 MB of memory.

Those of any JSON are in `mcpboard/text.py`. `docs/limits.md` lists both for people; a test compares them.
"""

from __future__ import annotations

# --- a request ---------------------------------------------------------------------------------

# Bytes. Arguments may be 256 KiB, the rest is envelope. Each connection may hold one that is not whole
# yet: 24 of them are 8 MB.
BODY_LIMIT = 320 * 1024

# Bytes of JSON; longer text has no use on a phone. Five calls that wait for the backend hold 2.5 MB.
ARGUMENTS_LIMIT = 256 * 1024

# Bytes from which bodies are parsed one at a time. The largest body costs up to 7 MB while it is
# parsed, and eight threads would need 56; one of 16 KiB costs 0.4 MB, and real requests have less.
LARGE_BODY = 16 * 1024

# Lists and objects of one document; a parsed empty list takes 56 bytes, an object with one member 232, so
# reaching it costs 2.4 MB. A gesture of a thousand points has a thousand.
CONTAINERS_LIMIT = 10_000

# Characters; an id is echoed, so a long one would make long replies of every ping. At most 6 KiB in
# a reply, where every character is an escape.
ID_LIMIT = 1024

# Digits of an integer: what newer Pythons convert by default, older ones without end. 2 KiB, and below a
# millisecond on a small board.
DIGITS_LIMIT = 4300

# Characters of name and version that pages and logs show.
CLIENT_NAME_LIMIT = 80

# Legacy sessions that are kept, of a role that has any; 300 bytes each.
SESSIONS_LIMIT = 1024

# --- what a backend answers --------------------------------------------------------------------

# Bytes: some twenty screenshots. It is held twice while it is read, three times where it has more than
# 64 brackets: 8 to 12 MB.
RESPONSE_LIMIT = 4 * 1024 * 1024

# Names, numbers and strings of an answer over 1 MiB; a parsed name with its number takes 150 bytes: 15 MB. An
# answer of the largest size holds 350,000 of them, which took 70 MB.
VALUES_LIMIT = 100_000

# Bytes of shell output, as UTF-8, that a reply carries.
OUTPUT_LIMIT = 256 * 1024

# Characters of a foreign body that an error repeats; the longest of UTF-8 has four bytes.
QUOTE_LIMIT = 500
QUOTED_BYTES = 4 * QUOTE_LIMIT

# Schemas in schemas; the deepest that a board has built in has 5. OpenAI and Moonshot take 10.
SCHEMA_DEPTH_LIMIT = 10

# Characters of a description or title in a schema: what OpenAI takes.
DESCRIPTION_LIMIT = 1024

# Lengths and numbers of items that a schema names are less: llama.cpp repeats a rule of its grammar as often.
COUNT_LIMIT = 2000

# --- what a server answers to a client of ours, on a laptop or a host -----------------------------

# Bytes of JSON without bundles: an image is at most 4 MiB, base64 adds a third.
ANSWER_LIMIT = 16 << 20

# Bytes of all bundles together, decoded: twice the largest that a board forwards.
BLOB_LIMIT = 64 << 20

# Pages of `tools/list`: a cursor that never ends is a known fault of servers.
PAGES_LIMIT = 64

# --- threads -------------------------------------------------------------------------------------

# Bytes of stack for each thread of a server. musl gives 128 KiB, on which code that recurses to the
# interpreter's limit of 1,000 calls ends the process instead of raising RecursionError; glibc
# reserves 8 MiB, which a process with a limit on its data cannot have nine times. Memory is taken as a
# stack is used, some 60 KiB of it; the rest is only reserved addresses.
STACK_BYTES = 512 * 1024
# The same for the other threads of a host, in which libraries read pictures and text on them.
HOST_STACK_BYTES = 1024 * 1024

# --- settings files ------------------------------------------------------------------------------

# Bytes of a settings file; the Agent reads no more of its own either.
SETTINGS_LIMIT = 1 << 20

# Bytes of a file that holds a token and nothing else; no token that fits into a header comes near.
TOKEN_FILE_LIMIT = 4096

# Levels of a TOML file, and parts of one key: the parser calls itself for each level, and walks a key
# from its beginning again for each part, hours for 20,000 of them. The Agent's own file has 3.
TOML_DEPTH_LIMIT = 16
