"""How a connection opens: the era that a client settles on holds, also when it gave up a probe before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.peer import LEGACY, MODERN, Peer, module

UNSUPPORTED = -32022


def probe(peer: Peer) -> Any:
    """Ask server/discover as a client of both eras does, and return the request's id."""
    peer.era = MODERN
    try:
        return peer.request("server/discover")
    finally:
        peer.era = LEGACY


def initialize(peer: Peer) -> int | str:
    client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "peer", "version": "1"}}
    return peer.request("initialize", client)


@pytest.mark.parametrize("probes", [1, 3])
def test_a_client_that_gave_up_its_probe_can_initialize(probes: int) -> None:
    """The server starts slowly: the probe and what follows from its silence are there when it reads."""
    with Peer(module("fake_service")) as peer:
        for _ in range(probes):
            peer.notify("notifications/cancelled", {"requestId": probe(peer)})
        assert peer.result(initialize(peer))["protocolVersion"] == LEGACY
        peer.notify("notifications/initialized")
        assert len(peer.result(peer.request("tools/list"))["tools"]) == 5
        assert not peer.result(peer.call("capture_pane", {"pane_id": "%1"}))["isError"]
        peer.close_input()
        assert peer.end()[0] == 0


def test_also_when_the_probe_has_been_answered() -> None:
    with Peer(module("fake_service")) as peer:
        assert MODERN in peer.result(probe(peer))["supportedVersions"]
        assert peer.result(initialize(peer))["protocolVersion"] == LEGACY
        peer.notify("notifications/initialized")
        assert not peer.result(peer.call("capture_pane", {"pane_id": "%1"}))["isError"]


def test_a_probe_before_the_modern_era_changes_nothing() -> None:
    with Peer(module("fake_service"), era=MODERN) as peer:
        peer.open()
        assert len(peer.result(peer.request("tools/list"))["tools"]) == 5
        assert not peer.result(peer.call("capture_pane", {"pane_id": "%1"}))["isError"]


def test_an_era_that_is_in_use_holds() -> None:
    with Peer(module("fake_service"), era=MODERN) as peer:
        peer.open()
        peer.result(peer.request("tools/list"))
        peer.era = LEGACY
        assert peer.answer(initialize(peer))["error"]["code"] == UNSUPPORTED


def test_an_end_right_after_the_probe() -> None:
    with Peer(module("fake_service"), era=MODERN) as peer:
        id = peer.request("server/discover")
        peer.close_input()
        assert [frame["id"] for frame in peer.rest()] == [id]
        assert peer.end()[0] == 0
