"""Data sets of one's own: a card, which is a TOML file, says what a folder's files of tables or arrays hold."""
