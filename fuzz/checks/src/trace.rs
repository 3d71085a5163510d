//! Any bytes as a trace: it is refused, or its parts add up to the whole and its misses fall.

use leadline_trace::Trace;

/// Sizes of caches that are asked for, in pages.
const CACHES: [u64; 4] = [1, 16, 4096, 1 << 30];

/// Tries these bytes.
pub fn trace(bytes: &[u8]) {
    let Ok(trace) = Trace::read(bytes, &mut |_| Ok(())) else { return };
    let slices = trace.about().slices;
    assert_eq!(trace.features().len(), slices);
    let whole = trace.part(0, slices);
    let middle = slices / 2;
    if middle > 0 {
        let (left, right) = (trace.part(0, middle), trace.part(middle, slices));
        assert_eq!(left.requests + right.requests, whole.requests);
    }
    let misses = trace.misses(&CACHES);
    let falling = |pair: &[f64]| pair[0] + 1e-9 >= pair[1];
    let of_lru: Vec<f64> = misses.points.iter().map(|point| point.lru).collect();
    assert!(of_lru.windows(2).all(falling), "{of_lru:?}");
}
