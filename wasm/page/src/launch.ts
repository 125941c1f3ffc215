// Generates files that start the JAX program on the hosts of a layout: one process per host.

import { type Draft, deviceCount, processCount } from "./draft.js";

/** devicesEach returns the devices of a process, rounded up if processes have different numbers. */
function devicesEach(d: Draft): number {
  return Math.ceil(deviceCount(d) / processCount(d));
}

/** slurm returns a batch script. */
export function slurm(d: Draft): string {
  const [hosts, each] = [processCount(d), devicesEach(d)];
  return `#!/bin/bash
# sbatch job.sh: one process per host, with ${each === 1 ? "one GPU" : `${each} GPUs`} each.
#SBATCH --job-name=train
#SBATCH --nodes=${hosts}
${d.hosts.length === hosts ? `#SBATCH --nodelist=${d.hosts.join(",")}\n` : ""}#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=${each}
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append

# JAX would give each process of Slurm one GPU.
export JAX_LOCAL_DEVICE_IDS=${Array.from({ length: each }, (_, i) => i).join(",")}
srun --kill-on-bad-exit=0 --wait=60 python load.py
`;
}

/** jobset returns a JobSet for Kubernetes. */
export function jobset(d: Draft): string {
  const [hosts, each] = [processCount(d), devicesEach(d)];
  return `# kubectl apply -f jobset.yaml: one process per host, with ${each === 1 ? "one GPU" : `${each} GPUs`} each. The image has load.py.
# The pods need no permission to ask the Kubernetes API. If a pod fails, all start again.
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
spec:
  failurePolicy:
    maxRestarts: 20
  replicatedJobs:
    - name: host
      replicas: 1
      template:
        spec:
          completionMode: Indexed
          completions: ${hosts}
          parallelism: ${hosts}
          backoffLimit: 0
          template:
            spec:
              restartPolicy: Never
              containers:
                - name: train
                  image: registry.example.com/train:1
                  command: [python, load.py]
                  env:
                    - {name: JAX_COORDINATOR_ADDRESS, value: "train-host-0-0.train:55527"}
                  ports:
                    - containerPort: 55527
                  resources:
                    limits: {nvidia.com/gpu: ${each}}
                  volumeMounts:
                    - {name: shared, mountPath: /shared}
                  workingDir: /shared
              volumes:
                - name: shared
                  persistentVolumeClaim: {claimName: shared}
`;
}
