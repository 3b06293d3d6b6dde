# Sourced by ./run: the exchange (examples/exchange), with a database of its own.

help_exchange() {
  cat <<'END'
usage: ./run exchange [--port N] [--database WHERE] [--fresh]
       ./run exchange --soak MINUTES [--seed N]

Builds and runs examples/exchange, a market as a service, and prints the address of its page; Ctrl-C stops it. The port is 8080
unless it is given (0: any that is free). WHERE is what libpq understands, e.g. "host=/run/postgresql dbname=market". Without it, a
PostgreSQL server is started for the time being, reachable by a local socket only, whose data stay in a scratch folder (its name
is printed) for the next time; --fresh begins anew.

--soak trades for so long while clients, the exchange and its database are killed and restarted at random (--seed repeats the choice
of mishaps), and then compares the clients' logs with the tables.
END
}

exchange_usage() {
  help_exchange >&2
  exit 2
}

# The newest of Debian's, which are not on PATH, or what is on PATH.
postgres_programs() {
  local found
  found=$(find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1)
  [[ -n $found ]] || found=$(command -v initdb) || return 1
  dirname "$found"
}

# PostgreSQL refuses to run as root.
exchange_as_another() {
  if ((EUID == 0)); then
    setpriv --reuid "$exchange_user" --clear-groups -- "$@"
  else
    "$@"
  fi
}

# Starts a server in $1 as a child of this shell, $exchange_server.
exchange_start_database() {
  local folder=$1 programs
  need postgresql || die "exchange: without PostgreSQL's server it needs --database"
  programs=$(postgres_programs) || die "exchange: there is no initdb here"
  exchange_user=nobody
  id -u postgres >/dev/null 2>&1 && exchange_user=postgres
  if [[ ! -d $folder ]]; then
    mkdir -m 700 "$folder"
    ((EUID != 0)) || chown "$exchange_user" "$folder"
  fi
  # It is in a folder that everybody may write to.
  [[ ! -L $folder && ($(stat -c %U "$folder") == "$exchange_user" || -O $folder) ]] || die "exchange: $folder belongs to somebody else"
  if [[ ! -e $folder/data/PG_VERSION ]]; then
    exchange_as_another "$programs/initdb" -D "$folder/data" -U market --auth=trust --no-instructions --locale=C --encoding=UTF8 \
      >/dev/null || die "exchange: initdb failed"
  fi
  exchange_as_another "$programs/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= \
    >"$1.log" 2>&1 &
  exchange_server=$!
  for _ in {1..300}; do
    "$programs/pg_isready" --quiet -h "$folder" && return 0
    kill -0 "$exchange_server" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 5 "$1.log" >&2
  die "exchange: the database does not start"
}

command_exchange() {
  local port=8080 database='' fresh=no soak='' seed=() folder status=0
  while (($# > 0)); do
    case $1 in
      --port) port=${2:-} && shift ;;
      --database) database=${2:-} && shift ;;
      --fresh) fresh=yes ;;
      --soak) soak=${2:-} && shift ;;
      --seed) seed=(--seed "${2:-}") && shift ;;
      *) exchange_usage ;;
    esac
    shift
  done
  [[ $port =~ ^[0-9]+$ ]] || die "exchange: --port wants a number, and has '$port'"
  need_build
  need_for_components
  build release --target example_exchange >&2
  if [[ -n $soak ]]; then
    need postgresql || die "exchange: the soak needs PostgreSQL's server"
    exec python3 tests/examples/exchange_soak.py build/release/bin/example_exchange --minutes "$soak" "${seed[@]}"
  fi
  if [[ -n $database ]]; then
    exec build/release/bin/example_exchange --database "$database" --port "$port"
  fi
  folder=${TMPDIR:-/tmp}/ramie-exchange-$(id -un)
  [[ $fresh == no ]] || rm -rf "$folder"
  exchange_server=
  trap '[[ -z $exchange_server ]] || kill -INT "$exchange_server" 2>/dev/null; wait' EXIT
  exchange_start_database "$folder"
  note "the database is in $folder"
  # Ctrl-C is for the exchange, which ends, and then the database does.
  trap : INT TERM
  build/release/bin/example_exchange --database "host=$folder user=market dbname=postgres" --port "$port" &
  local exchange=$!
  while kill -0 "$exchange" 2>/dev/null; do
    wait "$exchange" && status=0 || status=$?
    ((status <= 128)) || kill -TERM "$exchange" 2>/dev/null || true
  done
  return "$status"
}
