package scenario

// minimal is the shortest valid scenario. Tests append lines to it or replace a line.
const minimal = `name: small
description: One ReplicaSet.
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
`

// external is a scenario without a workload. Tests append the section externalWorkload.
const external = `name: external
description: A Go program creates the objects.
`
