"""x"""


def write(r):
    pass
