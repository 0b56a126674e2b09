"""Validity of the Kubernetes files, and limits of their pods' rights."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
KUBERNETES = ROOT / "deploy" / "kubernetes"
BUILDS = ("overlays/cpu", "overlays/gpu", "rayjob", "upgrade")
KUBERAY = yaml.safe_load(Path(__file__).with_name("kuberay.yaml").read_text(encoding="utf-8"))
GPU_WORKERS = KUBERNETES / "overlays" / "gpu" / "workers" / "gpu-workers.yaml"
NEWEST, OLDEST = "1.37", "1.30"
Resources = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=["as written", "as built"])
def resources(request: pytest.FixtureRequest) -> Resources:
    """Return all resources by folder, as in their files, and as built by Kustomize if it is installed."""
    return written() if request.param == "as written" else built()


def written() -> Resources:
    """Read the files, and add the workers with GPUs to the cluster."""
    documents: Resources = {}
    for path in sorted(KUBERNETES.rglob("*.yaml")):
        if path.name != "kustomization.yaml" and path != GPU_WORKERS:
            documents.setdefault(path.parent.name, []).extend(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    (change,) = yaml.safe_load(GPU_WORKERS.read_text(encoding="utf-8"))
    (cluster,) = of_kind(documents, "RayCluster")
    cluster["spec"]["workerGroupSpecs"].append(change["value"])
    return documents


def built() -> Resources:
    """Build the folders by kubectl's Kustomize."""
    documents = {}
    for build in BUILDS:
        words = [BIN / "kubectl", "kustomize", str(KUBERNETES / build)]
        completed = subprocess.run(words, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        documents[build] = [document for document in yaml.safe_load_all(completed.stdout) if document]
    return documents


def pods(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every pod template, with the name of its owner."""
    for document in documents:
        name, spec = f"{document['kind']} {document['metadata']['name']}", document.get("spec", {})
        if document["kind"] == "RayCluster":
            yield f"{name} head", spec["headGroupSpec"]["template"]
            yield from ((f"{name} {group['groupName']}", group["template"]) for group in spec["workerGroupSpecs"])
        elif document["kind"] == "RayJob":
            yield name, spec["submitterPodTemplate"]
        elif "template" in spec:
            yield name, spec["template"]


def containers(built: Resources) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield every container, with its name and its pod."""
    for documents in built.values():
        for name, template in pods(documents):
            for container in template["spec"]["containers"]:
                yield f"{name}/{container['name']}", container, template["spec"]


def of_kind(built: Resources, kind: str) -> list[dict[str, Any]]:
    return [document for documents in built.values() for document in documents if document["kind"] == kind]


def test_core_kinds_follow_their_schemas(resources: Resources) -> None:
    """Kubernetes' own kinds follow its schemas, of old and new versions, without unknown fields."""
    checked = 0
    for documents in resources.values():
        for document in documents:
            if document["apiVersion"] != "ray.io/v1":
                for version in (OLDEST, NEWEST):
                    kubernetes_validate.validate(document, version, strict=True)
                checked += 1
    assert checked > 15


def test_kuberay_kinds_have_known_fields(resources: Resources) -> None:
    """RayCluster and RayJob have only fields of KubeRay's API reference, of the right types."""
    clusters = [*of_kind(resources, "RayCluster"), *of_kind(resources, "RayJob")]
    assert {document["kind"] for document in clusters} == {"RayCluster", "RayJob"}
    for document in clusters:
        jsonschema.validate(document, KUBERAY)


def test_pod_templates_follow_their_schema(resources: Resources) -> None:
    """The pods inside KubeRay's resources follow Kubernetes' schema of a pod."""
    for documents in resources.values():
        for _, template in pods(documents):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": "any"}}
            pod["spec"] = template["spec"]
            kubernetes_validate.validate(pod, NEWEST, strict=True)


def test_a_wrong_field_is_noticed(resources: Resources) -> None:
    """Kubernetes' and KubeRay's schemas each refuse a misspelt field."""
    cluster = of_kind(resources, "RayCluster")[0]
    wrong = cluster | {"spec": cluster["spec"] | {"authOption": {"mode": "token"}}}
    with pytest.raises(jsonschema.ValidationError, match="authOption"):
        jsonschema.validate(wrong, KUBERAY)
    deployment = of_kind(resources, "Deployment")[0]
    wrong = deployment | {"spec": deployment["spec"] | {"replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_containers_have_minimal_rights(resources: Resources) -> None:
    """Every container is unprivileged, runs as nobody and has a memory limit, as `restricted` requires."""
    for name, container, pod in containers(resources):
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["runAsUser"] > 0, name
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", name
        assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
        assert "memory" in container["resources"]["limits"], name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), name
    for namespace in of_kind(resources, "Namespace"):
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_every_server_has_a_health_check_and_requests(resources: Resources) -> None:
    """Every server has a health check, and every container requests memory and processor."""
    for name, container, pod in containers(resources):
        assert {"cpu", "memory"} <= set(container["resources"]["requests"]), name
        runs_once = pod.get("restartPolicy") in ("Never", "OnFailure")
        assert runs_once or {"readinessProbe", "livenessProbe"} <= set(container), name


def test_only_the_head_may_ask_kubernetes(resources: Resources) -> None:
    """Only the head's pod, with the autoscaler in it, has Kubernetes credentials."""
    for documents in resources.values():
        for name, template in pods(documents):
            assert template["spec"].get("automountServiceAccountToken", True) == name.endswith(" head"), name


def test_secrets_are_only_named(resources: Resources) -> None:
    """No resource contains a secret; the documentation creates every secret that a resource names."""
    text = (ROOT / "docs" / "guides" / "deploy.md").read_text(encoding="utf-8")
    named = set()
    for name, container, pod in containers(resources):
        for variable in container.get("env", ()):
            hidden = any(word in variable["name"] for word in ("PASSWORD", "SECRET", "TOKEN", "ACCESS_KEY"))
            if hidden and not variable["name"].endswith("_FILE"):
                assert "secretKeyRef" in variable["valueFrom"], (name, variable["name"])
                named.add(variable["valueFrom"]["secretKeyRef"]["name"])
        named |= {entry["secretRef"]["name"] for entry in container.get("envFrom", ()) if "secretRef" in entry}
        named |= {volume["secret"]["secretName"] for volume in pod.get("volumes", ()) if "secret" in volume}
    named |= {cluster["spec"]["authOptions"]["secretName"] for cluster in of_kind(resources, "RayCluster")}
    named |= {tls["secretName"] for ingress in of_kind(resources, "Ingress") for tls in ingress["spec"]["tls"]}
    assert of_kind(resources, "Secret") == []
    assert named == {"study-ray", "study-s3", "study-mlflow-s3", "study-mlflow", "study-postgres", "study-tls"}
    for name in named:
        assert f"create secret generic {name} " in text or f"create secret tls {name} " in text, name


def test_the_cluster_asks_for_a_token_and_grows(resources: Resources) -> None:
    """Token authentication is on, the head trains nothing, and every group of workers can shrink to nothing."""
    for cluster in of_kind(resources, "RayCluster"):
        spec = cluster["spec"]
        assert spec["authOptions"]["mode"] == "token"
        assert spec["enableInTreeAutoscaling"]
        assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
        assert all(group["minReplicas"] == 0 < group["maxReplicas"] for group in spec["workerGroupSpecs"])


def test_each_job_requests_its_cores(resources: Resources) -> None:
    """Each job requests its number of cores, because an idle cluster has none."""
    for job in of_kind(resources, "RayJob"):
        assert re.search(r"^study run \S+ .*--workers \d+", job["spec"]["entrypoint"])


def test_builds_are_whole() -> None:
    """Each overlay has its groups of workers, and the expected names of images."""
    builds = built()
    groups = {
        build: {group["groupName"] for group in cluster["spec"]["workerGroupSpecs"]}
        for build, documents in builds.items()
        for cluster in documents
        if cluster["kind"] == "RayCluster"
    }
    assert groups == {"overlays/cpu": {"cpu"}, "overlays/gpu": {"cpu", "gpu"}}
    images = {container["image"] for _, container, _ in containers(builds)}
    assert {image.rpartition("/")[0] for image in images} == {"registry.example.org", "docker.io/library"}
    assert "registry.example.org/study:1.0.0rc1-cu130" in images


def test_traffic_is_forbidden_by_default(resources: Resources) -> None:
    """A policy forbids all traffic; each pod of these files has its own policy that allows specific traffic."""
    named = {item["metadata"]["name"]: item["spec"] for item in of_kind(resources, "NetworkPolicy")}
    policies = list(named.values())
    nothing = [policy for policy in policies if not policy["podSelector"] and not {"ingress", "egress"} & set(policy)]
    assert [sorted(policy["policyTypes"]) for policy in nothing] == [["Egress", "Ingress"]]
    for documents in resources.values():
        for name, template in pods(documents):
            labels = template["metadata"]["labels"].items()
            chosen = [policy["podSelector"].get("matchLabels", {}) for policy in policies]
            assert any(selector and selector.items() <= labels for selector in chosen), name


def test_the_front_has_tls_for_every_name(resources: Resources) -> None:
    """Each name of the ingress is in its certificate's list, and plain HTTP is redirected to TLS."""
    for ingress in of_kind(resources, "Ingress"):
        covered = {host for tls in ingress["spec"]["tls"] for host in tls["hosts"]}
        assert {rule["host"] for rule in ingress["spec"]["rules"]} == covered
        assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/force-ssl-redirect"] == "true"
    for service in of_kind(resources, "Service"):
        assert service["spec"].get("type", "ClusterIP") == "ClusterIP", service["metadata"]["name"]


def test_mlflow_has_the_settings_of_compose() -> None:
    """The copy of MLflow's settings equals that of compose."""
    copy = KUBERNETES / "base" / "mlflow-auth.ini"
    assert copy.read_text() == (ROOT / "deploy" / "compose" / "mlflow-auth.ini").read_text()


def test_every_file_is_in_a_kustomization() -> None:
    """Every file of a base or an overlay is in its kustomization.yaml."""
    for listing in KUBERNETES.rglob("kustomization.yaml"):
        text = listing.read_text()
        yaml.safe_load(text)
        for path in listing.parent.iterdir():
            assert path.name == "kustomization.yaml" or path.name in text, path
