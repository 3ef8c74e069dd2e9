package manifests

// KVPermission requests a key-value store.
type KVPermission struct{ Bytes Bytes }

// LLMPermission requests the host's language model.
type LLMPermission struct{ Tokens int64 }

const (
	maxKV     = 1 << 40
	maxTokens = 1_000_000_000
)

// keyValue and languageModel can be requested, but not yet granted.
func keyValue() kind {
	return kind{
		name: "kv",
		asks: &asking{
			key: "kv",
			read: func(r *reader, n *node, at string, p *Permissions) {
				p.KV = &KVPermission{}
				r.object(n, at,
					required("bytes", "bytes: and how much the tool stores, such as 1MiB", &p.KV.Bytes, r.bytes(1, maxKV)))
			},
		},
	}
}

func languageModel() kind {
	return kind{
		name: "llm",
		asks: &asking{
			key: "llm",
			read: func(r *reader, n *node, at string, p *Permissions) {
				p.LLM = &LLMPermission{}
				r.object(n, at, required("tokens", "tokens: and how many a call may use, such as 4000", &p.LLM.Tokens,
					integer[int64](r, 1, maxTokens)))
			},
		},
	}
}
