//! What a kernel is to the ranks: the steps that all ranks take together.

use leadline_engine::error::EngineError;

use super::exchange::{Exchange, Sink, Source};

/// An exchange, and what it carries from and to.
pub struct Ends<'a> {
    /// The exchange.
    pub exchange: &'a mut Exchange,
    /// Where bytes come from.
    pub source: &'a mut dyn Source,
    /// Where they go.
    pub sink: &'a mut dyn Sink,
}

/// One rank of a kernel. A step that has nothing to do in a kernel does nothing.
pub trait RankKernel: Send {
    /// What this rank exchanges; none when it needs no other rank's data.
    fn ends(&mut self) -> Option<Ends<'_>>;

    /// Some of this rank's input, from which all ranks learn which keys belong to whom.
    ///
    /// # Errors
    /// The input cannot be read.
    fn sample(&mut self) -> Result<Vec<u8>, EngineError> {
        Ok(Vec::new())
    }
}
