"""A detector's own interpreter: boxes in another Python than the one that runs tsadbench, with libraries of its own.

Nothing of tsadbench is installed there. `start` is run by that Python, `inside` makes it fit for the box, and
`environment` is what the outside knows of it. numpy is all that it needs to have.
"""
