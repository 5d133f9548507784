"""The seal: what the kernel keeps a box's process from.

`walls` says what a box may reach, in the parent; `close` closes a box with `namespaces`, `landlock` and `seccomp`, from
inside. Import the modules: the process from which boxes are forked makes its namespaces before it loads anything large.
"""
