use super::*;
use crate::model::ln_time;
use Shape::{Smeared, Step, Uniform};

const TRUTH: [f64; 6] = [-4.0, 0.02, 0.03, -1.0, 17.0, -1.2];

/// Twelve readings of `theta` without noise.
fn curve(shapes: &[Shape], theta: &[f64]) -> Readings {
    let x: Vec<f64> = (0..12).map(|at| 13.8 + 0.63 * f64::from(at)).collect();
    Readings {
        y: ln_time(&x, 17.265, shapes.len(), shapes, theta).unwrap_or_default().0,
        weight: (0..12).map(|at| 0.5 + f64::from(at) / 11.0).collect(),
        slope_penalty: [0.0, 0.0],
        huber_scale: f64::INFINITY,
        centre_low: 14.3,
        centre_high: 20.2,
        middle: 17.265,
        x,
    }
}

fn refined(data: &Readings, shapes: &[Shape], theta: &[f64], iterations: usize) -> Fits {
    let mut fits = Fits { shapes: shapes.to_vec(), theta: theta.to_vec(), cost: vec![] };
    let count = theta.len() / 3 - shapes.len();
    assert_eq!(refine(data, shapes.len() / count, &mut fits, iterations), Ok(()));
    fits
}

fn assert_near(found: &[f64], wanted: &[f64], by: f64) {
    assert_eq!(found.len(), wanted.len());
    let near = |(found, wanted): (&f64, &f64)| (found - wanted).abs() <= by;
    assert!(found.iter().zip(wanted).all(near), "{found:?} {wanted:?}");
}

#[test]
fn readings_without_noise_give_back_what_made_them() {
    for shapes in [[Uniform], [Smeared]] {
        let begin = [-3.7, 0.0, 0.0, -1.3, 17.3, -1.0];
        let found = refined(&curve(&shapes, &TRUTH), &shapes, &begin, 40);
        let known = if shapes == [Uniform] { 5 } else { 6 };
        assert_near(&found.theta[..known], &TRUTH[..known], 1e-6);
        assert!(found.cost[0] < 1e-12, "{:?}", found.cost);
    }
}

#[test]
fn a_step_stays_where_it_is_and_its_height_is_found() {
    let begin = [-3.7, 0.0, 0.0, -1.3, 17.1, -1.0];
    let found = refined(&curve(&[Step], &TRUTH), &[Step], &begin, 40);
    assert_near(&found.theta, &[-4.0, 0.02, 0.03, -1.0, 17.1, -1.0], 1e-6);
}

#[test]
fn two_levels_are_found_and_each_fit_by_its_own_times() {
    let shapes = [Uniform, Smeared];
    let truth = [-4.0, 0.02, 0.03, -2.0, 0.0, 15.5, 18.5, -1.2, -1.2];
    let other = [-3.0, 0.02, 0.03, -1.0, 1.0, 15.7, 18.2, -1.2, -1.0];
    let mut data = curve(&shapes, &truth);
    data.y.extend(curve(&shapes, &other).y);
    let mut fits = Fits { shapes: shapes.repeat(2), theta: [truth, truth].concat(), cost: vec![] };
    assert_eq!(refine(&data, 2, &mut fits, 60), Ok(()));
    let moving = [(0..7), (8..9), (9..16), (17..18)].into_iter().flatten();
    let both = [truth, other].concat();
    for at in moving {
        assert!((fits.theta[at] - both[at]).abs() < 1e-5, "{at}: {:?}", fits.theta);
    }
}

#[test]
fn a_wild_reading_pulls_no_harder_than_the_scale_lets_it() {
    let mut data = curve(&[Smeared], &TRUTH);
    data.y[6] += 1.0;
    let off = |scale: f64| {
        let data = Readings { huber_scale: scale, ..data.clone() };
        let found = refined(&data, &[Smeared], &TRUTH, 60);
        (found.theta[4] - TRUTH[4]).abs()
    };
    let (robust, plain) = (off(0.01), off(f64::INFINITY));
    assert!(robust < 0.02 && plain > 0.1, "{robust} {plain}");
}

#[test]
fn slopes_are_held_down_by_their_penalties() {
    let free = curve(&[Smeared], &TRUTH);
    let held = Readings { slope_penalty: [1e6, 1e6], ..free.clone() };
    let found = refined(&held, &[Smeared], &TRUTH, 60);
    assert_near(&found.theta[1..3], &[0.0, 0.0], 1e-5);
    let of_one = Readings { slope_penalty: [0.0, 1e6], ..free };
    let found = refined(&of_one, &[Smeared], &TRUTH, 60).theta;
    assert!(found[1].abs() > 0.01 && found[2].abs() < 1e-5, "{found:?}");
}

#[test]
fn parameters_stay_where_a_hierarchy_can_be() {
    let mut data = curve(&[Smeared], &TRUTH);
    data.y = (0..12).map(|at| -4.0 + f64::from(at) * 3.0 / 11.0).collect();
    let wild = [[-9.0, 3.0, -3.0, 40.0, 99.0, 5.0], [9.0, -3.0, 3.0, -40.0, 0.0, -9.0]];
    let found = refined(&data, &[Smeared; 2], &wild.concat(), 0);
    let low = [-7.0, 0.5, -0.5, 5.0, 20.2, 0.5f64.ln()];
    let high = [2.0, -0.5, 0.5, -4.0, 14.3, 0.02f64.ln()];
    assert_near(&found.theta, &[low, high].concat(), 1e-12);
}

#[test]
fn steps_stay_within_the_bounds() {
    let data = Readings { centre_high: 16.0, ..curve(&[Smeared], &TRUTH) };
    let found = refined(&data, &[Smeared], &[-4.0, 0.0, 0.0, -1.0, 15.5, -1.0], 40);
    assert_near(&found.theta[4..5], &[16.0], 1e-12);
}

#[test]
fn no_parameter_takes_a_longer_step_than_one() {
    let begin = [-1.5, 0.0, 0.0, -1.0, 17.0, -1.2];
    let found = refined(&curve(&[Smeared], &TRUTH), &[Smeared], &begin, 1).theta;
    assert_near(&found[..1], &[-2.5], 1e-12);
}

#[test]
fn no_iteration_makes_a_fit_worse_and_the_cost_is_that_of_the_end() {
    let data =
        Readings { huber_scale: 0.1, slope_penalty: [1.0, 4.0], ..curve(&[Smeared], &TRUTH) };
    let begin = [-1.0, 0.0, 0.0, 1.0, 14.5, -3.0];
    let mut before = f64::INFINITY;
    for iterations in 0..20 {
        let found = refined(&data, &[Smeared], &begin, iterations);
        assert!(found.cost[0] <= before);
        before = found.cost[0];
        let again = refined(&data, &[Smeared], &found.theta, 0);
        assert_near(&found.cost, &again.cost, 1e-15);
    }
}

#[test]
fn an_end_before_the_last_iteration_changes_nothing_that_matters() {
    let data = noisy();
    let few = refined(&data, &[Smeared], &TRUTH, 40);
    let many = refined(&data, &[Smeared], &few.theta, 400);
    assert_near(&few.theta, &many.theta, 1e-6);
}

/// Readings of a smeared boundary with noise and a wild one among them.
fn noisy() -> Readings {
    let data = curve(&[Smeared], &TRUTH);
    let noise = |at: i32| 0.05 * f64::from(at * 7919 % 13 - 6) / 6.0;
    let mut y: Vec<f64> = data.y.iter().zip(1..).map(|(y, at)| y + noise(at)).collect();
    y[2] += 0.5;
    Readings { y, huber_scale: 0.05, slope_penalty: [0.1, 0.1], ..data }
}

#[test]
fn a_fit_ends_where_every_neighbour_costs_more() {
    let found = refined(&noisy(), &[Smeared], &TRUTH, 400);
    for at in 0..6 {
        for by in [-1e-4, 1e-4] {
            let mut beside = found.theta.clone();
            beside[at] += by;
            let cost = refined(&noisy(), &[Smeared], &beside, 0).cost[0];
            assert!(cost > found.cost[0], "{at} {by}: {cost} {:?}", found.cost);
        }
    }
}

#[test]
fn near_its_end_a_fit_gets_there_in_few_steps() {
    let begin = [-3.7, 0.0, 0.0, -1.3, 17.3, -1.0];
    let found = refined(&curve(&[Smeared], &TRUTH), &[Smeared], &begin, 8);
    assert!(found.cost[0] < 1e-16, "{:?}", found.cost);
}

#[test]
fn where_full_steps_would_miss_shorter_ones_find_the_way() {
    for (off, steeper) in [(-2.0, 2.0), (1.5, 2.0), (1.5, -3.0)] {
        let begin = [-4.0, 0.02, 0.03, -1.0 + steeper, 17.0 + off, -2.3];
        let found = refined(&curve(&[Smeared], &TRUTH), &[Smeared], &begin, 14);
        assert!(found.cost[0] < 1e-6, "{off} {steeper}: {:?}", found.cost);
    }
}

#[test]
fn three_levels_are_refined_and_four_are_not() {
    let truth = [-4.0, 0.0, 0.0, -2.5, -1.0, 0.5, 15.0, 17.0, 19.0, -1.2, -1.2, -1.2];
    let shapes = [Step, Uniform, Step];
    let mut begin = truth;
    begin[5] = 0.3;
    let found = refined(&curve(&shapes, &truth), &shapes, &begin, 60);
    assert_near(&found.theta, &truth, 1e-5);
    let mut four = Fits { shapes: vec![Step; 4], theta: vec![0.0; 15], cost: vec![] };
    assert!(refine(&noisy(), 4, &mut four, 1).is_err());
}

#[test]
fn a_fit_has_settled_when_neither_its_place_nor_its_cost_moves() {
    assert!(has_settled(0.9e-7, 2.0, 2.0 - 1.8e-10));
    assert!(has_settled(0.9e-7, 2.0, 5.0), "a step that was not better");
    assert!(!has_settled(0.9e-7, 2.0, 2.0 - 2.2e-10));
    assert!(!has_settled(1e-7, 2.0, 2.0));
    assert!(!has_settled(0.0, 0.0, 0.0), "nothing is less than none of it");
    assert_eq!(furthest(&[1.0, 5.0, -2.0], &[1.5, 5.0, -4.0]), 2.0);
}
