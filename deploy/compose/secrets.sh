#!/usr/bin/env bash
# Makes every secret of a set-up, each in a file of its own that only its owner can read. It never overwrites a secret.
#
#   deploy/compose/secrets.sh [--out FOLDER] [--host NAME]
#
# FOLDER  where secrets/, data/ and .env go; by default beside this script, where compose.yaml looks for them.
# NAME    the name or address that people will use; it goes into the certificate beside localhost and 127.0.0.1.
#
# The certificate signs itself. Put one of your own authority's in its place (tls.crt, tls.key) before others use it.
set -euo pipefail
umask 077

folder=$(dirname "$0")
host=localhost
while [ $# -gt 0 ]; do
    case $1 in
        --out) folder=${2:?--out needs a folder} && shift 2 ;;
        --host) host=${2:?--host needs a name} && shift 2 ;;
        *) echo "usage: $0 [--out FOLDER] [--host NAME]" >&2 && exit 2 ;;
    esac
done
if ! [[ $host =~ ^[A-Za-z0-9._:-]+$ ]]; then
    echo "--host: a name or an address is made of letters, digits, '.', '-', ':' and '_', but got '$host'" >&2
    exit 2
fi
secrets=$folder/secrets
if [ -e "$secrets" ]; then
    echo "$secrets is there already, and nothing was changed: running services use what it holds." >&2
    echo "To make new secrets, move it away first; docs/guides/deploy.md says which services must then be changed too." >&2
    exit 1
fi
command -v openssl >/dev/null || { echo "openssl is needed: apt-get install openssl" >&2 && exit 1; }

# Everything is first made in a temporary place, so that a failure leaves no partial result.
mkdir -p "$folder/data/postgres" "$folder/data/s3"
new=$(mktemp -d "$folder/secrets.XXXXXX")
trap 'rm -rf "$new"' EXIT

for name in ray_token postgres_password mlflow_admin_password mlflow_secret_key s3_study_secret s3_mlflow_secret; do
    # Without a line end, which some readers would take for a part of the secret.
    printf %s "$(openssl rand -hex 32)" >"$new/$name"
done
for name in s3_study_key s3_mlflow_key; do
    printf %s "$(openssl rand -hex 10)" >"$new/$name"
done

# Rights in the object store: each identity has its own bucket, and nothing else. As its admin it may make the bucket.
identity() {
    printf '{"name": "%s", "credentials": [{"accessKey": "%s", "secretKey": "%s"}], "actions": ["Admin:%s"]}' \
        "$1" "$(<"$new/s3_$1_key")" "$(<"$new/s3_$1_secret")" "$1"
}
printf '{"identities": [\n  %s,\n  %s\n]}\n' "$(identity study)" "$(identity mlflow)" >"$new/s3.json"

names=DNS:localhost,IP:127.0.0.1
case $host in
    localhost | 127.0.0.1) ;;
    *:* | [0-9]*.[0-9]*.[0-9]*.[0-9]*) names+=",IP:$host" ;;
    *) names+=",DNS:$host" ;;
esac
# It is -nodes, because OpenSSL before 3 and LibreSSL know no other name for it. Its output is shown only if it fails.
if ! said=$(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 397 -subj "/CN=$host" \
    -addext "subjectAltName=$names" -keyout "$new/tls.key" -out "$new/tls.crt" 2>&1); then
    printf '%s\n' "$said" "the certificate could not be made by $(openssl version); nothing was made" >&2
    exit 1
fi

# Containers run as whoever made the secrets, and so can read them. If that was root, they run as an ordinary user.
user=$(id -u) group=$(id -g)
if [ "$user" = 0 ]; then
    user=10001 group=10001
    chown -R "$user:$group" "$new" "$folder/data"
fi
if ! [ -e "$folder/.env" ]; then
    printf '# Not secret: whose files these are, and what you set yourself (compose.yaml names what can be).\nSTUDY_UID=%s\nSTUDY_GID=%s\n' \
        "$user" "$group" >"$folder/.env"
fi
mv "$new" "$secrets"
trap - EXIT
echo "made $(find "$secrets" -type f | wc -l) secrets in $secrets"
