//! The command line: what was typed, and the commands beside `serve`.
//!
//! Standard output holds the result only; everything else goes to standard error. Exit codes: 0 success, 1 failure
//! at run time, 2 unusable input.

mod call;
mod check;
mod client;
mod connect;
mod explain;
mod list;
mod print;
mod schema;
mod serve;
mod token;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use secrecy::SecretString;

/// An exit code of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It worked.
    Success = 0,
    /// It failed while it ran.
    Failure = 1,
    /// Arguments or configuration cannot be used.
    Unusable = 2,
}

/// One endpoint in front of many MCP servers.
#[derive(Debug, Parser)]
#[command(name = "weir", version = concat!(env!("CARGO_PKG_VERSION"), " (MCP 2024-11-05 to 2026-07-28)"))]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves (the default command).
    Serve(ServeArguments),
    /// Checks a configuration and prints every problem.
    Check(CheckArguments),
    /// Lists what clients will see.
    List(ListArguments),
    /// Calls a tool and prints the result.
    Call(CallArguments),
    /// Says which principal a token is, what it may see and call, and what decided.
    Explain(ExplainArguments),
    /// Makes a static token and the hash for the configuration.
    Token,
    /// Prints the JSON Schema of routes.yaml.
    Schema,
}

#[derive(Debug, Args)]
struct ServeArguments {
    /// The configuration; without it ./routes.yaml, else the built-in demonstration.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The address of the MCP listener; overrides the configuration.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// The address of the admin listener; overrides the configuration.
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// The configuration; without it ./routes.yaml.
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Also connects to each upstream and reports it.
    #[arg(long)]
    connect: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct TokenArguments {
    /// The token to send. Others can read a command line; prefer --token-file or WEIR_TOKEN.
    #[arg(long, env = "WEIR_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A file that holds the token to send.
    #[arg(long, value_name = "PATH", conflicts_with = "token")]
    token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ListArguments {
    /// Connects to the upstreams of this configuration; without it ./routes.yaml.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    config: Option<PathBuf>,
    /// Asks a running gateway, or any MCP server.
    #[arg(long)]
    url: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    token: TokenArguments,
}

#[derive(Debug, Args)]
struct CallArguments {
    /// The published name of the tool.
    name: String,
    /// Its arguments, a JSON object.
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Where to call; without it the listener and first route of ./routes.yaml.
    #[arg(long)]
    url: Option<String>,
    /// Prints the whole JSON-RPC response.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    token: TokenArguments,
}

#[derive(Debug, Args)]
struct ExplainArguments {
    /// The published name or URI of one item.
    name: Option<String>,
    /// The configuration; without it ./routes.yaml.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The route; without it the first one.
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// All tools and everybody whom the configuration names.
    #[arg(long, conflicts_with = "name")]
    matrix: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    token: TokenArguments,
}

impl TokenArguments {
    /// The token, if one was given; a file that cannot be read is said and ends the command.
    fn read(&self) -> Result<Option<SecretString>, Exit> {
        match (&self.token, &self.token_file) {
            (Some(token), _) if !token.is_empty() => Ok(Some(SecretString::from(token.clone()))),
            (_, Some(path)) => std::fs::read_to_string(path)
                .map(|text| Some(SecretString::from(text.trim_end().to_owned())))
                .map_err(|error| {
                    print::err(&format!("cannot read {}: {error}", path.display()));
                    Exit::Unusable
                }),
            (Some(_) | None, None) => Ok(None),
        }
    }
}

/// Runs what was typed.
pub async fn run(arguments: Arguments) -> Exit {
    match arguments.command {
        None => Box::pin(serve::run(&arguments.serve)).await,
        Some(Command::Serve(serve)) => serve::run(&serve).await,
        Some(Command::Check(check)) => connect::run(&check).await,
        Some(Command::List(list)) => list::run(&list).await,
        Some(Command::Call(call)) => call::run(&call).await,
        Some(Command::Explain(explain)) => explain::run(&explain).await,
        Some(Command::Token) => written(token::run(&mut std::io::stdout())),
        Some(Command::Schema) => written(schema::run(&mut std::io::stdout())),
    }
}

fn written(code: u8) -> Exit {
    if code == 0 { Exit::Success } else { Exit::Failure }
}
