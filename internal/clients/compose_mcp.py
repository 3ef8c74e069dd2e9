"""MCP: requests of a client, results and lists of a server. The client writes names only as the protocol has
them: mcp_types reads with by_name=False, and the sessions write with by_alias=True."""

import mcp_types

import samples
import written

DIALECT = "mcp"


def documents():
    for i, params in enumerate(samples.samples(mcp_types.CallToolRequestParams)):
        request = mcp_types.CallToolRequest.model_validate({"params": params}).model_dump(by_alias=True, mode="json", exclude_none=True)
        for identity in (7, "seven"):
            message = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=identity, method=request["method"], params=request["params"])
            result = {"content": "", "calls": [written.call(str(identity), params["name"], params.get("arguments") or {})], "finish": "tool_calls"}
            for way, text in named(message).items():
                yield "response", f"{i} {identity} {way}", text, result
                yield "stream", f"{i} {identity} {way}", f"data: {text}\n\n", result
    yield from results()
    for i, tool in enumerate(samples.samples(mcp_types.Tool)):
        listed = mcp_types.ListToolsResult.model_validate({"tools": [tool], "resultType": "complete"})
        for way, text in named(listed).items():
            yield "offered", f"{i} {way}", text, {"tools": [tool["name"]]}


def results():
    for i, sample in enumerate(samples.samples(mcp_types.CallToolResult)):
        for failed in (True, False):
            result = mcp_types.CallToolResult.model_validate(sample | {"isError": failed})
            for way, text in named(result).items():
                outputs = {"outputs": [{"id": "7", "success": not failed}]}
                document = f'{{"jsonrpc":"2.0","id":7,"result":{text}}}'
                yield "answers", f"{i} {failed} {way}", document, outputs
                yield "answer", f"{i} {failed} {way}", document, outputs
    for code in (mcp_types.INVALID_PARAMS, mcp_types.INTERNAL_ERROR, -1):
        error = mcp_types.JSONRPCError(jsonrpc="2.0", id=7, error=mcp_types.ErrorData(code=code, message="no", data={"a": 1}))
        for way, text in named(error).items():
            yield "answers", f"error {code} {way}", text, {"outputs": [{"id": "7", "success": False}]}


def named(model):
    """Returns the texts of a model with the protocol's names. The type of a block is its default, and always
    written."""
    return {way: text for way, text in written.ways(model, 0).items() if way in ("with nulls", "without nulls")}
