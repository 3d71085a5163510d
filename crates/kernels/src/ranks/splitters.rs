//! Which rank owns which keys: boundaries drawn from a sample of the input (NOW-Sort's splitters).
//!
//! Equal keys are told apart by where their records lie in the input, so that a key which many
//! records share is spread over several ranks like any other range.

use leadline_base::error::EngineError;

use crate::records::KEY_BYTES;

/// Bytes of an [`Order`] on its way to other ranks.
const ORDER_BYTES: usize = size_of::<Order>();
const NUMBER_BITS: u32 = 48;

/// A record's key above its number in the input: no two records are equal.
pub type Order = u128;

/// The order of a record, which begins with its key and is the input's `number`th.
#[must_use]
pub fn order_of(record: &[u8], number: u64) -> Order {
    let mut bytes = [0; ORDER_BYTES];
    bytes[..KEY_BYTES].copy_from_slice(&record[..KEY_BYTES]);
    Order::from_be_bytes(bytes) | Order::from(number & ((1 << NUMBER_BITS) - 1))
}

/// A sample as bytes for other ranks.
#[must_use]
pub fn bytes_of(sample: &[Order]) -> Vec<u8> {
    sample.iter().flat_map(|order| order.to_le_bytes()).collect()
}

/// The first order of every rank but the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splitters(Vec<Order>);

impl Splitters {
    /// Cuts the samples of all ranks, which every rank has in the same order, into equal shares.
    ///
    /// # Errors
    /// A sample that is no whole number of orders.
    pub fn choose(samples: &[Vec<u8>], ranks: usize) -> Result<Self, EngineError> {
        if samples.iter().any(|sample| sample.len() % ORDER_BYTES != 0) {
            return Err(EngineError::fault("a rank's sample is not whole"));
        }
        let mut orders: Vec<Order> = samples
            .iter()
            .flat_map(|sample| sample.as_chunks().0)
            .map(|bytes| Order::from_le_bytes(*bytes))
            .collect();
        orders.sort_unstable();
        let at = |rank| orders.get(rank * orders.len() / ranks).copied().unwrap_or(Order::MAX);
        Ok(Self((1..ranks).map(at).collect()))
    }

    /// The rank that owns a record of this order.
    #[must_use]
    pub fn owner(&self, order: Order) -> usize {
        self.0.partition_point(|first| *first <= order)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::records::RECORD_BYTES;

    fn record(key: u64) -> [u8; RECORD_BYTES] {
        let mut record = [7; RECORD_BYTES];
        record[..8].copy_from_slice(&key.to_be_bytes());
        record
    }

    fn shares(keys: &[u64], ranks: usize) -> Vec<usize> {
        let order = |(number, key): (usize, &u64)| order_of(&record(*key), number as u64);
        let orders: Vec<_> = keys.iter().enumerate().map(order).collect();
        let (first, second) = orders.split_at(orders.len() / 3);
        let samples = [first, second]
            .map(|part| bytes_of(&part.iter().copied().step_by(7).collect::<Vec<_>>()));
        let splitters = Splitters::choose(&samples, ranks).unwrap();
        let mut shares = vec![0; ranks];
        for order in orders {
            shares[splitters.owner(order)] += 1;
        }
        shares
    }

    #[test]
    fn keys_come_before_numbers() {
        assert!(order_of(&record(1), 9) < order_of(&record(2), 3));
        assert!(order_of(&record(1), 3) < order_of(&record(1), 9));
        let mut low = record(1);
        low[9] = 6;
        assert!(order_of(&low, 9) < order_of(&record(1), 3));
    }

    #[test]
    fn one_key_for_most_records_is_spread_over_the_ranks() {
        let keys: Vec<u64> = (0..40_000).map(|i| if i % 10 < 9 { 5 } else { i }).collect();
        for share in shares(&keys, 4) {
            assert!((9_000..11_000).contains(&share), "{share}");
        }
    }

    #[test]
    fn every_rank_owns_keys_not_below_the_one_before() {
        let keys: Vec<u64> =
            (0..1000).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let sample = bytes_of(&keys.iter().map(|k| order_of(&record(*k), 0)).collect::<Vec<_>>());
        let splitters = Splitters::choose(&[sample], 5).unwrap();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let owners: Vec<_> =
            sorted.iter().map(|k| splitters.owner(order_of(&record(*k), 0))).collect();
        assert!(owners.is_sorted());
        assert_eq!((owners[0], owners[999]), (0, 4));
    }

    #[test]
    fn no_records_belong_to_nobody_and_half_a_sample_is_refused() {
        let splitters = Splitters::choose(&[vec![], vec![]], 4).unwrap();
        assert_eq!(splitters.owner(order_of(&record(3), 1)), 0);
        assert!(Splitters::choose(&[vec![0; 15]], 4).is_err());
    }
}
