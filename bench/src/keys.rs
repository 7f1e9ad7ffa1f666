//! Key material and the order in which it is visited.
//!
//! Keys are made in one order, inserted in a second and visited in a third, so neither side can
//! profit from neighbours in memory being neighbours in time. All of it is prepared before a clock
//! is started.

/// Keys visited in a row are at least this many before the order repeats, so that a branch
/// predictor cannot learn the outcomes of a small key set by heart.
const MIN_VISITS: usize = 1 << 20;

/// The `index`-th number key. Distinct indexes give distinct keys, spread over all 64 bits.
#[inline]
pub(crate) fn number(index: usize) -> u64 {
    mix(index as u64)
}

/// The `index`-th string key, 24 bytes long.
pub(crate) fn text(index: usize) -> String {
    format!("key-{:020}", number(index))
}

/// `count` number keys.
pub(crate) fn numbers(count: usize) -> Vec<u64> {
    (0..count).map(number).collect()
}

/// `count` string keys of 24 bytes.
pub(crate) fn texts(count: usize) -> Vec<String> {
    (0..count).map(text).collect()
}

/// The order in which keys are first inserted.
pub(crate) fn insertion_order(count: usize) -> Vec<u32> {
    shuffled(count, 0x1357_9bdf)
}

/// The order in which keys are visited while the clock runs: every key once, in random order, and
/// again in another order until the sequence is long enough.
pub(crate) fn visiting_order(count: usize) -> Vec<u32> {
    let passes = MIN_VISITS.div_ceil(count.max(1));
    (0..passes).flat_map(|pass| shuffled(count, 0x2468_ace0 + pass as u64)).collect()
}

/// Spreads a number over 64 bits; a bijection, so distinct inputs stay distinct.
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The numbers below `count` in random order, the same for the same seed.
pub(crate) fn shuffled(count: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut state = mix(seed);
    for last in (1..order.len()).rev() {
        state = state.wrapping_add(1);
        let pick = (u128::from(mix(state)) * (last as u128 + 1)) >> 64;
        order.swap(last, pick as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_keys_have_24_bytes() {
        assert!((0..1000).all(|index| text(index).len() == 24));
    }

    #[test]
    fn every_key_is_visited_once_per_pass() {
        let order = visiting_order(1000);
        assert!(order.len() >= MIN_VISITS);
        let mut first_pass = order[..1000].to_vec();
        first_pass.sort_unstable();
        assert_eq!(first_pass, (0..1000).collect::<Vec<u32>>());
    }

    #[test]
    fn visiting_order_is_neither_insertion_nor_memory_order() {
        let visits = visiting_order(2_000_000);
        let inserts = insertion_order(2_000_000);
        let neighbours = visits.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 64).count();
        let shared = visits.iter().zip(&inserts).filter(|(one, other)| one == other).count();
        assert!(neighbours < 500, "{neighbours} visits go to a neighbour in memory");
        assert!(shared < 50, "{shared} visits follow the insertion order");
    }
}
