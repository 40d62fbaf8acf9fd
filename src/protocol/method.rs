//! The method table: unknown method, removed method, metrics label and routing all read the same row.

use super::ListKind;

/// A request method that Weir knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Opens a legacy session.
    Initialize,
    /// Answered at once on every legacy leg.
    Ping,
    /// What a modern server offers.
    Discover,
    /// The standing stream of the modern era.
    Listen,
    /// One of the four lists.
    List(ListKind),
    /// Calls a tool.
    ToolsCall,
    /// Renders a prompt.
    PromptsGet,
    /// Reads a resource.
    ResourcesRead,
    /// Asks for updates of one resource (legacy).
    ResourcesSubscribe,
    /// Takes that back (legacy).
    ResourcesUnsubscribe,
    /// Completes an argument.
    Complete,
    /// Sets the log level of a session (legacy).
    SetLevel,
    /// How a task stands.
    TasksGet,
    /// The result of a task, once there is one (legacy).
    TasksResult,
    /// The tasks that there are (legacy).
    TasksList,
    /// Answers what a task asks (modern).
    TasksUpdate,
    /// Gives a task up.
    TasksCancel,
}

struct Row {
    method: Method,
    name: &'static str,
    spoken: Spoken,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Always,
    /// Up to 2025-11-25.
    Before,
    /// From 2026-07-28 on.
    Since,
}

const fn row(method: Method, name: &'static str, spoken: Spoken) -> Row {
    Row { method, name, spoken }
}

const TABLE: [Row; 20] = [
    row(Method::Initialize, "initialize", Spoken::Before),
    row(Method::Ping, "ping", Spoken::Before),
    row(Method::Discover, "server/discover", Spoken::Since),
    row(Method::Listen, "subscriptions/listen", Spoken::Since),
    row(Method::List(ListKind::Tools), "tools/list", Spoken::Always),
    row(Method::List(ListKind::Prompts), "prompts/list", Spoken::Always),
    row(Method::List(ListKind::Resources), "resources/list", Spoken::Always),
    row(Method::List(ListKind::Templates), "resources/templates/list", Spoken::Always),
    row(Method::ToolsCall, "tools/call", Spoken::Always),
    row(Method::PromptsGet, "prompts/get", Spoken::Always),
    row(Method::ResourcesRead, "resources/read", Spoken::Always),
    row(Method::ResourcesSubscribe, "resources/subscribe", Spoken::Before),
    row(Method::ResourcesUnsubscribe, "resources/unsubscribe", Spoken::Before),
    row(Method::Complete, "completion/complete", Spoken::Always),
    row(Method::SetLevel, "logging/setLevel", Spoken::Before),
    row(Method::TasksGet, "tasks/get", Spoken::Always),
    row(Method::TasksResult, "tasks/result", Spoken::Before),
    row(Method::TasksList, "tasks/list", Spoken::Before),
    row(Method::TasksUpdate, "tasks/update", Spoken::Since),
    row(Method::TasksCancel, "tasks/cancel", Spoken::Always),
];

impl Method {
    /// The method of this name in the revisions up to 2025-11-25.
    #[must_use]
    pub fn legacy(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.spoken != Spoken::Since && row.name == name).map(|row| row.method)
    }

    /// The method of this name in 2026-07-28.
    #[must_use]
    pub fn modern(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.spoken != Spoken::Before && row.name == name).map(|row| row.method)
    }

    /// The name on the wire, also the metrics label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        TABLE.iter().find(|row| row.method == self).map_or("unknown", |row| row.name)
    }

    /// The member of `params` that names what is meant, and that `Mcp-Name` mirrors (2026-07-28, transports, "Standard
    /// Request Headers"; the tasks extension, "Streamable HTTP: Routing Headers").
    #[must_use]
    pub fn name_member(self) -> Option<&'static str> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some("name"),
            Self::ResourcesRead => Some("uri"),
            Self::TasksGet | Self::TasksResult | Self::TasksUpdate | Self::TasksCancel => Some("taskId"),
            Self::Initialize
            | Self::Ping
            | Self::Discover
            | Self::Listen
            | Self::List(_)
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::Complete
            | Self::SetLevel
            | Self::TasksList => None,
        }
    }

    /// Whether it is about a task that there is.
    #[must_use]
    pub fn is_of_task(self) -> bool {
        matches!(self, Self::TasksGet | Self::TasksResult | Self::TasksUpdate | Self::TasksCancel)
    }
}

/// Names of notifications.
pub mod notification {
    /// The client has finished the handshake (legacy).
    pub const INITIALIZED: &str = "notifications/initialized";
    /// A request is cancelled.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// Progress of a request.
    pub const PROGRESS: &str = "notifications/progress";
    /// A log message.
    pub const MESSAGE: &str = "notifications/message";
    /// The tool list changed.
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    /// The prompt list changed.
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    /// The resource list or the template list changed.
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    /// A resource was updated.
    pub const UPDATED: &str = "notifications/resources/updated";
    /// The roots of a client changed (legacy).
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    /// The first message on a `subscriptions/listen` stream.
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// A task stands differently (legacy).
    pub const TASK_STATUS: &str = "notifications/tasks/status";
    /// A task stands differently (modern).
    pub const TASK: &str = "notifications/tasks";
}

/// Log levels, least severe first (RFC 5424 names, as 2025-11-25 and 2026-07-28 use them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// debug
    Debug,
    /// info
    Info,
    /// notice
    Notice,
    /// warning
    Warning,
    /// error
    Error,
    /// critical
    Critical,
    /// alert
    Alert,
    /// emergency
    Emergency,
}

impl LogLevel {
    const NAMES: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// The level of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(level, _)| *level)
    }

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(level, _)| *level == self).map_or("debug", |(_, name)| name)
    }
}
