"""The devices of this host: their registry, their leases, and one command at a time on each."""
