"""Lists, calls and cancels with the official client for Python, and prints what happened as JSON.

Its arguments are how to connect (auto, or legacy for a session), and a URL or a command that serves lines.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main(mode, target, *args):
    server = target if target.startswith("http") else StdioServerParameters(command=target, args=list(args))
    report = {"progress": []}
    async with Client(server, mode=mode) as client:
        report["version"] = client.protocol_version
        report["tools"] = [tool.name for tool in (await client.list_tools()).tools]

        async def text():
            return (await client.call_tool("test_simple_text", {})).content[0].text

        report["text"] = await text()
        report["failed"] = (await client.call_tool("test_error_handling", {})).is_error

        async def told(progress, total, message):
            report["progress"].append(progress)

        await client.call_tool("test_tool_with_progress", {}, progress_callback=told)

        runs = asyncio.Event()

        async def running(progress, total, message):
            runs.set()

        call = asyncio.create_task(client.call_tool("slow", {}, progress_callback=running))
        await runs.wait()
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            report["cancelled"] = True
        report["after"] = await text()
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
