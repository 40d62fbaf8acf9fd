//! Opening listeners.

use std::net::SocketAddr;

use tokio::net::TcpListener;

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    address: SocketAddr,
    #[source]
    source: std::io::Error,
}

/// Opens a listener; port 0 takes a free one.
///
/// # Errors
/// [`BindError`] when the operating system refuses.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|source| BindError { address, source })
}
