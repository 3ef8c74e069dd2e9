"""One turn of an agent: have the calls of a model's response made, answer what they wait for, and get the results
in the form that the next request to the model has. It needs Python's standard library alone."""

import json
import os
import sys
import urllib.error
import urllib.request
import uuid

SERVER = os.environ.get("CAISSON_URL", "http://localhost:8711")
TOKEN = os.environ.get("CAISSON_TOKEN")  # needed once "caisson token create" has made one


def ask(method, path, body=None):
    """Make a request. A problem (RFC 9457) becomes an exception with its detail."""
    headers = {"Content-Type": "application/json"}
    if TOKEN:
        headers["Authorization"] = "Bearer " + TOKEN
    if method == "POST":
        headers["Idempotency-Key"] = str(uuid.uuid4())  # keep it to repeat the request after a broken connection
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {json.load(error).get('detail')}")


def follow(run):
    """Wait until the run pauses or ends, showing what happens meanwhile."""
    request = urllib.request.Request(f"{SERVER}/v1/runs/{run}/events", headers={"Authorization": "Bearer " + TOKEN} if TOKEN else {})
    with urllib.request.urlopen(request) as events:
        for line in events:
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                if event["type"] == "response.output_item.done":
                    item = event["item"]
                    print(f"  {item['type']} {item.get('name', '')} {item.get('status', '')}".rstrip())
    return ask("GET", "/v1/runs/" + run)


# What a model has answered. Any provider's response will do, as it is.
response = {
    "choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression": "1200 * 1.05^10"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "file_write", "arguments": '{"path": "plan.txt", "content": "Save."}'}},
        {"id": "call_3", "type": "function", "function": {"name": "ask_user", "arguments": '{"question": "Delete the plan again?"}'}},
        {"id": "call_4", "type": "function", "function": {"name": "file_delete", "arguments": '{"path": "plan.txt"}'}},
    ]}, "finish_reason": "tool_calls"}],
}

offered = ask("GET", "/v1/definitions?dialect=openai")
print(len(offered["definitions"]), "tools can be offered to the model")

run = ask("POST", "/v1/runs", {"dialect": "openai", "response": response})
run = follow(run["id"])
while run["status"] == "requires_action":
    for action in run["pending"]:
        if action["type"] == "tool_output":  # this program runs the tool
            print(action["tool"], "asks:", action["arguments"]["question"])
            path, body = "submit_tool_outputs", {"tool_outputs": [{"tool_call_id": action["call_id"], "output": "Yes."}]}
        else:  # show it to a person, and send back the fingerprint of what was shown
            print(action["tool"], "needs an approval:", action["arguments"])
            path, body = "approvals", {"approvals": [{"call_id": action["call_id"], "approve": True, "fingerprint": action["fingerprint"]}]}
        ask("POST", f"/v1/runs/{run['id']}/{path}", body)
    run = follow(run["id"])

print(run["status"])
for message in run["results"]:  # add them to the conversation, and ask the model again
    print(message["tool_call_id"], message["content"])
