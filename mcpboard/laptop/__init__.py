"""Role 3: for the person at the other end of the cable."""
