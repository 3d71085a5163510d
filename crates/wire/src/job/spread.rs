//! Which places are asked for more often than others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, require, within};
use crate::ranges;
use crate::schema::{bounded, counted};

/// Shares that add up to 1 but for this are taken as whole.
const SUM_MARGIN: f64 = 1e-6;

/// Where the requests go that do not go on from the last one. The engine's `access/spread.rs` says
/// where each block and zone lies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Spread {
    /// Each place is as likely as any other.
    Uniform {},
    /// The block of rank `r` is asked for in proportion to `1 / r^theta`.
    Zipf {
        /// 0: all alike. Above: the more, the fewer blocks have most of the requests.
        #[schemars(transform = bounded(ranges::SKEW))]
        theta: f64,
    },
    /// Zones one after the other, hot and cold; within one each place is as likely as any other.
    Zoned {
        /// Both shares add up to 1 over all of them.
        #[schemars(transform = counted(ranges::ZONES))]
        zones: Vec<Zone>,
    },
}

/// A part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Its share of the requests.
    #[schemars(transform = bounded(ranges::ZONE_SHARE))]
    pub access_frac: f64,
    /// Its share of the data.
    #[schemars(transform = bounded(ranges::ZONE_SHARE))]
    pub size_frac: f64,
}

impl Default for Spread {
    fn default() -> Self {
        Self::Uniform {}
    }
}

impl Spread {
    /// Whether some places are more likely than others.
    #[must_use]
    pub fn is_skewed(&self) -> bool {
        *self != Self::Uniform {}
    }

    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        match self {
            Self::Uniform {} => Ok(()),
            Self::Zipf { theta } => {
                within("workload.access.theta", *theta, &ranges::SKEW, "0 for all alike")
            }
            Self::Zoned { zones } => check_zones(zones),
        }
    }
}

fn check_zones(zones: &[Zone]) -> Result<(), Wrong> {
    let (low, high) = (ranges::ZONES.start(), ranges::ZONES.end());
    require(
        ranges::ZONES.contains(&zones.len()),
        "workload.access.zones",
        zones.len(),
        &format!("{low} to {high} long"),
        "join zones that are alike",
    )?;
    let share = "a share, 0.1 for a tenth";
    for (at, zone) in zones.iter().enumerate() {
        let named = |field: &str| format!("workload.access.zones[{at}].{field}");
        within(&named("access_frac"), zone.access_frac, &ranges::ZONE_SHARE, share)?;
        within(&named("size_frac"), zone.size_frac, &ranges::ZONE_SHARE, share)?;
    }
    let sums: [(&str, f64); 2] = [
        ("requests", zones.iter().map(|zone| zone.access_frac).sum()),
        ("data", zones.iter().map(|zone| zone.size_frac).sum()),
    ];
    sums.iter().try_for_each(|(of, sum)| {
        require(
            (sum - 1.0).abs() <= SUM_MARGIN,
            "workload.access.zones",
            format!("{sum} of the {of} together"),
            "1",
            "every request and every byte is of one zone",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::job::Job;

    /// The example with zones and a histogram, one field of its workload changed.
    fn refused(field: &str, value: serde_json::Value) -> String {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../protocol/examples/valid/directory-zones.json"
        );
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut job: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        job["workload"][field] = value;
        Job::read(&job.to_string()).err().map_or(String::new(), |refused| refused.message)
    }

    #[test]
    fn zones_are_all_of_the_requests_and_all_of_the_data() {
        let zones = |access: [f64; 2], size: [f64; 2]| {
            json!({"kind": "zoned", "zones": [
                {"access_frac": access[0], "size_frac": size[0]},
                {"access_frac": access[1], "size_frac": size[1]},
            ]})
        };
        assert_eq!(refused("access", zones([0.75, 0.25], [0.5, 0.5])), "");
        let requests = refused("access", zones([0.75, 0.5], [0.5, 0.5]));
        assert!(requests.contains("zones is 1.25 of the requests together; it must be 1"));
        let data = refused("access", zones([0.75, 0.25], [0.5, 0.25]));
        assert!(data.contains("zones is 0.75 of the data together; it must be 1"), "{data}");
    }

    #[test]
    fn a_histogram_has_the_mean_that_is_told_and_sizes_that_can_be() {
        let mean = refused("size_mean", json!(8192));
        assert!(mean.contains("the mean of its histogram (write 28672)"), "{mean}");
        let sizes = |bytes: u64| json!({"histogram": [{"bytes": bytes, "weight": 1.0}]});
        let odd = refused("size_dist", sizes(1000));
        assert!(odd.contains("workload.size_dist.histogram[0].bytes is 1000"), "{odd}");
        let long = refused("size_dist", sizes(1 << 40));
        assert!(long.contains("no longer than its unique_bytes"), "{long}");
    }

    #[test]
    fn streams_say_themselves_where_their_requests_go() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../protocol/examples/valid/directory-streams.json"
        );
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut job: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        job["workload"]["access"] = json!({"kind": "zipf", "theta": 1.1});
        let refused = Job::read(&job.to_string()).err().map(|refused| refused.message);
        let said = refused.unwrap_or_default();
        assert!(said.starts_with("workload.access is skewed; it must be uniform"), "{said}");
    }
}
