"""The strategy planner: how to split a model over devices, and what that costs.

`meshfeed.strategy` describes a model, a training and a cluster, and `advice` ranks the ways to
split it. `memory` counts the bytes of given shardings, and `drawing` draws them. All of these
write a JSON document and let the library answer; `questions` turns arguments into values of a
document, and errors about a document into errors about arguments. No loader needs this package.
"""
