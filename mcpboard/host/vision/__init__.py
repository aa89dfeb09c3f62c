"""Text and icons of a screen, for models that would rather read than look."""
