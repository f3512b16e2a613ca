//! Why a command failed, with its exit code.

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage or configuration; nothing was started. Exit code 2.
    Usage(anyhow::Error),
    /// Failed while running. Exit code 1.
    Run(anyhow::Error),
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Run(_) => 1,
        }
    }

    pub fn into_error(self) -> anyhow::Error {
        match self {
            Self::Usage(error) | Self::Run(error) => error,
        }
    }

    pub fn error(&self) -> &anyhow::Error {
        match self {
            Self::Usage(error) | Self::Run(error) => error,
        }
    }
}

/// Returns the failure of a configuration.
pub fn config_errors(errors: crate::config::ConfigErrors) -> Failure {
    Failure::Usage(errors.into())
}
