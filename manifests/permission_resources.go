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
			schema: `{
          "type": "object",
          "description": "A key-value store. Reserved: this version does not load a manifest that requests it.",
          "required": ["bytes"],
          "additionalProperties": false,
          "properties": {"bytes": {"$ref": "#/$defs/bytes", "description": "How much the tool stores."}}
        }`,
			read: func(r *reader, n *node, at string, p *Permissions) {
				p.KV = &KVPermission{}
				r.object(n, at, required("bytes", "bytes: and how much the tool stores, such as 1MiB", &p.KV.Bytes, r.bytes(1, maxKV)))
			},
		},
	}
}

func languageModel() kind {
	return kind{
		name: "llm",
		asks: &asking{
			key: "llm",
			schema: `{
          "type": "object",
          "description": "The host's language model. Reserved: this version does not load a manifest that requests it.",
          "required": ["tokens"],
          "additionalProperties": false,
          "properties": {"tokens": {"type": "integer", "minimum": 1, "maximum": 1000000000, "description": "Tokens that a call may use."}}
        }`,
			read: func(r *reader, n *node, at string, p *Permissions) {
				p.LLM = &LLMPermission{}
				r.object(n, at, required("tokens", "tokens: and how many a call may use, such as 4000", &p.LLM.Tokens, integer[int64](r, 1, maxTokens)))
			},
		},
	}
}
