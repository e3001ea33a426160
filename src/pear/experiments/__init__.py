"""Do we reproduce the paper, and what is the better answer beside it?

One file per table or figure; ``pear bench`` runs them. A method or data set of one's own
joins by its import path, see :mod:`pear.experiments.experiment`.
"""
