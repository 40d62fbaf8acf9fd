# Counts of what a script checks. Sourced; sets `passed` and `failed`.
passed=0; failed=0

good() { echo "ok    $1"; passed=$((passed + 1)); }
bad() { echo "FAIL  $1"; failed=$((failed + 1)); }
give_up() { # give_up WHY FILE   ends the script, with the end of a log
  bad "$1"; tail -n 40 "$2"; echo "$passed passed, $failed failed"; exit 1
}
tally() { # tally VERDICTS   prints and counts lines that good and bad could have written
  echo "$1"; passed=$((passed + $(grep -c '^ok ' <<<"$1"))); failed=$((failed + $(grep -c '^FAIL ' <<<"$1")))
}
