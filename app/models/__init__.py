"""Sampling by a model: which ones there are, which fits a request, and what it writes, piece by piece.

Knows the request and the result of `sampling/createMessage` as JSON; knows no ask, no session and no page.
"""

from app.models.base import Finished, Model, ModelFault, Usage, Writing
from app.models.choice import Choice, choices
from app.models.writing import written

__all__ = ["Choice", "Finished", "Model", "ModelFault", "Usage", "Writing", "choices", "written"]
