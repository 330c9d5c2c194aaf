//! Which member holds how many replicas, and why not elsewhere: [`decide`] is a pure function of the demand of one
//! service, the members and what the [`Ledger`] has promised to others.

mod filter;
mod ledger;
mod pack;
mod plan;
#[cfg(test)]
mod tests;

pub use filter::{Exclusion, LwsSupport, MemberFacts, ServiceFacts, exclude};
pub use ledger::Ledger;
pub use pack::{Demand, Member, decide};
pub use plan::Plan;
