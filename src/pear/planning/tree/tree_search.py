"""Which plan does plain Monte Carlo tree search find?"""

from __future__ import annotations

from pear.decision import BlackBox
from pear.planning.tree.evaluation import Evaluator, UniformPrior
from pear.planning.tree.rules import LengthRules, Rules, SavingRules
from pear.planning.tree.search_planner import Returns, SearchPlanner
from pear.problem import Problem


class TreeSearch(SearchPlanner):
    """Plain MCTS: uniform prior, random playouts, reward γ^length.

    Of the successful plans it meets it returns the cheapest under the weights given. With
    ``rules=SavingRules()`` the search itself is after cheap plans too.
    """

    method = "mcts"

    def __init__(
        self,
        problem: Problem,
        black_box: BlackBox,
        *,
        simulations: int = 15,
        max_rows: int | None = None,
        searches: int = 8,
        returns: Returns = "best",
        rules: LengthRules | SavingRules = LengthRules(),
    ) -> None:
        super().__init__(
            problem,
            black_box,
            simulations=simulations,
            max_rows=max_rows,
            searches=searches,
            returns=returns,
        )
        self.settings = rules

    def rules(self) -> Rules:
        return self.settings.build()

    def evaluator(self) -> Evaluator:
        return UniformPrior()
