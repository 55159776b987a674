//! What a job tells its thread.

use crate::loadgen::order::Report;

/// The next step of a job.
pub(crate) enum Step {
    /// Nothing before this time; `None`: before an event.
    Wait(Option<u64>),
    /// It has an answer, and goes on.
    Answer(Report),
    /// It has its answer, and ends.
    Done(Report),
}
