"""The seal: Landlock and seccomp, which keep a box from files, sockets and other processes; elsewhere a guard."""
