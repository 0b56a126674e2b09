#!/usr/bin/env bash
# Puts secrets from files into the environment of the program that it starts: PGPASSWORD_FILE=/run/secrets/postgres_password
# sets PGPASSWORD to that file's content. So no secret is part of a command, an image or a compose file.
set -euo pipefail

for name in AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY MLFLOW_AUTH_ADMIN_PASSWORD MLFLOW_FLASK_SERVER_SECRET_KEY \
    MLFLOW_TRACKING_PASSWORD PGPASSWORD; do
    file_variable=${name}_FILE
    file=${!file_variable:-}
    [ -n "$file" ] || continue
    value=$(<"$file")
    if [ -z "$value" ]; then
        echo "$file_variable names $file, which is empty: make it anew" >&2
        exit 2
    fi
    export "$name=$value"
    unset "$file_variable"
done
# Ray and others keep files at home; without a volume there, a read-only file system leaves only the temporary folder.
[ -w "${HOME:-}" ] || HOME=$(mktemp --directory)
export HOME
exec "$@"
