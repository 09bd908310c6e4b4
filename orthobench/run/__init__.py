"""One run: built, trained, resumed, recorded."""
