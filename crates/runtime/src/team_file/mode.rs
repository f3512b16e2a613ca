//! How a team runs, beside its configuration.

/// The options of `up` for one run of a team.
#[derive(Clone, Copy, Default, Debug)]
pub struct TeamMode {
    /// No person can be asked.
    pub unattended: bool,
    /// All agents are observed and not stopped, whatever the configuration says.
    pub observe: bool,
}
