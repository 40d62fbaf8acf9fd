//! A scenario is written once and run for the pairs of client era and upstream era.

use super::client::Client;
use super::proxy::{Proxy, Weir};
use super::upstream::{Fake, Upstream};

/// One of the two generations of the protocol, on either side of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// `initialize` and sessions.
    Legacy,
    /// Stateless, 2026-07-28.
    Modern,
}

/// Who calls whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The client.
    pub(crate) client: Side,
    /// The upstream.
    pub(crate) upstream: Side,
}

impl Pair {
    /// Both of the handshake era.
    pub(crate) const LEGACY: Self = Self { client: Side::Legacy, upstream: Side::Legacy };

    /// A fake server of the upstream's era.
    pub(crate) fn fake(self) -> Fake {
        Fake::of(self.upstream).label("alpha")
    }

    /// A client of the client's era, ready to ask.
    pub(crate) fn client(self, weir: &Weir) -> Client {
        weir.client(self.client)
    }

    /// The plain set-up: one upstream `alpha` as given, the gateway before it, one client.
    pub(crate) fn set_up(self, fake: Fake) -> (Upstream, Weir, Client) {
        self.set_up_with(fake, "")
    }

    /// The plain set-up with further keys for the upstream.
    pub(crate) fn set_up_with(self, fake: Fake, keys: &str) -> (Upstream, Weir, Client) {
        let alpha = fake.label("alpha").start();
        let weir = Proxy::new().upstream_with("alpha", &alpha, keys).run();
        let client = self.client(&weir);
        (alpha, weir, client)
    }
}

/// Runs each scenario, a `fn(Pair)`, for all four pairs.
macro_rules! pairs {
    ($($scenario:ident),+ $(,)?) => { $(
        mod $scenario {
            use $crate::support::{Pair, Side};

            #[test]
            fn legacy_client_legacy_upstream() {
                super::$scenario(Pair { client: Side::Legacy, upstream: Side::Legacy });
            }

            #[test]
            fn legacy_client_modern_upstream() {
                super::$scenario(Pair { client: Side::Legacy, upstream: Side::Modern });
            }

            #[test]
            fn modern_client_legacy_upstream() {
                super::$scenario(Pair { client: Side::Modern, upstream: Side::Legacy });
            }

            #[test]
            fn modern_client_modern_upstream() {
                super::$scenario(Pair { client: Side::Modern, upstream: Side::Modern });
            }
        }
    )+ };
}

/// Runs each scenario, a `fn(Side)`, for both eras.
macro_rules! eras {
    ($($scenario:ident),+ $(,)?) => { $(
        mod $scenario {
            #[test]
            fn legacy() {
                super::$scenario($crate::support::Side::Legacy);
            }

            #[test]
            fn modern() {
                super::$scenario($crate::support::Side::Modern);
            }
        }
    )+ };
}

pub(crate) use {eras, pairs};
