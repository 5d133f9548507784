"""What people look at: figures and the HTML report."""
