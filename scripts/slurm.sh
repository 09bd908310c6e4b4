#!/bin/bash
# A sweep on a Slurm cluster, one array task per seed. A task that is pre-empted exits with 75 and is put back in the queue;
# the run then goes on where it was. Edit the resources and the command, then: sbatch scripts/slurm.sh
#SBATCH --job-name=orthobench
#SBATCH --array=1-5
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue

source .venv/bin/activate
python -m orthobench model=scornn task=copying T=1000 "seed=${SLURM_ARRAY_TASK_ID}" &
run=$!
trap 'kill -USR1 $run' USR1
wait $run
code=$?
[ $code -gt 128 ] && { wait $run; code=$?; }
[ $code -eq 75 ] && scontrol requeue "${SLURM_JOB_ID}"
exit $code
