// Lists, calls and cancels with the official client for TypeScript, and prints what happened as JSON.
// Its arguments are a URL, or a command that serves lines.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [target, ...args] = process.argv.slice(2)
const transport = target.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args })
const client = new Client({ name: 'test', version: '1' })
await client.connect(transport)

const report = { progress: [] }
report.tools = (await client.listTools()).tools.map(tool => tool.name)
const text = async () => (await client.callTool({ name: 'test_simple_text', arguments: {} })).content[0].text
report.text = await text()
report.failed = (await client.callTool({ name: 'test_error_handling', arguments: {} })).isError === true
await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, { onprogress: p => report.progress.push(p.progress) })

const abort = new AbortController()
try {
  await client.callTool({ name: 'slow', arguments: {} }, undefined, { signal: abort.signal, onprogress: () => abort.abort() })
} catch {
  report.cancelled = abort.signal.aborted
}
report.after = await text()
await client.close()
console.log(JSON.stringify(report))
