#!/bin/bash
# sbatch --array=1-16 convert.sh 'train-*.parquet' /data/train: each task of the array converts a part of the files.
#SBATCH --job-name=convert
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --requeue

: "${SLURM_ARRAY_TASK_ID:?submit it with sbatch --array=1-16}"
exec meshfeed convert --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_MAX" "$@"
