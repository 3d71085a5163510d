"""What every store must do; a backend's tests inherit `StoreConformance` and say how to open it.

class TestMyStore(StoreConformance):
    def open(self, place: Path) -> Store:
        return MyStore(place)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from leadline.record import SurveyStatus
from leadline.record.workbench import Experiment, Prior, SamplePeak
from leadline.store import Store, StoreError, UpdateFinishedError
from leadline.testing.samples import (
    sample_cache_start,
    sample_cache_study,
    sample_experiment_start,
    sample_files_study,
    sample_peak,
    sample_point,
    sample_start,
    sample_stream_study,
    sample_survey,
    sample_trial,
    sample_validation,
    sample_validation_start,
)


class StoreConformance:
    """Inherit it; pytest runs every method below on the store that `open` returns."""

    def open(self, place: Path) -> Store:
        """Open the store kept at `place`, an empty directory at first; the same one every time."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        """Return an empty store."""
        return self.open(tmp_path)

    def test_documents_come_back_as_they_were(self, store: Store) -> None:
        """Nothing is lost or changed on the way, 64-bit seeds and None included."""
        start, point = sample_start(), sample_point("point-1")
        store.start_survey(start)
        store.add_point(point)
        survey = sample_survey(start)
        store.finish_survey(survey)
        assert store.survey_start("survey-a") == start
        assert store.points("survey-a") == (point,)
        assert store.measurement("point-1") == point
        assert store.survey("survey-a") == survey

    def test_another_connection_sees_a_point_at_once(self, store: Store, tmp_path: Path) -> None:
        """A point is there for others as soon as `add_point` returned."""
        store.start_survey(sample_start())
        store.add_point(sample_point("point-1"))
        with self.open(tmp_path) as other:
            assert [point.point_id for point in other.points("survey-a")] == ["point-1"]

    def test_points_come_in_order_of_execution(self, store: Store) -> None:
        """Whatever the order in which they were added."""
        store.start_survey(sample_start())
        for order in (2, 0, 1):
            store.add_point(sample_point(f"point-{order}", order=order))
        assert [point.order for point in store.points("survey-a")] == [0, 1, 2]

    def test_a_stored_point_never_changes(self, store: Store) -> None:
        """The second of the same id is refused and the first stays."""
        store.start_survey(sample_start())
        first = sample_point("point-1", mb_s=100.0)
        store.add_point(first)
        with pytest.raises(UpdateFinishedError, match="point-1"):
            store.add_point(sample_point("point-1", order=1, mb_s=200.0))
        assert store.points("survey-a") == (first,)

    def test_one_point_per_place(self, store: Store) -> None:
        """Two points of one order are refused: one of them would be counted twice."""
        store.start_survey(sample_start())
        store.add_point(sample_point("point-1", order=0))
        with pytest.raises(StoreError, match="place 0 of a point in its survey is taken"):
            store.add_point(sample_point("point-2", order=0))
        assert len(store.points("survey-a")) == 1

    def test_a_survey_that_is_done_takes_nothing_more(self, store: Store) -> None:
        """Neither points, nor another end, nor another start."""
        start = sample_start()
        store.start_survey(start)
        store.finish_survey(sample_survey(start))
        with pytest.raises(UpdateFinishedError):
            store.add_point(sample_point("point-1"))
        with pytest.raises(UpdateFinishedError):
            store.finish_survey(sample_survey(start, SurveyStatus.STOPPED))
        with pytest.raises(UpdateFinishedError):
            store.start_survey(start)
        assert store.points("survey-a") == ()
        answer = store.survey("survey-a")
        assert answer is not None
        assert answer.status is SurveyStatus.DONE

    def test_a_stopped_survey_goes_on(self, store: Store) -> None:
        """It takes points and ends again."""
        start = sample_start()
        store.start_survey(start)
        store.finish_survey(sample_survey(start, SurveyStatus.STOPPED))
        store.add_point(sample_point("point-1"))
        store.finish_survey(sample_survey(start))
        assert store.surveys()[0].status is SurveyStatus.DONE

    def test_the_answer_belongs_to_its_start(self, store: Store) -> None:
        """An answer whose start differs from the recorded one would rewrite history."""
        start = sample_start()
        store.start_survey(start)
        other = msgspec.structs.replace(start, seed=start.seed + 1)
        with pytest.raises(UpdateFinishedError, match="never"):
            store.finish_survey(sample_survey(other))

    def test_what_was_never_started_takes_nothing(self, store: Store) -> None:
        """Points and answers without a start could not be explained later."""
        with pytest.raises(StoreError, match="never started"):
            store.add_point(sample_point("point-1", survey_id="nobody"))
        with pytest.raises(StoreError, match="never started"):
            store.finish_survey(sample_survey(sample_start()))

    def test_a_running_answer_is_no_end(self, store: Store) -> None:
        """`finish_survey` records ends."""
        start = sample_start()
        store.start_survey(start)
        with pytest.raises(StoreError, match="still runs"):
            store.finish_survey(sample_survey(start, SurveyStatus.RUNNING))
        assert store.survey("survey-a") is None

    def test_a_lone_measurement(self, store: Store) -> None:
        """`measure` stores points of no survey; several have the same order."""
        for name in ("lone-1", "lone-2"):
            store.add_point(sample_point(name, survey_id=None))
        assert store.measurement("lone-2").survey_id is None
        assert store.surveys() == ()

    def test_references(self, store: Store) -> None:
        """An id, a system (its newest survey), an unambiguous beginning; nothing else."""
        for name, system in (("abcd-1", "disk"), ("abcd-2", "disk"), ("xyzw-1", "tape")):
            store.start_survey(sample_start(name, system))
        assert store.survey_start("abcd-1").survey_id == "abcd-1"
        assert store.survey_start("disk").survey_id == "abcd-2"
        assert store.survey_start("xyzw").survey_id == "xyzw-1"
        with pytest.raises(StoreError, match=r"abcd-1, abcd-2.*type more"):
            store.survey_start("abcd")
        for unknown in ("xyz", "XYZW", "%", "xyz_", ""):
            with pytest.raises(StoreError, match="disk, tape"):
                store.survey_start(unknown)

    def test_points_by_reference(self, store: Store) -> None:
        """A beginning does if only one point has it."""
        for name in ("point-aa", "point-ab"):
            store.add_point(sample_point(name, survey_id=None))
        assert store.measurement("point-ab").point_id == "point-ab"
        with pytest.raises(StoreError, match="type more"):
            store.measurement("point-")
        with pytest.raises(StoreError, match="no point"):
            store.measurement("other")

    def test_summaries(self, store: Store) -> None:
        """The newest first, with points counted and the wall time when there is one."""
        first, second = sample_start("first", "disk"), sample_start("second", "tape")
        store.start_survey(first)
        store.start_survey(second)
        store.add_point(sample_point("point-1", survey_id="first"))
        store.finish_survey(sample_survey(first))
        newest, oldest = store.surveys()
        assert (newest.survey_id, newest.points, newest.wall_s) == ("second", 0, None)
        assert (oldest.system, oldest.points, oldest.wall_s) == ("disk", 1, 12.5)
        assert (newest.status, oldest.status) == (SurveyStatus.RUNNING, SurveyStatus.DONE)

    def test_what_cannot_be_read_again_is_refused(self, store: Store) -> None:
        """Not a number is no measurement, and JSON could not say it."""
        with pytest.raises(StoreError, match="not finite"):
            store.add_point(sample_point("point-1", survey_id=None, mb_s=float("nan")))
        with pytest.raises(StoreError, match="no point"):
            store.measurement("point-1")

    def test_a_validation_comes_back_as_it_was(self, store: Store) -> None:
        """Beside its survey, with points of its own that are none of the survey's."""
        store.start_survey(sample_start())
        store.add_point(sample_point("point-1"))
        store.finish_survey(sample_survey(sample_start()))
        start = sample_validation_start()
        store.start_validation(start)
        point = msgspec.structs.replace(
            sample_point("point-2", survey_id=None), validation_id="validation-a"
        )
        store.add_point(point)
        validation = sample_validation(start)
        store.finish_validation(validation)
        assert store.validation_start("vali") == start
        assert store.validation("validation-a") == validation
        assert store.validation_points("validation-a") == (point,)
        assert [kept.point_id for kept in store.points("survey-a")] == ["point-1"]
        assert store.surveys()[0].points == 1

    def test_a_validation_that_is_done_takes_nothing_more(self, store: Store) -> None:
        """Neither points, nor another end, nor another start; one that is stopped goes on."""
        start = sample_validation_start()
        store.start_survey(sample_start())
        store.start_validation(start)
        store.finish_validation(sample_validation(start, SurveyStatus.STOPPED))
        lone = sample_point("point-1", survey_id=None)
        store.add_point(msgspec.structs.replace(lone, validation_id="validation-a"))
        store.finish_validation(sample_validation(start))
        second = msgspec.structs.replace(lone, validation_id="validation-a", point_id="point-2")
        with pytest.raises(UpdateFinishedError):
            store.add_point(msgspec.structs.replace(second, order=1))
        with pytest.raises(UpdateFinishedError):
            store.finish_validation(sample_validation(start))
        with pytest.raises(UpdateFinishedError):
            store.start_validation(start)
        assert len(store.validation_points("validation-a")) == 1

    def test_what_of_a_validation_could_not_be_explained_is_refused(self, store: Store) -> None:
        """Without its survey or its start, one place twice, another start, no end."""
        start = sample_validation_start()
        with pytest.raises(StoreError, match="survey-a was never started"):
            store.start_validation(start)
        lone = sample_point("point-1", survey_id=None)
        own = msgspec.structs.replace(lone, validation_id="validation-a")
        with pytest.raises(StoreError, match="validation-a was never started"):
            store.add_point(own)
        with pytest.raises(StoreError, match="never started"):
            store.finish_validation(sample_validation(start))
        store.start_survey(sample_start())
        store.start_validation(start)
        store.add_point(own)
        with pytest.raises(StoreError, match="place 0 of a point in its validation is taken"):
            store.add_point(msgspec.structs.replace(own, point_id="point-2"))
        other = msgspec.structs.replace(start, seed=2)
        with pytest.raises(UpdateFinishedError, match="never"):
            store.finish_validation(sample_validation(other))
        with pytest.raises(StoreError, match="still runs"):
            store.finish_validation(sample_validation(start, SurveyStatus.RUNNING))
        with pytest.raises(StoreError, match="leadline validate"):
            store.validation("nobody")

    def test_validations_of_a_survey_are_listed_newest_first(self, store: Store) -> None:
        """Only that survey's, with their points counted."""
        for name in ("survey-a", "survey-b"):
            store.start_survey(sample_start(name))
        for name, survey in (("first", "survey-a"), ("other", "survey-b"), ("last", "survey-a")):
            store.start_validation(sample_validation_start(name, survey))
        lone = sample_point("point-1", survey_id=None)
        store.add_point(msgspec.structs.replace(lone, validation_id="first"))
        found = store.validations("survey-a")
        assert [item.validation_id for item in found] == ["last", "first"]
        assert [item.points for item in found] == [0, 1]
        assert {item.status for item in found} == {SurveyStatus.RUNNING}

    def test_a_cache_study_comes_back_with_its_points_by_id_system_and_beginning(
        self, store: Store
    ) -> None:
        """Points in their order; stopped, and then done."""
        start = sample_cache_start()
        store.start_cache_study(start)
        lone = msgspec.structs.replace(sample_point("point-0", survey_id=None), study_id="study-a")
        second = msgspec.structs.replace(lone, point_id="point-1", order=1)
        store.add_point(second)
        store.add_point(lone)
        assert store.cache_study("study-a") is None
        store.finish_cache_study(sample_cache_study(start, SurveyStatus.STOPPED))
        study = sample_cache_study(start)
        store.finish_cache_study(study)
        assert store.study_points("study-a") == (lone, second)
        for ref in ("study-a", "disk", "stud"):
            assert store.cache_start(ref) == start
            assert store.cache_study(ref) == study

    def test_a_finished_cache_study_never_changes(self, store: Store) -> None:
        """Neither its points, nor its start, nor its answer."""
        start = sample_cache_start()
        store.start_cache_study(start)
        with pytest.raises(UpdateFinishedError, match="study-a was started already"):
            store.start_cache_study(start)
        store.finish_cache_study(sample_cache_study(start))
        own = msgspec.structs.replace(sample_point("point-0", survey_id=None), study_id="study-a")
        with pytest.raises(UpdateFinishedError):
            store.add_point(own)
        with pytest.raises(UpdateFinishedError):
            store.finish_cache_study(sample_cache_study(start))
        assert store.study_points("study-a") == ()

    def test_what_of_a_cache_study_could_not_be_explained_is_refused(self, store: Store) -> None:
        """Points without a start, one place twice, a name nobody has."""
        own = msgspec.structs.replace(sample_point("point-0", survey_id=None), study_id="study-a")
        with pytest.raises(StoreError, match="study-a was never started"):
            store.add_point(own)
        store.start_cache_study(sample_cache_start())
        store.add_point(own)
        with pytest.raises(StoreError, match="place 0 of a point in its study is taken"):
            store.add_point(msgspec.structs.replace(own, point_id="point-1"))
        with pytest.raises(StoreError, match="leadline cache TARGET"):
            store.cache_start("nobody")

    def test_cache_studies_are_listed_newest_first_and_are_no_surveys(self, store: Store) -> None:
        """With their points counted; a survey of the same system is another thing."""
        for name in ("study-a", "study-b"):
            store.start_cache_study(sample_cache_start(name))
        own = msgspec.structs.replace(sample_point("point-0", survey_id=None), study_id="study-a")
        store.add_point(own)
        assert [(s.study_id, s.points) for s in store.cache_studies()] == [
            ("study-b", 0),
            ("study-a", 1),
        ]
        assert store.surveys() == ()
        assert store.cache_start("disk").study_id == "study-b"

    def test_many_threads_at_once(self, store: Store) -> None:
        """No point is lost or doubled."""
        store.start_survey(sample_start())

        def add(order: int) -> None:
            store.add_point(sample_point(f"point-{order}", order=order))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(20)))
        assert [point.order for point in store.points("survey-a")] == list(range(20))

    def test_a_study_of_files_grows_until_it_is_done(self, store: Store, tmp_path: Path) -> None:
        """Each saving is durable; a finished one stays as it is."""
        study = sample_files_study()
        running = msgspec.structs.replace(study, status=SurveyStatus.RUNNING, rows=study.rows[:1])
        store.save_files(running)
        with self.open(tmp_path) as other:
            assert other.files_study(study.start.study_id) == running
        store.save_files(msgspec.structs.replace(running, status=SurveyStatus.STOPPED))
        store.save_files(study)
        assert store.files_study(study.start.study_id) == study
        with pytest.raises(UpdateFinishedError, match="done"):
            store.save_files(study)

    def test_what_a_study_of_files_measured_never_changes(self, store: Store) -> None:
        """Neither its start nor a run that is stored."""
        study = msgspec.structs.replace(sample_files_study(), status=SurveyStatus.RUNNING)
        store.save_files(study)
        other = msgspec.structs.replace(study.start, seed=99)
        with pytest.raises(UpdateFinishedError, match="began otherwise"):
            store.save_files(msgspec.structs.replace(study, start=other))
        with pytest.raises(UpdateFinishedError, match="never changes"):
            store.save_files(msgspec.structs.replace(study, rows=study.rows[1:]))
        assert store.files_study(study.start.study_id) == study

    def test_a_study_of_files_is_found_by_id_system_and_prefix(self, store: Store) -> None:
        """The newest of a system; an ambiguous or unknown reference is an error."""
        first, second = sample_files_study("abcd1"), sample_files_study("abcd2")
        store.save_files(first)
        store.save_files(second)
        assert store.files_study("abcd1") == first
        assert store.files_study(first.start.system) == second
        with pytest.raises(StoreError, match="may be any of abcd1, abcd2"):
            store.files_study("abcd")
        with pytest.raises(StoreError, match="no study of plain files 'zzzz'"):
            store.files_study("zzzz")

    def test_a_stream_study_grows_by_whole_runs_until_it_is_done(
        self, store: Store, tmp_path: Path
    ) -> None:
        """Each saving is durable; what is stored neither changes nor goes."""
        study = sample_stream_study()
        running = msgspec.structs.replace(study, status=SurveyStatus.RUNNING, runs=study.runs[:1])
        store.save_stream(running)
        with self.open(tmp_path) as other:
            assert other.stream_study(study.start.study_id) == running
        changed = msgspec.structs.replace(study.runs[0], disks=2)
        with pytest.raises(UpdateFinishedError, match="never changes"):
            store.save_stream(msgspec.structs.replace(study, runs=(changed, study.runs[1])))
        with pytest.raises(UpdateFinishedError, match="never changes"):
            store.save_stream(msgspec.structs.replace(running, runs=()))
        store.save_stream(study)
        assert store.stream_study("tiny-stream") == study
        with pytest.raises(UpdateFinishedError, match="done"):
            store.save_stream(study)

    def test_studies_of_files_and_streams_are_listed_apart(self, store: Store) -> None:
        """The newest first; an id of one kind is none of the other."""
        for name in ("stream-a", "stream-b"):
            store.save_stream(sample_stream_study(name))
        store.save_files(sample_files_study())
        assert [item.study_id for item in store.stream_studies()] == ["stream-b", "stream-a"]
        assert [(item.study_id, item.system, item.status) for item in store.files_studies()] == [
            ("files-a", "tiny-files", SurveyStatus.DONE)
        ]
        assert store.surveys() == ()
        with pytest.raises(StoreError, match="no stream study 'files-a'"):
            store.stream_study("files-a")

    def test_an_experiment_grows_by_whole_trials(self, store: Store, tmp_path: Path) -> None:
        """Each is there for others when `add_trial` returned; the document is made of them."""
        start = sample_experiment_start()
        store.start_experiment(start)
        assert store.experiment("experiment-a") == Experiment(
            start=start, status=SurveyStatus.RUNNING
        )
        large, small = start.samples[1], start.samples[0]
        prior = Prior(rate_per_s=80.0, sd_log=0.2)
        store.begin_sample("experiment-a", large)
        store.add_trial("experiment-a", large, sample_trial(0))
        store.begin_sample("experiment-a", small, prior)
        store.add_trial("experiment-a", small, sample_trial(0, 50.0))
        store.add_trial("experiment-a", large, sample_trial(1, 120.0))
        store.end_sample("experiment-a", large, sample_peak(2))
        with self.open(tmp_path) as other:
            assert other.experiment("experiment-a").peaks == (
                SamplePeak(
                    sample=large,
                    trials=(sample_trial(0), sample_trial(1, 120.0)),
                    peak=sample_peak(2),
                ),
                SamplePeak(sample=small, trials=(sample_trial(0, 50.0),), peak=None, prior=prior),
            )

    def test_trials_come_in_their_order(self, store: Store) -> None:
        """Whatever the order in which they were added."""
        start = sample_experiment_start()
        store.start_experiment(start)
        store.begin_sample("experiment-a", start.samples[0])
        for order in (2, 0, 1):
            store.add_trial("experiment-a", start.samples[0], sample_trial(order))
        kept = store.experiment("experiment-a").peaks[0].trials
        assert [trial.order for trial in kept] == [0, 1, 2]

    def test_a_finished_trial_never_changes(self, store: Store) -> None:
        """Neither a second one in its place, nor one more after the peak."""
        start = sample_experiment_start()
        sample = start.samples[0]
        store.start_experiment(start)
        store.begin_sample("experiment-a", sample)
        store.add_trial("experiment-a", sample, sample_trial(0))
        with pytest.raises(StoreError, match="trial 0 of the sample workers=1 is stored already"):
            store.add_trial("experiment-a", sample, sample_trial(0, 300.0))
        store.end_sample("experiment-a", sample, sample_peak())
        with pytest.raises(UpdateFinishedError, match="workers=1 has its peak"):
            store.add_trial("experiment-a", sample, sample_trial(1))
        with pytest.raises(UpdateFinishedError, match="has its peak"):
            store.end_sample("experiment-a", sample, sample_peak(2))
        kept = store.experiment("experiment-a").peaks
        assert kept == (SamplePeak(sample=sample, trials=(sample_trial(0),), peak=sample_peak()),)

    def test_an_experiment_that_is_done_takes_nothing_more(self, store: Store) -> None:
        """Neither samples, nor trials, nor peaks, nor another end, nor another start."""
        start = sample_experiment_start()
        first, second = start.samples
        store.start_experiment(start)
        store.begin_sample("experiment-a", first)
        done = Experiment(
            start=start, status=SurveyStatus.DONE, sentences=("Done.",), wall_s=2.5,
            peaks=(SamplePeak(sample=first, trials=(), peak=None),),
        )  # fmt: skip
        store.finish_experiment(done)
        with pytest.raises(UpdateFinishedError, match="experiment-a is done"):
            store.begin_sample("experiment-a", second)
        with pytest.raises(UpdateFinishedError):
            store.add_trial("experiment-a", first, sample_trial(0))
        with pytest.raises(UpdateFinishedError):
            store.end_sample("experiment-a", first, sample_peak())
        with pytest.raises(UpdateFinishedError):
            store.finish_experiment(done)
        with pytest.raises(UpdateFinishedError, match="started already"):
            store.start_experiment(start)
        assert store.experiment("experiment-a") == done

    def test_a_stopped_experiment_goes_on(self, store: Store) -> None:
        """From its next change it runs, without the answer of its stop; and it ends again."""
        start = sample_experiment_start()
        store.start_experiment(start)
        stopped = Experiment(start=start, status=SurveyStatus.STOPPED, sentences=("Stopped.",))
        store.finish_experiment(stopped)
        assert store.experiment("experiment-a") == stopped
        store.begin_sample("experiment-a", start.samples[0])
        assert store.experiment("experiment-a").status is SurveyStatus.RUNNING
        assert store.experiment("experiment-a").sentences == ()
        peaks = (SamplePeak(sample=start.samples[0], trials=(), peak=None),)
        store.finish_experiment(Experiment(start=start, status=SurveyStatus.DONE, peaks=peaks))
        assert store.experiments()[0].status is SurveyStatus.DONE

    def test_what_of_an_experiment_could_not_be_explained_is_refused(self, store: Store) -> None:
        """Without a start or a beginning, a sample twice, other trials, another start, no end."""
        start = sample_experiment_start()
        sample = start.samples[0]
        with pytest.raises(StoreError, match="experiment-a was never started"):
            store.begin_sample("experiment-a", sample)
        store.start_experiment(start)
        with pytest.raises(StoreError, match="workers=1 was never begun"):
            store.add_trial("experiment-a", sample, sample_trial())
        with pytest.raises(StoreError, match="has no sample workers=3"):
            store.begin_sample("experiment-a", {"workers": 3})
        store.begin_sample("experiment-a", sample)
        with pytest.raises(StoreError, match="begun already"):
            store.begin_sample("experiment-a", sample)
        with pytest.raises(StoreError, match="still runs"):
            store.finish_experiment(Experiment(start=start, status=SurveyStatus.RUNNING))
        with pytest.raises(UpdateFinishedError, match="other trials"):
            store.finish_experiment(Experiment(start=start, status=SurveyStatus.DONE))
        other = msgspec.structs.replace(start, seed=2)
        with pytest.raises(UpdateFinishedError, match="began otherwise"):
            store.finish_experiment(Experiment(start=other, status=SurveyStatus.DONE))

    def test_experiments_are_found_by_id_name_and_beginning(self, store: Store) -> None:
        """A name means its newest; they are listed newest first, with their trials counted."""
        for name in ("abcd-1", "abcd-2"):
            store.start_experiment(sample_experiment_start(name))
        store.begin_sample("abcd-1", {"workers": 1})
        store.add_trial("abcd-1", {"workers": 1}, sample_trial())
        assert store.experiment("abcd-1").start.experiment_id == "abcd-1"
        assert store.experiment("tiny-server").start.experiment_id == "abcd-2"
        with pytest.raises(StoreError, match="may be any of abcd-1, abcd-2"):
            store.experiment("abcd")
        with pytest.raises(StoreError, match=r"no experiment 'zzzz'.*leadline peak"):
            store.experiment("zzzz")
        assert [(item.experiment_id, item.trials) for item in store.experiments()] == [
            ("abcd-2", 0), ("abcd-1", 1),
        ]  # fmt: skip
        assert store.surveys() == ()
