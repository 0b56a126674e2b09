#!/usr/bin/env bash
# Brings the whole service up on this machine without containers, and runs a small study through it: `make smoke`.
#
# PostgreSQL, an S3 store, MLflow with passwords, a Ray head with two workers and a token, and TLS in front: the programs,
# options and secrets of deploy/compose, on loopback, on free ports, in a temporary folder. deploy/smoke.py says what
# happens, and ends all that it started, whatever becomes of it. The options are its own (--help).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}

if ! "$python" -c "import psycopg, boto3, ray, mlflow.server.auth" 2>/dev/null; then
    echo "smoke: $python lacks what a cluster needs: run \`make install-dev\`, or name another Python in PYTHON" >&2
    exit 1
fi
if ! compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null && ! command -v initdb >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "smoke: installing PostgreSQL by apt-get"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql >/dev/null
    else
        echo "smoke: PostgreSQL is needed: apt-get install postgresql (as root), or put its initdb on the PATH" >&2
        exit 1
    fi
fi
command -v openssl >/dev/null || { echo "smoke: openssl is needed" >&2 && exit 1; }
exec "$python" deploy/smoke.py "$@"
