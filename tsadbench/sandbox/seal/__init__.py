"""The seal: Landlock and seccomp keep a box from files, sockets and other processes; an audit hook guards elsewhere."""
