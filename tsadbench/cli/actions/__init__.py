"""What commands do.

Modules here may import anything at their top; the modules of commands, which shells load to complete a word, import
from here only inside a command's body.
"""
