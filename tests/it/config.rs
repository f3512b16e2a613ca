//! Configuration: `init`, `check`, `reload`.

mod check;
mod init;
mod reload;
mod without_file;
