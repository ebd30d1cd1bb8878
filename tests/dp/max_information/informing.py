"""Exact max-information of small or simple mechanisms, from the definition."""

import itertools

import numpy as np
from scipy import stats


def excess(joint, product, nats):
    """The least beta for which `nats` hold; the worst event is O = {joint > e^nats product}."""
    nats = np.minimum(np.reshape(nats, np.shape(nats) + (1,) * 2), 700)
    return np.maximum(joint - np.exp(nats) * product, 0).sum(axis=(-1, -2))


def data_sets(n, letters):
    return np.array(list(itertools.product(range(letters), repeat=n)))


def neighbours(sets):
    """Index pairs of data sets that differ in exactly one record."""
    apart = (sets[:, None, :] != sets[None, :, :]).sum(axis=-1)
    return np.argwhere(apart == 1)


def product_distribution(sets, marginals):
    """Probabilities of the data sets; `marginals` is of every record, (..., n, letters)."""
    n = sets.shape[1]
    return np.prod([marginals[..., i, :][..., sets[:, i]] for i in range(n)], axis=0)


def skewed_marginals(rng, batch, n, letters):
    """Random distributions of the records, many of them far from uniform."""
    power = rng.choice([0.2, 1.0, 5.0], size=(batch, 1, 1))
    raw = rng.gamma(power, size=(batch, n, letters)) + 1e-12
    return raw / raw.sum(axis=-1, keepdims=True)


def worst_loss(channel, pairs):
    """Largest ln P(a|x) / P(a|x') over neighbours, (batch,)."""
    logs = np.log(channel)
    return np.abs(logs[:, pairs[:, 0]] - logs[:, pairs[:, 1]]).max(axis=(1, 2))


def tilted_channels(rng, batch, sets, outputs, epsilon):
    """Random channels (batch, data set, output) whose worst loss is epsilon or a little less.

    P(a|x) ~ w_a e^(tilt u_a(x)), with u of 0 and 1 at random, or a sum over records.
    """
    pairs = neighbours(sets)
    n, letters = sets.shape[1], sets.max() + 1
    patterns = rng.integers(0, 2, size=(batch, len(sets), outputs)).astype(float)
    marks = rng.integers(0, 2, size=(batch, n, letters, outputs)).astype(float)
    sums = np.sum([marks[:, i][:, sets[:, i]] for i in range(n)], axis=0)
    scores = np.where(rng.random((batch, 1, 1)) < 0.5, patterns, sums)
    weights = rng.normal(scale=2, size=(batch, 1, outputs))
    low, high = np.zeros(batch), np.full(batch, 4 * epsilon)
    for _ in range(50):
        tilt = (low + high) / 2
        fits = worst_loss(_softmax(weights + tilt[:, None, None] * scores), pairs) <= epsilon
        low, high = np.where(fits, tilt, low), np.where(fits, high, tilt)
    channel = _softmax(weights + low[:, None, None] * scores)
    assert worst_loss(channel, pairs).max() <= epsilon * (1 + 1e-12)
    return channel


def _softmax(logits):
    raw = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return raw / raw.sum(axis=-1, keepdims=True)


def joint_and_product(channel, prior):
    """Distributions of (X, A) and of independent copies, (batch, data set, output)."""
    joint = prior[..., None] * channel
    return joint, prior[..., None] * joint.sum(axis=-2, keepdims=True)


def response_excess(n, epsilon, weight, nats):
    """The exact `excess` of randomised response on n bits that are 1 with probability `weight`.

    Each record adds ln P(a|x)/P(a) to the loss. The sum is over the number of outputs that are 1,
    and over the numbers of true answers among these and among the others.
    """
    truth = 1 / (1 + np.exp(-epsilon))
    ones = weight * truth + (1 - weight) * (1 - truth)
    j = np.arange(n + 1)
    right_ones = stats.binom.pmf(j[None, :], j[:, None], weight * truth / ones)
    right_zeros = stats.binom.pmf(j[None, :], n - j[:, None], (1 - weight) * truth / (1 - ones))
    chances = stats.binom.pmf(j, n, ones)
    loss = np.log([[truth / ones, (1 - truth) / ones],
                   [truth / (1 - ones), (1 - truth) / (1 - ones)]])  # fmt: skip
    total = 0.0
    for k in j:
        if chances[k] < 1e-30:
            continue
        first = j[: k + 1] * loss[0, 0] + (k - j[: k + 1]) * loss[0, 1]
        second = j[: n - k + 1] * loss[1, 0] + (n - k - j[: n - k + 1]) * loss[1, 1]
        z = first[:, None] + second[None, :]
        mass = right_ones[k, : k + 1, None] * right_zeros[k, None, : n - k + 1]
        total += chances[k] * (mass * -np.expm1(np.minimum(nats - z, 0))).sum()
    return total


def uniform_response_excess(n, epsilon, nats):
    """The same for fair bits, where only the number of true answers counts; n may be large."""
    j, truth = np.arange(n + 1), 1 / (1 + np.exp(-epsilon))
    z = n * np.log(2) + j * np.log(truth) + (n - j) * np.log1p(-truth)
    return (stats.binom.pmf(j, n, truth) * -np.expm1(np.minimum(nats - z, 0))).sum()


def in_nats(bound):
    return bound.bits * np.log(2)
