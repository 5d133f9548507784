"""Small helpers that know no detector: arrays, files, TOML, Markdown, progress."""
