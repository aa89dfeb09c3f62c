"""What a request, a picture and a bundle cost: gates for `make test`, a table for `make bench`, a soak.

Gates count (instructions, bytes, threads, sockets), because counts repeat on a busy machine; times are
measured side by side in one run, shown, and never asserted.
"""
