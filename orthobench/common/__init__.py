"""Tools of every room: types of settings, classes by name, paths, terminal, signals, the frame of programs."""
