"""Identity of this host, its bearer tokens, and the owners that leases belong to."""
