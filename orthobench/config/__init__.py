"""From the words of a command line to the checked settings of a run."""
