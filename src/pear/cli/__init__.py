"""What can be done from the terminal? One file per command."""
