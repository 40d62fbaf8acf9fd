//! The layer table: which top-level module of `src` may use which. A row names only rows above it.

/// A row that may use everything.
pub(super) const ANYTHING: &[&str] = &["*"];

/// Modules in layer order, each with what it may import.
pub(super) const LAYERS: &[(&str, &[&str])] = &[
    // Level 0
    ("names", &[]),
    ("jsonrpc", &[]),
    ("task", &[]),
    // Level 1
    ("principal", &["names"]),
    ("protocol", &["names", "jsonrpc"]),
    // Level 2. Telemetry reads its own part of the configuration, as every module does.
    ("seal", &["names", "principal", "protocol"]),
    ("config", &["names", "principal", "protocol"]),
    ("telemetry", &["names", "principal", "protocol", "config", "task"]),
    ("exchange", &["names", "jsonrpc", "principal", "protocol"]),
    // Level 3. The catalog writes published definitions, so it uses the raw objects of jsonrpc.
    ("policy", &["names", "principal", "protocol", "config"]),
    // Tokens are read with the raw objects of jsonrpc, which refuse what occurs twice.
    ("auth", &["names", "jsonrpc", "principal", "protocol", "config", "telemetry", "task"]),
    ("catalog", &["names", "jsonrpc", "protocol", "config", "telemetry", "task"]),
    ("source", &["names", "config", "telemetry", "task"]),
    ("cluster", &["names", "principal", "seal", "config", "telemetry", "task"]),
    // Level 4
    (
        "upstream",
        &[
            "names",
            "jsonrpc",
            "task",
            "principal",
            "protocol",
            "seal",
            "telemetry",
            "config",
            "exchange",
            "catalog",
            "cluster",
        ],
    ),
    // What equal rights see of the catalog; lists, calls and announcements read it.
    ("view", &["names", "principal", "protocol", "config", "policy", "catalog"]),
    (
        "notify",
        &["names", "principal", "protocol", "config", "policy", "catalog", "view", "telemetry", "task"],
    ),
    // Level 5
    ("own", &["names", "protocol", "config", "catalog", "telemetry", "task"]),
    // Level 6
    (
        "relay",
        &[
            "names",
            "jsonrpc",
            "principal",
            "protocol",
            "seal",
            "config",
            "exchange",
            "policy",
            "catalog",
            "cluster",
            "upstream",
            "own",
            "view",
            "telemetry",
        ],
    ),
    // Level 7
    (
        "downstream",
        &[
            "names",
            "jsonrpc",
            "principal",
            "protocol",
            "seal",
            "config",
            "exchange",
            "catalog",
            "cluster",
            "notify",
            "relay",
            "view",
            // It writes the challenge of a missing scope.
            "auth",
            "telemetry",
            "task",
        ],
    ),
    (
        "admin",
        &[
            "names",
            "jsonrpc",
            "protocol",
            "config",
            "policy",
            // Whether the keys of issuers are known.
            "auth",
            "catalog",
            // Where the configuration stands.
            "source",
            "upstream",
            "downstream",
            "telemetry",
            "task",
        ],
    ),
    // Level 8
    (
        "server",
        &[
            "names",
            // It answers with JSON-RPC errors what never becomes a message.
            "jsonrpc",
            "principal",
            "protocol",
            "config",
            "exchange",
            "auth",
            "catalog",
            "downstream",
            "admin",
            "telemetry",
            "task",
        ],
    ),
    ("cli", ANYTHING),
    // Level 9
    ("app", ANYTHING),
    ("lib", ANYTHING),
    ("main", ANYTHING),
];
