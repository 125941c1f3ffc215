#!/bin/bash
# DATA=/data SAVED=/saved sbatch slurm.sh: one process per GPU. JAX finds Slurm's numbers by itself.
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append

: "${DATA:?name the folder of the data}" "${SAVED:?name the folder for weights and state}"
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"  # from Slurm 22.05 on, srun ignores the other one
status=0
srun --kill-on-bad-exit=0 --wait=60 python train.py "$DATA/train-*.arrow" "$SAVED/train" || status=$?
if [ "$status" -eq 75 ]; then  # saved after a SIGTERM: five minutes before the time limit
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
