"""What `tsadbench doctor` examines."""
