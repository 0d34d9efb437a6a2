#!/usr/bin/env bash
# Sweeps the work directory of a self-hosted GitHub runner; action.yml calls it, and a runner can call it after each
# job by itself: ACTIONS_RUNNER_HOOK_JOB_COMPLETED=/opt/treesweep/sweep.sh in the runner's .env file.
#
#   SWEEP_ROOTS       directories to look in, one a line [default: the work directories of all repositories]
#   SWEEP_MIN_FREE    stop as soon as so much is free, like 20G or 15%
#   SWEEP_OLDER_THAN  only what nobody has touched for this long, like 3d
#   SWEEP_TIME_LIMIT  stop after this long [default: 2m]
#   SWEEP_STRICT      true: a sweep that fails fails the job
set -uo pipefail

roots=()
while IFS= read -r root; do
    if [ -n "$root" ]; then roots+=("$root"); fi
done <<<"${SWEEP_ROOTS:-${RUNNER_WORKSPACE%/*}}"
options=(--yes --quiet --time-limit "${SWEEP_TIME_LIMIT:-2m}")
if [ -n "${SWEEP_MIN_FREE:-}" ]; then options+=(--min-free "$SWEEP_MIN_FREE"); fi
if [ -n "${SWEEP_OLDER_THAN:-}" ]; then options+=(--older-than "$SWEEP_OLDER_THAN"); fi

treesweep prune "${options[@]}" "${roots[@]}"
code=$?
if [ "$code" != 0 ]; then
    echo "::warning title=treesweep::The sweep ended with exit code $code; what is above says why."
fi
if [ "${SWEEP_STRICT:-}" = true ]; then exit "$code"; fi
exit 0
