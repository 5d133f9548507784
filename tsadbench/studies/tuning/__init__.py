"""Does tuning without labels help? The comparison and its page."""
