from benchmarks.cluster.node.names import records


def service(name, address, **spec):
    metadata = {"name": name, "namespace": "nlp"}
    return {"metadata": metadata, "spec": {"clusterIP": address, **spec}}


def endpoints(name, *items):
    labels = {"kubernetes.io/service-name": name}
    return {"metadata": {"namespace": "nlp", "labels": labels}, "endpoints": list(items)}


def endpoint(address, *, ready=True, **content):
    return {"addresses": [address], "conditions": {"ready": ready}, **content}


def test_a_service_has_its_own_address_only():
    slices = [endpoints("mt", endpoint("10.244.11.2"))]
    assert records([service("mt", "10.96.0.7")], slices) == ["10.96.0.7 mt.nlp.svc.cluster.local"]


def test_a_headless_service_has_the_addresses_of_its_ready_pods():
    slices = [
        endpoints("pods", endpoint("10.244.11.2"), endpoint("10.244.11.3", ready=False)),
        endpoints("other", endpoint("10.244.11.4")),
        endpoints("pods", endpoint("10.244.12.2", hostname="b")),
        {"metadata": {"namespace": "nlp"}, "endpoints": None},
    ]
    assert records([service("pods", "None")], slices) == [
        "10.244.11.2 pods.nlp.svc.cluster.local",
        "10.244.12.2 b.pods.nlp.svc.cluster.local",
        "10.244.12.2 pods.nlp.svc.cluster.local",
    ]


def test_pods_that_are_not_ready_can_be_published():
    slices = [endpoints("w", endpoint("10.244.11.2", ready=False, hostname="w-0"))]
    services = [service("w", "None", publishNotReadyAddresses=True)]
    assert records(services, slices) == [
        "10.244.11.2 w-0.w.nlp.svc.cluster.local",
        "10.244.11.2 w.nlp.svc.cluster.local",
    ]


def test_a_service_without_an_address_yet_has_no_name():
    assert records([service("mt", "")], []) == []
