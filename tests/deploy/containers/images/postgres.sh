#!/usr/bin/env bash
# What deploy/compose asks of the official image of PostgreSQL: a database with a password at the first start, then a server.
set -euo pipefail
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
# PostgreSQL wants its user to have a name.
export LD_PRELOAD=libnss_wrapper.so NSS_WRAPPER_PASSWD=/tmp/passwd NSS_WRAPPER_GROUP=/tmp/group
echo "postgres:x:$(id -u):$(id -g)::$PGDATA:/bin/false" >"$NSS_WRAPPER_PASSWD"
echo "postgres:x:$(id -g):" >"$NSS_WRAPPER_GROUP"

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086  # these are several words
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" $POSTGRES_INITDB_ARGS
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    pg_ctl -w start -o "-c listen_addresses=''"
    PGPASSWORD=$(<"$POSTGRES_PASSWORD_FILE") createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -w stop
fi
exec postgres -c "listen_addresses=*"
