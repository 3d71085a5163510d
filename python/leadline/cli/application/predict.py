"""`leadline predict S --application A`: how long would this application take there?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from leadline.cli.talk import put_json, show, talk
from leadline.late import late
from leadline.predict import Predictor
from leadline.predict.application import predict_application
from leadline.record.application.prediction import ApplicationPrediction
from leadline.report.prediction.application import render_application, sentences_of
from leadline.store import Store
from leadline.studies.application import load_application

# It loads Altair, which few commands need.
save_application_prediction = late("leadline.report.prediction.save:save_application_prediction")


def answer(
    store: Store, predictor: Predictor, ref: str, *, json: bool, output: Path | None = None
) -> None:
    """Predict a stored application, tell it, and draw it where that is asked.

    Raises:
        StoreError: there is no such application.
        PredictionRefused: the survey is not finished.

    """
    found = predict_application(load_application(store, ref), predictor)
    if json:
        put_json(application_document(found))
    else:
        show(render_application(found))
    if output is not None:
        save_application_prediction(found, output, application_document(found))
        talk(f"wrote {output}")


def application_document(found: ApplicationPrediction) -> dict[str, Any]:
    """Return a prediction's fields, what follows from them, and the sentences."""
    document: dict[str, Any] = msgspec.to_builtins(found)
    return document | {"in_io": found.in_io, "sentences": list(sentences_of(found))}
