package agents

// DefaultAllowedTools returns the registered names of the tools that a new agent gets, in their order: those that work
// on what the host itself holds. Tools that need a setting from elsewhere, such as a search, are for each agent to
// choose. missing are those that are not among the tools.
func DefaultAllowedTools(tools Tools) (allowed, missing []string) {
	return resolve([]string{
		"thinking", "todo_write", "knowledge_search", "grep_chunks", "list_knowledge_chunks",
		"query_knowledge_graph", "get_document_info", "database_query", "data_analysis", "data_schema",
	}, tools)
}
