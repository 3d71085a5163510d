"""`leadline predict S --application A`: how long would this application take there?"""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.cli.talk import put_json, show
from leadline.predict import Predictor
from leadline.predict.application import predict_application
from leadline.record.application.prediction import ApplicationPrediction
from leadline.report.prediction.application import render_application, sentences_of
from leadline.store import Store
from leadline.studies.application import load_application


def answer(store: Store, predictor: Predictor, ref: str, *, json: bool) -> None:
    """Predict a stored application, and tell it.

    Raises:
        StoreError: there is no such application.
        PredictionRefused: the survey is not finished.

    """
    found = predict_application(load_application(store, ref), predictor)
    if json:
        put_json(application_document(found))
    else:
        show(render_application(found))


def application_document(found: ApplicationPrediction) -> dict[str, Any]:
    """Return a prediction's fields, what follows from them, and the sentences."""
    document: dict[str, Any] = msgspec.to_builtins(found)
    return document | {"in_io": found.in_io, "sentences": list(sentences_of(found))}
