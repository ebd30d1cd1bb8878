"""Secret and seeded keys for noise, key files, and the ChaCha20 generator of secret keys."""
