#!/bin/bash
# TPU=name ZONE=zone bash tpu.sh: starts train.py on every host of a TPU slice.
# The hosts need train.py in the home folder, and the same mounts for /data and /saved.
set -euo pipefail
gcloud compute tpus tpu-vm ssh "$TPU" --zone="$ZONE" --worker=all \
  --command='python3 train.py "/data/train-*.arrow" /saved/train'
