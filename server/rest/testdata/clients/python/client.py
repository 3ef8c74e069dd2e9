"""Calls a server with the client that openapi-python-client generates, and prints what it answered as JSON.

Usage: client.py URL TOKEN
"""

import json
import sys
import time
from typing import TypeVar

from caisson_client import AuthenticatedClient
from caisson_client.api.calls import create_batch, create_call, list_calls
from caisson_client.api.runs import approve, create_run, get_run, submit_tool_outputs
from caisson_client.api.sessions import delete_session, get_output
from caisson_client.models import (
    Action,
    ActionType,
    ApprovalList,
    ArgumentsType0,
    BatchOfCalls,
    BatchOfResponse,
    KeptCalls,
    NamedCall,
    NamedCallRequest,
    OutputsOfCalls,
    Page,
    PlainApproval,
    Problem,
    Record,
    Run,
    RunStatus,
    TextOutput,
)

T = TypeVar("T")


def expect(kind: type[T], value: object) -> T:
    """Returns a value that must be of a type."""
    assert isinstance(value, kind), value
    return value


def call(name: str, **arguments: object) -> NamedCall:
    return NamedCall(name=name, arguments=ArgumentsType0.from_dict(arguments))


def output(record: Record) -> str:
    return expect(str, json.loads(record.result).get("output", record.result))


def settled(client: AuthenticatedClient, run: Run) -> Run:
    """Polls a run until it waits or has ended."""
    deadline = time.monotonic() + 120
    while run.status in (RunStatus.QUEUED, RunStatus.IN_PROGRESS):
        assert time.monotonic() < deadline, run.status
        time.sleep(0.05)
        run = expect(Run, get_run.sync(run.id, client=client))
    return run


def answer(client: AuthenticatedClient, run: Run, action: Action) -> Run:
    """Answers a question or approves a call."""
    if action.type_ == ActionType.TOOL_OUTPUT:
        outputs = OutputsOfCalls(tool_outputs=[TextOutput(tool_call_id=action.call_id, output="Yes.")])
        return expect(Run, submit_tool_outputs.sync(run.id, client=client, body=outputs))
    approval = PlainApproval(call_id=action.call_id, approve=True, fingerprint=action.fingerprint)
    return expect(Run, approve.sync(run.id, client=client, body=ApprovalList(approvals=[approval])))


def main(url: str, token: str) -> dict[str, object]:
    client = AuthenticatedClient(base_url=url, token=token, timeout=None)
    session = "python"
    answers: dict[str, object] = {}

    request = NamedCallRequest(
        name="calculator", arguments=ArgumentsType0.from_dict({"expression": "6*7"}), session=session
    )
    answers["call"] = output(expect(Record, create_call.sync(client=client, body=request)))

    calls = BatchOfCalls(calls=[call("calculator", expression="1+1"), call("calculator", expression="2+2")])
    report = expect(Run, create_batch.sync(client=client, body=calls))
    answers["batch"] = [output(record) for record in report.records]

    started = create_run.sync(
        client=client,
        body=BatchOfCalls(calls=[call("ask_user", question="Delete it?"), call("file_delete", path="python.txt")]),
    )
    run = settled(client, expect(Run, started))
    waited = []
    while run.status == RunStatus.REQUIRES_ACTION:
        action = run.pending[0]
        waited.append(action.type_.value)
        run = settled(client, answer(client, run, action))
    answers["waited"] = sorted(waited)
    answers["run"] = [output(record) for record in run.records]

    answers["listed"] = len(expect(KeptCalls, list_calls.sync(client=client, limit=2)).calls)
    reading = NamedCallRequest(name="file_read", arguments=ArgumentsType0.from_dict({"path": "long.txt"}), session=session)
    cuts = expect(Record, create_call.sync(client=client, body=reading)).cuts
    cut = expect(list, cuts)[0]
    pages, at = [], 0
    while at >= 0:
        page = expect(Page, get_output.sync(session, cut.reference, client=client, from_=at, most=50_000))
        pages.append(len(page.text))
        at = page.next_
    answers["pages"] = pages

    wrong = BatchOfResponse(response={"what": 1})
    answers["problem"] = expect(Problem, create_batch.sync(client=client, body=wrong)).status
    stranger = AuthenticatedClient(base_url=url, token="wrong")
    answers["stranger"] = expect(Problem, list_calls.sync(client=stranger)).title

    ended = [delete_session.sync_detailed(session, client=client) for _ in range(2)]
    answers["session"] = [int(ended[0].status_code), expect(Problem, ended[1].parsed).status]
    return answers


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
