//! Fixtures: the gateway, the servers behind it, the clients before it. They assert nothing about the gateway except
//! that its messages fit the official schemas.

pub(crate) mod canary;
pub(crate) mod client;
pub(crate) mod eventually;
pub(crate) mod exchange;
pub(crate) mod http;
pub(crate) mod issuer;
pub(crate) mod json;
pub(crate) mod pairs;
pub(crate) mod proxy;
pub(crate) mod schema;
pub(crate) mod sse;
pub(crate) mod upstream;

pub(crate) use client::{Ask, Client};
pub(crate) use eventually::eventually;
pub(crate) use pairs::{Pair, Side, eras, pairs};
pub(crate) use proxy::{Proxy, Weir};
pub(crate) use upstream::{CANNOT, Fake, Gone, Request, Upstream, Wire, prompt, resource, template, tool};
