"""Who calls: identity of this host, tokens, and the owners that leases belong to."""
