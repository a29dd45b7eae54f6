#!/bin/bash
# Stands in for Slurm's sbatch --wait in tests: runs the job here at once, with
# the variables that Slurm derives from its #SBATCH lines.
# Appends its options to $STAND_IN_LOG.
set -euo pipefail
options=()
while [[ ${1:-} == -* ]]; do
  options+=("$1")
  shift
done
echo "options ${options[*]}" >>"$STAND_IN_LOG"
value() { sed -n "s/^#SBATCH --$1=\([0-9]*\)$/\1/p" "$2"; }
SLURM_JOB_ID=1 SLURM_NNODES=$(value nodes "$1")
SLURM_NTASKS_PER_NODE=$(value ntasks-per-node "$1")
SLURM_NTASKS=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))
SLURM_PROCID=0 SLURM_LOCALID=0
export SLURM_JOB_ID SLURM_NNODES SLURM_NTASKS_PER_NODE SLURM_NTASKS SLURM_PROCID SLURM_LOCALID
bash "$@"
