"""An episode to be watched: as a file, in a window, in the terminal."""
