"""Which dependences are direct: independence tests and the PC family on top of them."""
