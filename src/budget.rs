//! What the agents' model calls cost: the prices of models, and each agent's account. Knows no
//! sockets, and no protocol.

mod account;
mod prices;

pub use account::Account;
pub use prices::PriceList;
