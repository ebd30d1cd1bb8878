"""Privacy guarantees, events (what a release costs), and their composition."""
