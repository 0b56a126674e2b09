"""What Kubernetes is given is what Kubernetes takes, and lets nobody do more than they must."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl, which builds what these tests read, isn't installed"
)
ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
BUILDS = ("overlays/cpu", "overlays/gpu", "rayjob")
KUBERAY = yaml.safe_load(Path(__file__).with_name("kuberay.yaml").read_text(encoding="utf-8"))
NEWEST, OLDEST = "1.37", "1.30"
Built = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def built() -> Built:
    """Give what each folder of Kustomize builds."""
    found = {}
    for build in BUILDS:
        words = ["kubectl", "kustomize", str(KUBERNETES / build)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[build] = [document for document in yaml.safe_load_all(done.stdout) if document]
    return found


def pods(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every pod template, with the name of what it belongs to."""
    for document in documents:
        name, spec = f"{document['kind']} {document['metadata']['name']}", document.get("spec", {})
        if document["kind"] == "RayCluster":
            yield f"{name} head", spec["headGroupSpec"]["template"]
            yield from (
                (f"{name} {group['groupName']}", group["template"]) for group in spec["workerGroupSpecs"]
            )
        elif document["kind"] == "RayJob":
            yield name, spec["submitterPodTemplate"]
        elif "template" in spec:
            yield name, spec["template"]


def containers(built: Built) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Give every container, with its name and its pod."""
    for documents in built.values():
        for name, template in pods(documents):
            for container in template["spec"]["containers"]:
                yield f"{name}/{container['name']}", container, template["spec"]


def of_kind(built: Built, kind: str) -> list[dict[str, Any]]:
    return [document for documents in built.values() for document in documents if document["kind"] == kind]


def test_core_kinds_follow_their_schemas(built: Built) -> None:
    """What Kubernetes defines itself follows its schemas, of old and new versions, with no field unknown to them."""
    checked = 0
    for documents in built.values():
        for document in documents:
            if document["apiVersion"] != "ray.io/v1":
                for version in (OLDEST, NEWEST):
                    kubernetes_validate.validate(document, version, strict=True)
                checked += 1
    assert checked > 20


def test_kuberay_kinds_have_known_fields(built: Built) -> None:
    """RayCluster and RayJob have only fields that KubeRay's API reference has, of the right types."""
    found = [*of_kind(built, "RayCluster"), *of_kind(built, "RayJob")]
    assert len(found) == len(BUILDS)
    for document in found:
        jsonschema.validate(document, KUBERAY)


def test_pod_templates_follow_their_schema(built: Built) -> None:
    """The pods inside KubeRay's resources follow Kubernetes' schema of a pod."""
    for documents in built.values():
        for _, template in pods(documents):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": "any"}}
            pod["spec"] = template["spec"]
            kubernetes_validate.validate(pod, NEWEST, strict=True)


def test_a_wrong_field_is_noticed(built: Built) -> None:
    """A misspelt field is refused by either schema."""
    (cluster,) = [found for found in built["overlays/cpu"] if found["kind"] == "RayCluster"]
    wrong = cluster | {"spec": cluster["spec"] | {"authOption": {"mode": "token"}}}
    with pytest.raises(jsonschema.ValidationError, match="authOption"):
        jsonschema.validate(wrong, KUBERAY)
    (deployment,) = [found for found in built["overlays/cpu"] if found["kind"] == "Deployment"]
    wrong = deployment | {"spec": deployment["spec"] | {"replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_no_container_may_do_more_than_it_must(built: Built) -> None:
    """Every container runs as nobody, without privileges, with a memory limit, as the namespace's `restricted` asks."""
    for name, container, pod in containers(built):
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["runAsUser"] > 0, name
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", name
        assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
        assert "memory" in container["resources"]["limits"], name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), name
    (namespace,) = [found for found in built["overlays/cpu"] if found["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_only_the_head_may_ask_kubernetes(built: Built) -> None:
    """Only the head's pod, with the autoscaler in it, is given credentials of Kubernetes."""
    for documents in built.values():
        for name, template in pods(documents):
            assert template["spec"].get("automountServiceAccountToken", True) == name.endswith(" head"), name


def test_secrets_are_only_named(built: Built) -> None:
    """No resource holds a secret; those that are named are those that the documentation makes."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    named = set()
    for name, container, pod in containers(built):
        for variable in container.get("env", ()):
            hidden = any(word in variable["name"] for word in ("PASSWORD", "SECRET", "TOKEN", "ACCESS_KEY"))
            if hidden and not variable["name"].endswith("_FILE"):
                assert "secretKeyRef" in variable["valueFrom"], (name, variable["name"])
                named.add(variable["valueFrom"]["secretKeyRef"]["name"])
        named |= {
            entry["secretRef"]["name"] for entry in container.get("envFrom", ()) if "secretRef" in entry
        }
        named |= {volume["secret"]["secretName"] for volume in pod.get("volumes", ()) if "secret" in volume}
    named |= {cluster["spec"]["authOptions"]["secretName"] for cluster in of_kind(built, "RayCluster")}
    named |= {tls["secretName"] for found in of_kind(built, "Ingress") for tls in found["spec"]["tls"]}
    assert of_kind(built, "Secret") == []
    assert named == {
        "study-ray",
        "study-s3",
        "study-mlflow-s3",
        "study-mlflow",
        "study-postgres",
        "study-tls",
    }
    for name in named:
        assert f"create secret generic {name} " in text or f"create secret tls {name} " in text, name


def test_the_cluster_asks_for_a_token_and_grows(built: Built) -> None:
    """Token authentication is on, the head trains nothing, and every group of workers can shrink to nothing."""
    for cluster in of_kind(built, "RayCluster"):
        spec = cluster["spec"]
        assert spec["authOptions"]["mode"] == "token"
        assert spec["enableInTreeAutoscaling"]
        assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
        assert all(group["minReplicas"] == 0 < group["maxReplicas"] for group in spec["workerGroupSpecs"])
    groups = {
        build: {group["groupName"] for group in cluster["spec"]["workerGroupSpecs"]}
        for build, documents in built.items()
        for cluster in documents
        if cluster["kind"] == "RayCluster"
    }
    assert groups == {"overlays/cpu": {"cpu"}, "overlays/gpu": {"cpu", "gpu"}}


def test_nobody_talks_to_anybody_unless_it_is_said(built: Built) -> None:
    """A policy forbids all traffic of all pods; each pod that is here has a policy of its own that allows some."""
    policies = [found["spec"] for found in built["overlays/gpu"] if found["kind"] == "NetworkPolicy"]
    nothing = [
        policy for policy in policies if not policy["podSelector"] and not {"ingress", "egress"} & set(policy)
    ]
    assert [sorted(policy["policyTypes"]) for policy in nothing] == [["Egress", "Ingress"]]
    for documents in built.values():
        for name, template in pods(documents):
            labels = template["metadata"]["labels"].items()
            chosen = [policy["podSelector"].get("matchLabels", {}) for policy in policies]
            assert any(wanted and wanted.items() <= labels for wanted in chosen), name


def test_the_front_has_tls_for_every_name(built: Built) -> None:
    """Each name of the ingress is in its certificate's list, and plain HTTP is sent to TLS."""
    for found in of_kind(built, "Ingress"):
        covered = {host for tls in found["spec"]["tls"] for host in tls["hosts"]}
        assert {rule["host"] for rule in found["spec"]["rules"]} == covered
        assert found["metadata"]["annotations"]["nginx.ingress.kubernetes.io/force-ssl-redirect"] == "true"
    for service in of_kind(built, "Service"):
        assert service["spec"].get("type", "ClusterIP") == "ClusterIP", service["metadata"]["name"]


def test_mlflow_is_told_what_compose_tells_it() -> None:
    """Kustomize reads no file outside its folder: its copy of MLflow's settings is that of compose."""
    copy = KUBERNETES / "base" / "mlflow-auth.ini"
    assert copy.read_text() == (ROOT / "deploy" / "compose" / "mlflow-auth.ini").read_text()


def test_every_file_is_part_of_something() -> None:
    """No file of a base or an overlay is forgotten in its kustomization.yaml."""
    for listing in KUBERNETES.rglob("kustomization.yaml"):
        text = listing.read_text()
        yaml.safe_load(text)
        for path in listing.parent.iterdir():
            assert path.name == "kustomization.yaml" or path.name in text, path
