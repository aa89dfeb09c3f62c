"""The edge: the only place on our side of the wire that knows waitress."""
