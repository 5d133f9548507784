"""The paper's tables beside ours, cell by cell, and what they say when read honestly."""
