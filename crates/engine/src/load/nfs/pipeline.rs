//! Many calls that must all be done, with a bounded number outstanding: making, finding, removing.

#![forbid(unsafe_code)]

use leadline_base::clock::now_ns;
use leadline_base::error::EngineError;

use crate::load::nfs::calls::Said;
use crate::load::nfs::lines::Lines;

/// Calls outstanding: enough to hide the way to the server and to keep its threads busy.
const DEPTH: usize = 64;

/// Makes every one of `items` a call (`make`) and hears what was said of it (`hear`). After a failure
/// no more are made, but those outstanding are waited for: the connections stay good.
///
/// # Errors
/// What `hear` says first, or the connections; `Target` when it is past `deadline_ns`.
pub fn each<T: Copy>(
    lines: &mut Lines<T>,
    items: impl IntoIterator<Item = T>,
    deadline_ns: u64,
    make: &mut dyn FnMut(&mut Lines<T>, T),
    hear: &mut dyn FnMut(T, Said) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut items = items.into_iter().fuse();
    let mut failed = None;
    loop {
        if failed.is_none() && now_ns() > deadline_ns {
            failed = Some(EngineError::target(
                "the time limit ended while the data set was made or looked at; allow more time or \
                ask for less data",
            ));
        }
        while failed.is_none() && lines.outstanding() < DEPTH && lines.has_room() {
            let Some(item) = items.next() else { break };
            make(lines, item);
        }
        if lines.outstanding() == 0 {
            return failed.map_or(Ok(()), Err);
        }
        lines.flush()?;
        lines.wait(u64::MAX);
        lines.receive(&mut |item, said, _| {
            if let (None, Err(error)) = (&failed, hear(item, said)) {
                failed = Some(error);
            }
            Ok(())
        })?;
    }
}
