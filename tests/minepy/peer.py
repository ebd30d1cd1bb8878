"""The peer, fast-mine: what it makes of a pair."""

import fast_mine
import numpy as np


def peer(x, y, alpha, c, est):
    kind = fast_mine.EST_MIC_E if est == "mic_e" else fast_mine.EST_MIC_APPROX
    settings = fast_mine.MineParameter(alpha=alpha, c=c, est=kind)
    problem = fast_mine.MineProblem(np.array(x, float), np.array(y, float), len(x))
    return fast_mine.mine_compute_score(problem, settings)


def peer_gmic(found, p):
    try:
        return fast_mine.mine_gmic(found, p)
    except ZeroDivisionError:  # of an entry that is 0, where the mean is 0
        return 0.0


def peer_statistics(found):
    return {
        "mic": fast_mine.mine_mic(found),
        "mas": fast_mine.mine_mas(found),
        "mev": fast_mine.mine_mev(found),
        "mcn": fast_mine.mine_mcn(found, 0.0),
        "mcn 0.2": fast_mine.mine_mcn(found, 0.2),
        "mcn_general": fast_mine.mine_mcn_general(found),
        "gmic": peer_gmic(found, -1.0),
        "gmic 2": peer_gmic(found, 2.0),
        "tic": fast_mine.mine_tic(found, False),
        "tic norm": fast_mine.mine_tic(found, True),
    }
