"""Builders of small inspect_ai logs."""

import importlib
import json
import struct
import sys
import zipfile
import zlib

import pytest

zstd = importlib.import_module(
    "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
)

HEADER = {"version": 2, "status": "success", "eval": {"task": "desk", "model": "rail-1"}}
TOOLS = [
    {
        "name": "find",
        "description": "Find trains.",
        "parameters": {"type": "object", "properties": {}},
    }
]


def sample(identifier="a", epoch=1, *messages, **more):
    call = {"id": "c1", "function": "find", "arguments": {"to": "Ghent"}, "type": "function"}
    usual_messages = [
        {"role": "user", "content": "To Ghent?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "IC 5", "tool_call_id": "c1", "function": "find"},
        {"role": "assistant", "content": "Take IC 5."},
    ]
    record = {"id": identifier, "epoch": epoch, "input": "To Ghent?", "target": "IC 5"}
    return {
        **record,
        "messages": list(messages) or usual_messages,
        "scores": {"match": {"value": "C"}},
        **more,
    }


def log(*samples):
    return json.dumps({**HEADER, "samples": list(samples)}).encode()


def archive(path, members, method=zipfile.ZIP_DEFLATED):
    """Write an archive.

    93 is Zstandard, which older releases of the standard library do not write.
    """
    texts = {
        name: json.dumps(member).encode() if not isinstance(member, bytes) else member
        for name, member in members.items()
    }
    if method != 93:
        with zipfile.ZipFile(path, "w", method) as file:
            for name, text in texts.items():
                file.writestr(name, text)
        return path
    data, directory = b"", b""
    for name, text in texts.items():
        packed = zstd.compress(text)
        named = name.encode()
        sizes = struct.pack("<LLLHH", zlib.crc32(text), len(packed), len(text), len(named), 0)
        directory += struct.pack("<LHHHHHH", 0x02014B50, 63, 63, 0, 93, 0, 0) + sizes
        directory += struct.pack("<HHHLL", 0, 0, 0, 0, len(data)) + named
        data += struct.pack("<LHHHHH", 0x04034B50, 63, 0, 93, 0, 0) + sizes + named + packed
    count = len(texts)
    size = len(directory)
    path.write_bytes(
        data
        + directory
        + struct.pack("<LHHHHLLH", 0x06054B50, 0, 0, count, count, size, len(data), 0)
    )
    return path


@pytest.fixture
def members():
    """Members of an archive: a sample of one member, and one in pieces."""
    full_sample = sample(events=[{"event": "model", "tools": TOOLS}])
    shell = {
        key: value for key, value in sample("b", 2, target=["x", "y"]).items() if key != "messages"
    }
    messages = sample()["messages"]
    messages[0]["content"] = "attachment://2"
    return {
        "_journal/start.json": HEADER,
        "samples/a_epoch_1.json": full_sample,
        "samples/b_epoch_2/sample.json": {**shell, "message_refs": [[0, 2], [3, 5]]},
        "samples/b_epoch_2/metadata.json": {"domain": "rail"},
        "samples/b_epoch_2/messages/0.json": [
            *messages[:2],
            {"role": "user", "content": "left out"},
        ],
        "samples/b_epoch_2/messages/3.json": messages[2:],
        "samples/b_epoch_2/events/0.json": [
            {"event": "span_begin"},
            {"event": "model", "tools": TOOLS},
        ],
        "samples/b_epoch_2/events/stats.json": {
            "chunks": [{"type_counts": {"model": 2, "span_begin": 1}}]
        },
        "samples/b_epoch_2/attachments/0.json": ["zero", "one"],
        "samples/b_epoch_2/attachments/2.json": ["To Ghent, a long way?"],
        "header.json": HEADER,
    }
