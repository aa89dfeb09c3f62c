"""Icons: find them in a screenshot, describe their shape, and compare it with known ones."""
