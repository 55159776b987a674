use crate::bridge::command::MalformedBatch;

/// Why a call into the engine failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Somebody else listens there.
    #[error("{0} is in use")]
    AddressInUse(String, #[source] std::io::Error),
    /// The system refused to bind: no such address, or no permission.
    #[error("cannot listen on {0}")]
    AddressUnavailable(String, #[source] std::io::Error),
    /// An option is out of its range.
    #[error("{0}")]
    OptionInvalid(String),
    /// A bug of the caller.
    #[error(transparent)]
    Malformed(#[from] MalformedBatch),
    /// The system refused a thread, a descriptor or the like.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
    /// The engine was closed, or its threads died.
    #[error("the engine has ended")]
    Ended,
}

impl EngineError {
    /// Code in the error table of WebMQ.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::AddressInUse(..) => "E_ADDRESS_IN_USE",
            Self::AddressUnavailable(..) => "E_ADDRESS_UNAVAILABLE",
            Self::OptionInvalid(_) => "E_OPTION_INVALID",
            Self::Malformed(_) | Self::System(_) => "E_TRANSPORT_FAILED",
            Self::Ended => "E_NOT_RUNNING",
        }
    }
}

impl From<rustix::io::Errno> for EngineError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::System(errno.into())
    }
}
