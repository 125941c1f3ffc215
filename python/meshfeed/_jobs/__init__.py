"""What the processes of a loader agree on, compare and tell each other.

Every exchange is a key with a small JSON value in the job's store (`keys.py`). A namespace holds
the keys of one loader. A generation, one level below, lasts from one agreement to the next.

| key | writer | reader | when | the wait ends with the value, or |
| --- | --- | --- | --- | --- |
| terms | lowest process | all others | before a generation's first batch | agree_timeout |
| answer/P | process P | lowest process | after P has read the terms | agree_timeout |
| components/P | process P | lowest process | before an answer with another dataset | no wait |
| called/P | process P | lowest process | before an agreement after a move | no wait |
| verdict | lowest process | all others | after all answers | agree_timeout + 10 s |
| mailbox/P | any process | process P | after a failure or departure | a wake message of P |
| departing | first to depart | the next to depart | before its messages | no wait |
| heartbeat/P | process P | all, after a lost peer | every 10 s | no wait |
| alive/P | every live process | all others | after a lost peer | 1.5 s |
| progress/P | a late process | other late processes | when a batch takes too long | no wait |
| content | lowest process | all others | when it has hashed its files | departure |
| digests/… | lowest holder | other holders | after a sampled step | agree_timeout, departure |
| barrier/arrival/P | process P | lowest process | when P stops at a barrier | 0.5 s or 2 steps |
| barrier/wake/N | stopped processes | lowest process | after 20 ms at a barrier | no limit |
| barrier/decision/N | lowest process | stopped processes | at a barrier | failure, departure |
| saved/FILE/P | process P | all writers of the file | before P saves its state | no wait |

A program that ends with an exception sets meshfeed-failed/P in JAX's store (`early.py`).
`mf.check_replicas` has keys of its own (`comparison.py`).

A close of the loader on this process also ends every wait. One key belongs to the namespace:
departed/P, which process P sets when it closes the loader. The last one deletes all keys.
"""
