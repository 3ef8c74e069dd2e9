"""Writes what the clients send and receive, one JSON object a line, for the dialects to read: "kind" says
how it is read, "document" is the text, and "want" what is in it by the client's own attributes."""

import json

import compose_anthropic
import compose_gemini
import compose_mcp
import compose_openai
import compose_responses


def main():
    for module in (compose_openai, compose_responses, compose_anthropic, compose_gemini, compose_mcp):
        for kind, name, document, want in module.documents():
            print(json.dumps({"dialect": module.DIALECT, "kind": kind, "name": f"{module.DIALECT} {kind} {name}", "document": document, "want": want}))


if __name__ == "__main__":
    main()
