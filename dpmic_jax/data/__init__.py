"""Tables, what is public about them, and how they are read: schemas, sources, the demo table."""
