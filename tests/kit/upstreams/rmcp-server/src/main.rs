// A small server on the published rmcp crate: Streamable HTTP at http://127.0.0.1:PORT/mcp, both eras of the protocol.
use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleServer, ServerHandler,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{Implementation, ProgressNotificationParam, ServerCapabilities, ServerConfig},
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Slow {
    /// How many steps of 50 ms to take.
    steps: Option<u32>,
}

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    #[tool(description = "Returns its argument")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Adds two whole numbers")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        a.saturating_add(b).to_string()
    }

    #[tool(description = "Reports progress while it runs")]
    async fn slow(&self, Parameters(Slow { steps }): Parameters<Slow>, call: RequestContext<RoleServer>) -> String {
        let steps = steps.unwrap_or(4);
        for step in 1..=steps {
            if let Some(token) = call.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, step.into()).with_total(steps.into());
                let _ = call.peer.notify_progress(progress).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        "done".to_owned()
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("kit-rmcp-server", "1"))
            .with_instructions("instructions of rmcp")
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let port: u16 = std::env::args().nth(1).and_then(|p| p.parse().ok()).expect("usage: kit-server PORT");
    let service = StreamableHttpService::new(
        || Ok(Server { tool_router: Server::tool_router() }),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
}
