package scenario

// minimal is the shortest scenario. Tests add lines to it or change a line.
const minimal = `name: small
description: One ReplicaSet.
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
`
