"""Keys that noise is drawn from, and the generator behind secret ones."""
