"""What is on a screen, for models that would rather read than look."""
