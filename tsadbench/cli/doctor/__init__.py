"""What is here, what is missing, and what is broken: ``tsadbench doctor``."""
