"""The command line, one file a command: its signature makes the options."""
