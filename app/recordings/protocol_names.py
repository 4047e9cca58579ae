"""What members of messages are called in the protocol, in either revision.

Such a word gives nothing away, and a message in which it is masked wherever it stands can no longer be read. Light:
part of the process that masks.
"""

from __future__ import annotations

from typing import Final

# fmt: off
PROTOCOL_NAMES: Final = frozenset({
    "$schema", "_meta", "action", "annotations", "anyOf", "argument", "arguments", "audience", "blob", "cacheScope",
    "call", "cancel", "capabilities", "clientInfo", "code", "completion", "completions", "const", "content",
    "contents", "context", "costPriority", "create", "createMessage", "createdAt", "cursor", "data", "default",
    "description", "destructiveHint", "elicitation", "elicitationId", "elicitations", "encoding", "enum",
    "enumNames", "error", "execution", "experimental", "extensions", "fn", "form", "format", "hasMore", "hints",
    "icons", "id", "idempotentHint", "includeContext", "input", "inputRequests", "inputResponses", "inputSchema",
    "instructions", "intelligencePriority", "isError", "items", "jsonrpc", "lastModified", "lastUpdatedAt", "level",
    "list", "listChanged", "logger", "logging", "maxItems", "maxLength", "maxTokens", "maximum", "message",
    "messages", "meta", "metadata", "method", "mimeType", "mime_type", "minItems", "minLength", "minimum", "mode",
    "model", "modelPreferences", "name", "nextCursor", "notifications", "oneOf", "openWorldHint", "outputSchema",
    "params", "path", "pattern", "pollInterval", "priority", "progress", "progressToken", "prompts",
    "promptsListChanged", "properties", "protocolVersion", "readOnlyHint", "reason", "recursive", "ref",
    "requestId", "requestState", "requested", "requestedSchema", "requests", "required", "requiredCapabilities",
    "resource", "resourceSubscriptions", "resourceTemplates", "resources", "resourcesListChanged", "result",
    "resultType", "role", "roots", "sampling", "serverInfo", "size", "sizes", "speedPriority", "src", "status",
    "statusMessage", "stopReason", "stopSequences", "structuredContent", "subscribe", "supported",
    "supportedVersions", "systemPrompt", "task", "taskId", "taskSupport", "tasks", "temperature", "text", "theme",
    "title", "toolChoice", "toolUseId", "tools", "toolsListChanged", "total", "ttl", "ttlMs", "type", "uri",
    "uriTemplate", "url", "value", "values", "version", "websiteUrl",
})
# fmt: on
