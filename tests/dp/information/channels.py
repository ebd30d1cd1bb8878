"""Random channels, their privacy and their information, by definition and in numpy alone.

A batch of channels has shape (channels, inputs, outputs); rows are the output distributions of
inputs that differ in one record.
"""

import numpy as np

SHAPES = [(2, 2), (2, 5), (3, 3), (4, 3), (3, 6), (6, 6)]


def x_log_ratio(x, ratio_to):
    """x ln(x / y), 0 where x is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0, x * np.log(x / ratio_to), 0.0)


def entropy(p):
    return -x_log_ratio(p, 1.0) - x_log_ratio(1 - p, 1.0)


# --- the privacy and the information of a channel -------------------------------------------------


def loss(channels):
    """The least epsilon: the largest log ratio of two rows at one output."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = channels[:, :, None] / channels[:, None]
        return np.log(np.nanmax(ratios, axis=(1, 2, 3)))


def divergence(channels):
    """The largest D(W_x || W_x')."""
    return x_log_ratio(channels[:, :, None], channels[:, None]).sum(-1).max((1, 2))


def delta(channels, epsilon):
    """The least delta at each channel's epsilon: the largest sum of (p - e^epsilon q)+."""
    odds = np.exp(np.broadcast_to(epsilon, len(channels)))[:, None, None, None]
    return np.maximum(channels[:, :, None] - odds * channels[:, None], 0).sum(-1).max((1, 2))


def variation(channels):
    return delta(channels, 0.0)


def information(channels, inputs):
    """I(X; Y) for each channel and its input distribution."""
    outputs = np.einsum("cx,cxy->cy", inputs, channels)
    return np.einsum("cx,cxy->c", inputs, x_log_ratio(channels, outputs[:, None]))


def capacities(channels, steps=400):
    """Bounds below and above the capacity of each channel.

    Multiplicative steps of 1 / (the largest variation), by which the divergence of output
    distributions contracts at least (Dobrushin), so no step overshoots.
    """
    inputs = np.full(channels.shape[:2], 1 / channels.shape[1])
    size = 1 / np.maximum(variation(channels), 1e-9)[:, None]
    low, high = np.zeros(len(channels)), np.full(len(channels), np.inf)
    for _ in range(steps):
        outputs = np.einsum("cx,cxy->cy", inputs, channels)
        distances = x_log_ratio(channels, outputs[:, None]).sum(-1)
        low = np.maximum(low, (inputs * distances).sum(1))
        high = np.minimum(high, distances.max(1))
        inputs = inputs * np.exp(size * (distances - distances.max(1, keepdims=True)))
        inputs = np.maximum(inputs / inputs.sum(1, keepdims=True), 1e-200)
    return low, high


def sibson(channels, inputs, order):
    """Sibson's information of an order other than 1, by its closed form."""
    if np.isinf(order):
        return np.log(channels.max(1).sum(1))
    powers = np.einsum("cx,cxy->cy", inputs, channels**order)
    return order / (order - 1) * np.log((powers ** (1 / order)).sum(1))


# --- channels ------------------------------------------------------------------------------------


def randomised_response(epsilon):
    odds = np.exp(epsilon)
    return np.array([[odds, 1], [1, odds]]) / (1 + odds)


def erasure(delta, inputs):
    return np.hstack([delta * np.eye(inputs), np.full((inputs, 1), 1 - delta)])


def symmetric(truth, inputs):
    """The input with probability `truth`, otherwise any other one."""
    rest = (1 - truth) / (inputs - 1)
    return np.full((inputs, inputs), rest) + (truth - rest) * np.eye(inputs)


def windows(epsilon, high, inputs):
    """Output y is e^epsilon times likelier for the `high` inputs that follow it on a circle."""
    ahead = (np.arange(inputs)[:, None] - np.arange(inputs)) % inputs
    weights = np.where(ahead < high, np.exp(epsilon), 1.0)
    return weights / weights.sum(1, keepdims=True)


def random_channels(rng, inputs, outputs, count):
    """Flat and sparse channels, channels with two levels of odds, noisy and erased permutations."""
    each = count // 5
    sharpness = 10 ** rng.uniform(-1, 2.5, (each, 1, 1))
    flat = rng.gamma(np.broadcast_to(sharpness, (each, inputs, outputs))) + 1e-30
    epsilon = 10 ** rng.uniform(-2, 0.7, (each, 1, 1))
    levels = np.exp(epsilon * rng.integers(0, 2, (each, inputs, outputs)))
    common = rng.gamma(1.0, size=(each, 1, outputs)) + 1e-3
    exact = np.zeros((each, inputs, outputs))
    np.put_along_axis(exact, rng.integers(0, outputs, (each, inputs, 1)), 1.0, axis=2)
    exact[: each // 2] = np.eye(inputs, outputs)
    exact[: each // 2, outputs:, 0] = 1.0
    share = rng.uniform(0, 1, (each, 1, 1))
    erased = exact * share + (1 - share) * common / common.sum(-1, keepdims=True)
    noisy = exact * share + (1 - share) / outputs
    perturbed = common * (1 + 0.1 * share * rng.uniform(-1, 1, (each, inputs, outputs)))
    made = np.concatenate([flat, levels * common, erased, noisy, perturbed])
    return made / made.sum(-1, keepdims=True)
