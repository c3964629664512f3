package schema

// This file has the examples of the reference documentation. TestExamples checks that each of
// them is valid.

// ScenarioExample is the example of a complete scenario file in the reference documentation.
const ScenarioExample = `# yaml-language-server: $schema=https://raw.githubusercontent.com/kube-gauntlet/gauntlet/main/docs/schema/scenario.json
name: burst-with-errors
description: >
  Half of the pod creates of a scale-up fail. A controller that counts a failed create
  as a pod never reaches the desired number of pods.
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 2}
    await: {until: available}
  - scale: {kind: ReplicaSet, name: web, replicas: 20}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 2}
    when: {step: {index: 1, at: begun}}
    for: 3s
exercises: [expectations, converged]`

// OperationExamples has a YAML example of each operation for the reference documentation. Each
// example is the top-level field workload of a scenario file. The key is the name of the
// operation.
var OperationExamples = map[string]string{
	"create": `
workload:
  - create: {kind: Deployment, name: web, replicas: 4, version: v1, maxSurge: 50%, maxUnavailable: 0}
  - create: {kind: Service, name: web, selector: {app: web}}
  - create: {kind: Pod, name: orphan, count: 3, labels: {app: web}}
  - create:
      apiVersion: apps/v1
      kind: StatefulSet
      name: db
      manifest:
        spec:
          replicas: 3
          serviceName: db
          selector: {matchLabels: {app: db}}
          template: {metadata: {labels: {app: db}}}
    await: {until: "jsonpath={.status.readyReplicas}=3"}`,
	"scale": `
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 2}
  - scale: {kind: ReplicaSet, name: web, replicas: 10}
    after: 500ms`,
	"delete": `
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 2}
  - delete: {kind: ReplicaSet, name: web, propagation: orphan}
    await: {until: gone}`,
	"rollout": `
workload:
  - create: {kind: Deployment, name: web, replicas: 2, version: v1}
  - rollout: {name: web, version: v2}
    await: {until: complete}`,
	"pause": `
workload:
  - create: {kind: Deployment, name: web, replicas: 2}
  - pause: {name: web}
  - rollout: {name: web, version: v2}`,
	"resume": `
workload:
  - create: {kind: Deployment, name: web, replicas: 2, paused: true}
  - resume: {name: web}`,
	"rollback": `
workload:
  - create: {kind: Deployment, name: web, replicas: 2, version: v1}
    await: {until: complete}
  - rollout: {name: web, version: v2}
  - rollback: {name: web, revision: 1}`,
	"label": `
workload:
  - create: {kind: Pod, name: web, labels: {app: web, tier: a}}
  - label: {kind: Pod, name: web, labels: {app: other}, remove: [tier]}`,
	"annotate": `
workload:
  - create: {kind: Pod, name: web, labels: {app: web}}
  - annotate: {kind: Pod, name: web, annotations: {controller.kubernetes.io/pod-deletion-cost: "-3"}}`,
	"select": `
workload:
  - create: {kind: Service, name: web, selector: {app: web}}
  - select: {name: web, selector: {app: other}}`,
	"configure": `
workload:
  - create: {kind: Deployment, name: web, replicas: 2}
  - configure: {kind: Deployment, name: web, strategy: RollingUpdate, maxSurge: 1, maxUnavailable: 0}`,
	"patch": `
workload:
  - create: {apiVersion: example.com/v1, kind: Widget, name: one, manifest: {spec: {size: 3, color: red}}}
    await: {until: condition=Ready}
  - patch: {kind: Widget, name: one, merge: {spec: {size: 5, color: null}}}
    await: {until: "jsonpath={.status.size}=5", within: 30s}`,
	"publish": `
workload:
  - create: {kind: Service, name: web, selector: {app: web}}
  - publish: {name: web, type: ExternalName, externalName: example.com}`,
}

// TriggerExamples has a YAML example of each trigger for the reference documentation. Each
// example is the top-level field faults of a scenario file. The key is the name of the trigger's
// field, such as event.
var TriggerExamples = map[string]string{
	"request": `
faults:
  - restart: {how: kill}
    when: {request: {verb: create, resource: pods, owner: ReplicaSet/web, nth: 3, phase: committed}}
    for: 2s`,
	"event": `
faults:
  - watch-stall: {resource: pods}
    when: {event: {resource: pods, type: ADDED, owner: ReplicaSet/web, nth: 3}}
    for: 2s`,
	"state": `
faults:
  - api-error: {verb: create, resource: pods, code: 500}
    when: {state: {resource: pods, is: ready, atLeast: 2}}
    until: {state: {resource: deployments.apps, is: progressing}}`,
	"fault": `
faults:
  - api-error: {verb: create, resource: pods, code: 500}
    for: 5s
  - restart: {how: kill}
    when: {fault: {index: 0, nth: 3}}
    for: 2s`,
	"step": `
faults:
  - pod-churn: {action: delete, every: 200ms}
    when: {step: {index: 0, at: done}}
    for: 2s`,
	"after": `
faults:
  - restart: {how: kill}
    when: {request: {verb: write}, after: {step: {index: 0, at: begun}}}
    for: 2s`,
}
