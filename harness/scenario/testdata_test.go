package scenario

// minimal is the shortest scenario. Tests add lines to it or change a line.
const minimal = `name: small
description: One ReplicaSet.
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
`

// external lacks its external workload.
const external = `name: external
description: A Go program creates the objects.
`
