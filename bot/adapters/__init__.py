"""One module for each platform."""
