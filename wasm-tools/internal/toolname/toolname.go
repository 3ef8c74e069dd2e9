// Package toolname has the names of the tools that come with Caisson, for tests.
package toolname

// The names of the tools, as their manifests have them.
const (
	ApplyPatch          = "apply_patch"
	AskUser             = "ask_user"
	Calculator          = "calculator"
	CrawlBatch          = "crawl_batch"
	DataAnalysis        = "data_analysis"
	DataSchema          = "data_schema"
	DatabaseQuery       = "database_query"
	ExecuteJavaScript   = "execute_javascript"
	ExecutePython       = "execute_python"
	ExecuteSkillScript  = "execute_skill_script"
	FetchPage           = "fetch_page"
	FileDelete          = "file_delete"
	FileExists          = "file_exists"
	FileList            = "file_list"
	FileMkdir           = "file_mkdir"
	FileRead            = "file_read"
	FileWrite           = "file_write"
	GetDocumentInfo     = "get_document_info"
	GetWeather          = "get_weather"
	GrepChunks          = "grep_chunks"
	JSONProcess         = "json_process"
	KnowledgeIndex      = "knowledge_index"
	KnowledgeSearch     = "knowledge_search"
	ListKnowledgeChunks = "list_knowledge_chunks"
	LocalShell          = "local_shell"
	PlotImage           = "plot_image"
	QueryKnowledgeGraph = "query_knowledge_graph"
	ReadSkill           = "read_skill"
	TextProcess         = "text_process"
	Thinking            = "thinking"
	TodoWrite           = "todo_write"
	WebSearch           = "web_search"
)

// All returns the names of all tools, sorted.
func All() []string {
	return []string{
		ApplyPatch,
		AskUser,
		Calculator,
		CrawlBatch,
		DataAnalysis,
		DataSchema,
		DatabaseQuery,
		ExecuteJavaScript,
		ExecutePython,
		ExecuteSkillScript,
		FetchPage,
		FileDelete,
		FileExists,
		FileList,
		FileMkdir,
		FileRead,
		FileWrite,
		GetDocumentInfo,
		GetWeather,
		GrepChunks,
		JSONProcess,
		KnowledgeIndex,
		KnowledgeSearch,
		ListKnowledgeChunks,
		LocalShell,
		PlotImage,
		QueryKnowledgeGraph,
		ReadSkill,
		TextProcess,
		Thinking,
		TodoWrite,
		WebSearch,
	}
}
