"""The experiments of the MIC paper, reproduced, with this package's mechanisms beside them.

The paper is "Differentially Private Maximal Information Coefficients" (Lazarsfeld, Johnson and
Adeniran 2022), section 5 and appendix E. Import the part that is wanted:

    from dpmic_jax.paper import collections, family, figures, printed, real, synthetic

`family`: the 189 synthetic distributions, each with its MIC*.
`synthetic`: every mechanism on data of them, for figures 2 and 4.
`collections`, `real`: the real data, and every mechanism on it, for Tables 1 and 3 and figures 3
and 5.
`tuning`, `choice`: the search behind Table 2, and behind this package's default settings.
`printed`: the numbers that the paper prints.
`figures`: its figures, and ours.
`store`: keeps finished parts of what takes long.
"""
