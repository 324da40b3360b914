"""Context divisions: which head a state belongs to. To add one, make a `ContextDivision` (`base.py`)."""

from iqrl.core.contexts.base import ContextDivision, by_random_encoder, by_trained_encoder, single

__all__ = ["ContextDivision", "by_random_encoder", "by_trained_encoder", "single"]
