"""`python -m dpmic_jax` is `dpmic`."""

from dpmic_jax.cli import main

if __name__ == "__main__":
    main(prog_name="python -m dpmic_jax")
