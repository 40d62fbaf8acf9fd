#!/usr/bin/env bash
# make.sh [--force] [NAME...]   makes a development authority, a server and a client certificate in this folder.
#   NAME: further DNS names and IP addresses of the server, besides localhost, 127.0.0.1 and ::1.
#   Existing files stay as they are; --force makes all of them anew. For development only: the authority's key lies here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
force=; [ "${1:-}" = --force ] && { force=1; shift; }
command -v openssl >/dev/null || { echo "make.sh needs openssl" >&2; exit 2; }
if [ -n "$force" ]; then rm -f ca.{pem,key,srl} server.{crt,key} client.{crt,key}; fi
umask 077
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

issue() { # issue NAME SUBJECT EXTENSION...   a key and a certificate of the authority, for 825 days
  local name=$1 subject=$2; shift 2
  if [ -e "$name.crt" ] && [ -e "$name.key" ]; then echo "kept  $name.crt $name.key"; return; fi
  printf '%s\n' "basicConstraints=critical,CA:FALSE" "keyUsage=critical,digitalSignature" \
    "subjectKeyIdentifier=hash" "authorityKeyIdentifier=keyid" "$@" >"$tmp/$name.ext"
  key "$name.key"
  openssl req -new -key "$name.key" -subj "$subject" -out "$tmp/$name.csr"
  openssl x509 -req -in "$tmp/$name.csr" -CA ca.pem -CAkey ca.key -CAserial "$tmp/serial" -CAcreateserial -sha256 -days 825 \
    -extfile "$tmp/$name.ext" -out "$name.crt" 2>/dev/null
  chmod 644 "$name.crt"
  echo "made  $name.crt $name.key"
}

if [ -e ca.pem ] && [ -e ca.key ]; then echo "kept  ca.pem ca.key"
else
  rm -f server.{crt,key} client.{crt,key}   # of another authority
  key ca.key
  printf '%s\n' "[req]" "distinguished_name=dn" "x509_extensions=ca" "[dn]" "[ca]" "basicConstraints=critical,CA:TRUE" \
    "keyUsage=critical,keyCertSign,cRLSign" "subjectKeyIdentifier=hash" >"$tmp/ca.cnf"
  openssl req -x509 -config "$tmp/ca.cnf" -new -key ca.key -sha256 -days 3650 -subj "/CN=Weir development authority" -out ca.pem
  chmod 644 ca.pem
  echo "made  ca.pem ca.key"
fi
names="DNS:localhost,IP:127.0.0.1,IP:::1"
for n in "$@"; do case $n in *:*|[0-9]*.[0-9]*.[0-9]*.[0-9]*) names+=",IP:$n";; *) names+=",DNS:$n";; esac; done
issue server "/CN=localhost" "extendedKeyUsage=serverAuth" "subjectAltName=$names"
issue client "/CN=development client" "extendedKeyUsage=clientAuth" "subjectAltName=URI:spiffe://development/client"
