"""What releases cost, and what several of them cost together."""
