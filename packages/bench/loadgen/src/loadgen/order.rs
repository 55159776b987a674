//! Orders of the main thread to an I/O thread, and the answers to them.

use std::sync::Arc;

use super::connections::Connections;
use super::jobs::Job;
use super::protocol::CountStop;
use super::protocol::plans::SendWindow;
use super::report::Report;

/// The command that an order and its report belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OrderNumber(pub(crate) u64);

pub(crate) struct Order {
    pub(crate) number: OrderNumber,
    /// Of the command.
    pub(crate) name: Arc<str>,
    pub(crate) task: Task,
}

/// Makes a job on the thread that runs it.
type Begin = dyn FnOnce(&mut Connections) -> Result<Box<dyn Job>, String> + Send;

/// A thread's part of a command.
pub(crate) enum Task {
    /// Replaces a job of this name.
    Begin(Box<Begin>),
    Change(Change),
    Stats,
}

/// For a job under way, which answers the command that brings it.
#[derive(Clone)]
pub(crate) enum Change {
    StopCount(Arc<CountStop>),
    BeginClients(SendWindow),
    FinishClients,
}

impl Task {
    pub(crate) fn begin<J: Job + 'static>(begin: impl FnOnce(&mut Connections) -> J + Send + 'static) -> Self {
        Self::try_begin(|connections| Ok(begin(connections)))
    }

    pub(crate) fn try_begin<J: Job + 'static>(
        begin: impl FnOnce(&mut Connections) -> Result<J, String> + Send + 'static,
    ) -> Self {
        Self::Begin(Box::new(|connections| begin(connections).map(|job| Box::new(job) as Box<dyn Job>)))
    }
}

impl Change {
    pub(crate) fn job_name(&self) -> &'static str {
        match self {
            Self::StopCount(_) => "count",
            Self::BeginClients(_) | Self::FinishClients => "clients",
        }
    }
}

pub(crate) struct Answer {
    pub(crate) number: OrderNumber,
    pub(crate) report: Report,
}
