//! Unpacking of an answer that was compressed although Weir never asks for it.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::GzDecoder;

use crate::exchange::Reason;
use crate::upstream::fault::Fault;

/// So much is unpacked between two looks at the limit: gzip grows at most about a thousandfold.
const STEP: usize = 1024;

/// A gzip stream being unpacked.
pub(super) struct Gunzip {
    decoder: GzDecoder<Vec<u8>>,
    largest: usize,
}

impl std::fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gunzip").finish_non_exhaustive()
    }
}

impl Gunzip {
    pub(super) fn new(largest: usize) -> Self {
        Self { decoder: GzDecoder::new(Vec::new()), largest }
    }

    /// Takes packed bytes, returns what they unpack to.
    pub(super) fn feed(&mut self, packed: &[u8]) -> Result<Bytes, Fault> {
        for step in packed.chunks(STEP) {
            self.decoder.write_all(step).map_err(|_broken| Fault::sent(Reason::NotMcp))?;
            if self.decoder.get_ref().len() > self.largest {
                return Err(Fault::sent(Reason::TooLarge));
            }
        }
        // Without a flush the last bytes would stay inside until the next chunk, and an event would come late.
        self.decoder.flush().map_err(|_broken| Fault::sent(Reason::NotMcp))?;
        Ok(Bytes::from(std::mem::take(self.decoder.get_mut())))
    }
}
