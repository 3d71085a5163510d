//! Several streams of requests that share one data set: what a program does, and five parameters
//! cannot say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, require, within};
use crate::job::workload::Workload;
use crate::ranges::{self, SMALLEST_TRANSFER_BYTES};
use crate::schema::{bounded, counted};

/// Requests that are alike. Which stream the next request is of is drawn by the streams' weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamAsked {
    /// Its share of the requests is this over the sum of all.
    #[schemars(transform = bounded(ranges::STREAM_WEIGHT))]
    pub weight: f64,
    /// Probability that a request of it is a read.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub read_frac: f64,
    /// Where its data begin in the workload's.
    #[schemars(transform = bounded(ranges::STREAM_FROM_BYTES))]
    pub from_bytes: u64,
    /// How long they are; streams may share them.
    #[schemars(transform = bounded(ranges::WORKLOAD_BYTES))]
    pub unique_bytes: u64,
    /// How long its requests are.
    #[schemars(transform = counted(ranges::STREAM_SIZES))]
    pub sizes: Vec<SizeShare>,
    /// Where they go.
    pub places: Places,
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// A multiple of 512.
    #[schemars(transform = bounded(ranges::WORKLOAD_BYTES))]
    pub bytes: u64,
    /// Their share of the stream's requests is this over the sum of all.
    #[schemars(transform = bounded(ranges::STREAM_WEIGHT))]
    pub weight: f64,
}

/// Where a stream's requests go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Places {
    /// Anywhere in its data, each place as likely as any other.
    Uniform {
        /// Probability that a request starts where the worker's last of this stream ended.
        #[schemars(transform = bounded(ranges::SHARE))]
        seq_frac: f64,
    },
    /// Round and round; each worker has a part of the data.
    Loop {
        /// In an order that is the same each time and has no neighbours.
        scattered: bool,
        /// In pieces of its data, each from its beginning to its end, and read ahead, as files
        /// are; they lie one behind the other. Not with `scattered`.
        #[serde(default)]
        pieces: Option<Pieces>,
    },
    /// Through the data once; the result says whether it began again.
    Once {
        /// As a loop's.
        scattered: bool,
        /// As a loop's.
        #[serde(default)]
        pieces: Option<Pieces>,
    },
    /// Anywhere in a window, which goes on through the data.
    Moving {
        /// How long the window is.
        #[schemars(transform = bounded(ranges::WORKLOAD_BYTES))]
        window_bytes: u64,
        /// By what share of each request's length it goes on.
        #[schemars(transform = bounded(ranges::SHARE))]
        fresh_frac: f64,
    },
}

impl Places {
    /// The parts that its data are gone through in, if any.
    #[must_use]
    pub fn pieces(&self) -> Option<Pieces> {
        match self {
            Self::Loop { pieces, .. } | Self::Once { pieces, .. } => *pieces,
            Self::Uniform { .. } | Self::Moving { .. } => None,
        }
    }
}

/// Parts of a stream's data that are gone through one by one, or several by turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pieces {
    /// How long they are in the mean, of whole requests; one no longer than a request has that
    /// one.
    #[schemars(transform = bounded(ranges::WORKLOAD_BYTES))]
    pub bytes: u64,
    /// How many a worker is in at a time; which of them goes on is drawn anew each time.
    #[schemars(transform = bounded(ranges::PIECES))]
    pub at_once: u32,
}

/// Checks the ranges of all streams, and that they fit the workload's data.
pub(crate) fn validate(streams: &[StreamAsked], workload: &Workload) -> Result<(), Wrong> {
    let most = *ranges::STREAMS.end();
    let wanted = format!("at most {most}");
    require(streams.len() <= most, "streams", streams.len(), &wanted, "join those alike")?;
    streams.iter().enumerate().try_for_each(|(at, stream)| stream.validate(at, workload))
}

impl StreamAsked {
    fn validate(&self, at: usize, workload: &Workload) -> Result<(), Wrong> {
        let named = |field: &str| format!("streams[{at}].{field}");
        let share = "a share of the requests, of any scale";
        within(&named("weight"), self.weight, &ranges::STREAM_WEIGHT, share)?;
        within(&named("read_frac"), self.read_frac, &ranges::SHARE, "1 for reads only")?;
        let bytes = "bytes, as a whole number";
        within(&named("from_bytes"), self.from_bytes, &ranges::STREAM_FROM_BYTES, bytes)?;
        within(&named("unique_bytes"), self.unique_bytes, &ranges::WORKLOAD_BYTES, bytes)?;
        let end = self.from_bytes + self.unique_bytes;
        require(
            end <= workload.unique_bytes,
            &named("unique_bytes"),
            self.unique_bytes,
            &format!("at most {} less from_bytes", workload.unique_bytes),
            "every stream lies within workload.unique_bytes",
        )?;
        check_sizes(&self.sizes, "sizes", self.unique_bytes, &named)?;
        self.check_places(&named)
    }

    fn check_places(&self, named: &dyn Fn(&str) -> String) -> Result<(), Wrong> {
        match self.places {
            Places::Uniform { seq_frac } => {
                let write = "0 for random places only";
                within(&named("places.seq_frac"), seq_frac, &ranges::SHARE, write)
            }
            Places::Loop { pieces: None, .. } | Places::Once { pieces: None, .. } => Ok(()),
            Places::Loop { scattered, pieces: Some(pieces) }
            | Places::Once { scattered, pieces: Some(pieces) } => {
                require(
                    !scattered,
                    &named("places.pieces"),
                    "given",
                    "absent where requests are scattered",
                    "a piece is gone through in order",
                )?;
                let (length, turns) =
                    (named("places.pieces.bytes"), named("places.pieces.at_once"));
                let bytes = "bytes, as a whole number";
                within(&length, pieces.bytes, &ranges::WORKLOAD_BYTES, bytes)?;
                within(&turns, pieces.at_once, &ranges::PIECES, "1 for one after the other")
            }
            Places::Moving { window_bytes, fresh_frac } => {
                let (window, fresh) = (named("places.window_bytes"), named("places.fresh_frac"));
                within(&fresh, fresh_frac, &ranges::SHARE, "0 for a window that stands")?;
                let bytes = "bytes, as a whole number";
                within(&window, window_bytes, &ranges::WORKLOAD_BYTES, bytes)?;
                let longest = self.sizes.iter().map(|size| size.bytes).max().unwrap_or(0);
                require(
                    (longest..=self.unique_bytes).contains(&window_bytes),
                    &window,
                    window_bytes,
                    "at least the longest request, at most the stream's unique_bytes",
                    "a request lies within the window, and the window within the data",
                )
            }
        }
    }
}

/// Checks a histogram of sizes, the field `list` of what `named` names, of requests to so many bytes.
pub(crate) fn check_sizes(
    sizes: &[SizeShare],
    list: &str,
    unique_bytes: u64,
    named: &dyn Fn(&str) -> String,
) -> Result<(), Wrong> {
    let (low, high) = (ranges::STREAM_SIZES.start(), ranges::STREAM_SIZES.end());
    require(
        ranges::STREAM_SIZES.contains(&sizes.len()),
        &named(list),
        sizes.len(),
        &format!("{low} to {high} long"),
        "join sizes that are alike",
    )?;
    for (at, size) in sizes.iter().enumerate() {
        let field = named(&format!("{list}[{at}].bytes"));
        within(&field, size.bytes, &ranges::WORKLOAD_BYTES, "bytes, as a whole number")?;
        let weight = named(&format!("{list}[{at}].weight"));
        within(&weight, size.weight, &ranges::STREAM_WEIGHT, "a share, of any scale")?;
        require(
            size.bytes.is_multiple_of(SMALLEST_TRANSFER_BYTES) && size.bytes <= unique_bytes,
            &field,
            size.bytes,
            "a multiple of 512, no longer than its unique_bytes",
            &format!("write {}", size.bytes.next_multiple_of(SMALLEST_TRANSFER_BYTES)),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::job::Job;

    /// The example with three streams, its first one changed.
    fn refused(field: &str, value: serde_json::Value) -> String {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../protocol/examples/valid/directory-streams.json"
        );
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut job: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        job["streams"][0][field] = value;
        Job::read(&job.to_string()).err().map_or(String::new(), |refused| refused.message)
    }

    #[test]
    fn what_no_range_says_is_refused_by_its_field() {
        let beyond = refused("from_bytes", serde_json::json!(768 << 20));
        assert!(beyond.starts_with("streams[0].unique_bytes is 536870912; it must be at most"));
        let odd = refused("sizes", serde_json::json!([{"bytes": 1000, "weight": 1.0}]));
        assert!(odd.contains("streams[0].sizes[0].bytes is 1000"), "{odd}");
        assert!(odd.contains("write 1024"), "{odd}");
        let long = refused("sizes", serde_json::json!([{"bytes": 1 << 30, "weight": 1.0}]));
        assert!(long.contains("no longer than its unique_bytes"), "{long}");
        for window_bytes in [512, 1 << 30] {
            let places = serde_json::json!({
                "kind": "moving", "window_bytes": window_bytes, "fresh_frac": 0.5,
            });
            let wide = refused("places", places);
            assert!(wide.contains("streams[0].places.window_bytes is"), "{wide}");
        }
        assert_eq!(refused("read_frac", serde_json::json!(0.5)), "");
        let pieces = serde_json::json!({
            "kind": "loop", "scattered": true, "pieces": {"bytes": 65536, "at_once": 2},
        });
        let both = refused("places", pieces);
        assert!(both.contains("places.pieces is given; it must be absent"), "{both}");
    }

    #[test]
    fn more_streams_than_may_be_are_refused() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../protocol/examples/valid/directory-moving-stream.json"
        );
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut job: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        job["streams"] = serde_json::json!(vec![job["streams"][0].clone(); 65]);
        let refused = Job::read(&job.to_string()).err().map(|refused| refused.message);
        let said = refused.unwrap_or_default();
        assert!(said.starts_with("streams is 65; it must be at most 64"), "{said}");
    }
}
