from fusion.boosts import exponentials_by_math as exponentials

__all__ = ["exponentials"]
