"""The eleven tools: specifications, arguments and what each does."""
