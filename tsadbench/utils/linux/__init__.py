"""What Linux offers to keep a process from files, sockets and other processes. Nothing large is imported here."""
